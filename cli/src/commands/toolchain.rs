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

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// These languages only: rust, js, ts, python, go, c [default: all]
    #[arg(value_name = "LANGUAGE", value_parser = language)]
    languages: Vec<BuildKind>,

    /// Fetch what is missing, after showing what and where and asking: exact versions, with
    /// the digests that this release carries, by npm and pip, which run no scripts. Rust,
    /// Node.js and Python themselves are not fetched
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
        let missing = found.iter().filter(|(_, tools)| tools.is_err());
        let wanted: Vec<Installable> = missing
            .filter_map(|(kind, _)| Installable::of(*kind))
            .collect();
        if !wanted.is_empty() {
            install(&wanted, &tools, output)?;
            found = look(arguments, &tools, environment);
        }
    }
    report(&found, &tools, output)
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
    let unconfirmed = || {
        let message = format!("{shown}: nothing was installed, because nobody confirmed it");
        Failure::new(Kind::Denied, Code::InstallUnconfirmed, message)
            .hint("give the command on a terminal, where it says what it fetches, and asks")
    };
    if !has_terminal() {
        return Err(unconfirmed());
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
        _ => return Err(unconfirmed()),
    }
    let mut progress = |progress: BuildProgress<'_>| {
        if let BuildProgress::Line(line) = progress {
            output.note(format!("  {}", visible(line, 2000)));
        }
    };
    build::install(wanted, tools, Path::new("."), &mut progress)
        .map_err(|error| Failure::of(Kind::Failed, error))
}

/// Fails where a language's tools are missing.
fn report(found: &[Found], tools: &Tools, output: &mut Output) -> Result<Exit> {
    let ok = found.iter().all(|(_, tools)| tools.is_ok());
    if output.json() {
        let languages: Vec<Value> = found.iter().map(as_json).collect();
        let directory = &tools.directory;
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
        let can_install = found
            .iter()
            .any(|(kind, tools)| tools.is_err() && Installable::of(*kind).is_some());
        if can_install {
            output.note(
                "\n`toolward toolchain --install` fetches what npm and pip can, after asking.",
            );
        }
    }
    Ok(if ok { Exit::Fine } else { Exit::Failed })
}

fn as_json((kind, tools): &Found) -> Value {
    let language = kind.word();
    match tools {
        Ok(tools) => json!({ "language": language, "ok": true, "tools": tools }),
        Err(error) => json!({
            "language": language, "ok": false, "installable": Installable::of(*kind).is_some(),
            "error": { "code": error.code(), "message": error.to_string(), "hint": error.hint() },
        }),
    }
}
