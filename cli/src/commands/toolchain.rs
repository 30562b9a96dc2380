//! `toolchain`: what drivers can be built with here, language by language, and what is
//! missing. With `--install` it fetches what has a digest in this release.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use toolward_author::BuildKind;
use toolward_author::build::{self, BuildError, BuildProgress, Installable, Tools};
use toolward_bundle::text::{visible, visible_line};

use super::build::{guest_cargo, tools};
use crate::approve;
use crate::environment::{Environment, has_terminal};
use crate::failure::{Code, Exit, Failure, Kind, Result};
use crate::output::Output;

/// The languages, in the order in which they are shown.
const LANGUAGES: [BuildKind; 5] = [
    BuildKind::Rust,
    BuildKind::Js,
    BuildKind::Python,
    BuildKind::Go,
    BuildKind::C,
];

/// How many lines of npm and pip stand in the error of a failed install.
const MAX_LOG_LINES: usize = 10_000;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// These languages only: rust, js, ts, python, go, c [default: all]
    #[arg(value_name = "LANGUAGE", value_parser = language)]
    languages: Vec<BuildKind>,

    /// Fetch missing tools with npm and pip. Shows packages and directory, and asks first.
    /// Versions are exact, digests are checked against this release, and no package script
    /// runs. Does not fetch Rust, Node.js or Python
    #[arg(long)]
    install: bool,

    /// The Cargo of the guest toolchain [default: TOOLWARD_GUEST_CARGO, else
    /// cargo]
    #[arg(long, value_name = "PROGRAM")]
    guest_cargo: Option<OsString>,

    /// Where the tools of other languages are installed [default: TOOLWARD_TOOLCHAIN,
    /// else toolchain in Toolward's data directory]
    #[arg(long, value_name = "DIRECTORY")]
    toolchain: Option<PathBuf>,
}

fn language(word: &str) -> std::result::Result<BuildKind, String> {
    let word = if word == "ts" { "js" } else { word };
    let found = LANGUAGES.into_iter().find(|one| one.word() == word);
    found.ok_or_else(|| "expected one of rust, js, ts, python, go, c".to_owned())
}

/// A language, and the tools that were found for it or what is missing.
type Found = (BuildKind, std::result::Result<String, BuildError>);

pub(crate) fn run(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit> {
    let tools = tools(arguments.toolchain.as_ref(), environment);
    let mut found = look(arguments, &tools, environment);
    if arguments.install {
        let wanted: Vec<Installable> = found.iter().filter_map(installable).collect();
        if !wanted.is_empty() {
            install(&wanted, &tools, output)?;
            found = look(arguments, &tools, environment);
        }
    }
    report(&found, &tools, output)
}

/// What would be fetched for a language.
fn installable((kind, tools): &Found) -> Option<Installable> {
    let error = tools.as_ref().err()?;
    Installable::missing(*kind, error)
}

fn look(arguments: &Arguments, tools: &Tools, environment: &Environment) -> Vec<Found> {
    let asked =
        |kind: BuildKind| arguments.languages.is_empty() || arguments.languages.contains(&kind);
    let mut found = Vec::new();
    if asked(BuildKind::Rust) {
        let cargo = guest_cargo(arguments.guest_cargo.as_ref(), environment);
        let makes = format!(
            "{} makes components for {}",
            cargo.to_string_lossy(),
            build::TARGET
        );
        found.push((BuildKind::Rust, build::probe(&cargo, tools).map(|()| makes)));
    }
    let others = build::look(tools, Path::new(".")).into_iter();
    found.extend(
        others
            .filter(|one| asked(one.kind))
            .map(|one| (one.kind, one.tools)),
    );
    found
}

/// Shows what would be fetched, asks, and fetches it.
fn install(wanted: &[Installable], tools: &Tools, output: &Output) -> Result {
    let Some(directory) = &tools.directory else {
        return Err(Failure::of(Kind::Failed, BuildError::NoToolchain));
    };
    let shown = visible_line(&directory.display().to_string(), 1000);
    let unconfirmed = |why: &str| {
        let message = format!("nothing was installed: {why}");
        Failure::new(Kind::Denied, Code::InstallUnconfirmed, message)
    };
    let no_terminal = || {
        unconfirmed("confirmation needs a terminal")
            .hint("run it on a terminal; it lists what it fetches and asks")
    };
    if !has_terminal() {
        return Err(no_terminal());
    }
    let lines = wanted.iter().map(|one| {
        format!(
            "  {} ({}): {}",
            one.kind.word(),
            one.program(),
            one.packages
        )
    });
    let text = format!(
        "To be fetched into {shown}, with the digests that this release carries:\n\n{}",
        lines.collect::<Vec<_>>().join("\n")
    );
    match approve::confirmed(&text, "Fetch these?") {
        Ok(true) => {}
        Ok(false) => return Err(unconfirmed("you answered no")),
        // A terminal that can't be read is as good as none.
        Err(_) => return Err(no_terminal()),
    }
    let mut log = Vec::new();
    let mut progress = |progress: BuildProgress<'_>| {
        if let BuildProgress::Line(line) = progress {
            let line = visible(line, 2000);
            output.note(format!("  {line}"));
            if !output.tells() && log.len() < MAX_LOG_LINES {
                log.push(line);
            }
        }
    };
    let variables: Vec<_> = std::env::vars_os().collect();
    build::install(wanted, tools, Path::new("."), &variables, &mut progress).map_err(|error| {
        // With `--quiet`, too, the error has its lines above it.
        for line in &log {
            output.say(format!("  {line}"));
        }
        let mut failure = Failure::of(Kind::Failed, error);
        if output.json() {
            failure.details.insert("log".to_owned(), json!(log));
        }
        failure
    })
}

/// Fails where a language's tools are missing.
fn report(found: &[Found], tools: &Tools, output: &mut Output) -> Result<Exit> {
    let ok = found.iter().all(|(_, tools)| tools.is_ok());
    if output.json() {
        let languages: Vec<Value> = found.iter().map(as_json).collect();
        let directory = tools.directory.as_ref();
        let directory = directory.map(|directory| directory.display().to_string());
        output.value(&json!({ "ok": ok, "directory": directory, "languages": languages }))?;
    } else {
        for (kind, tools) in found {
            let (state, text) = match tools {
                Ok(tools) => ("ok     ", tools.clone()),
                Err(error) => ("missing", error.to_string()),
            };
            let text = visible_line(&text, 1000);
            output.line(format!("{state}  {:<6}  {text}", kind.word()))?;
            if let Some(hint) = tools.as_ref().err().and_then(BuildError::hint) {
                output.line(format!("         hint: {}", visible_line(&hint, 1000)))?;
            }
        }
        if found.iter().any(|one| installable(one).is_some()) {
            output.note(
                "\n`toolward toolchain --install` fetches what npm and pip can, after asking.",
            );
        }
    }
    Ok(if ok { Exit::Fine } else { Exit::Failed })
}

fn as_json(found: &Found) -> Value {
    let (kind, tools) = found;
    let language = kind.word();
    match tools {
        Ok(tools) => json!({ "language": language, "ok": true, "tools": tools }),
        Err(error) => json!({
            "language": language, "ok": false, "installable": installable(found).is_some(),
            "error": { "code": error.code(), "message": error.to_string(), "hint": error.hint() },
        }),
    }
}
