//! `doctor --language`: what drivers can be built with here, language by language, and what is missing. With
//! `--install` it fetches what has a digest in this release.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use toolward_author::BuildKind;
use toolward_author::build::{self, BuildError, BuildProgress, Installable, Tools};
use toolward_bundle::text::{visible, visible_line};

use crate::approve;
use crate::commands::build::{guest_cargo, tools};
use crate::environment::{Environment, has_terminal};
use crate::failure::{Code, Exit, Failure, Kind, Result};
use crate::output::{Output, quoted};

/// The languages, in the order in which they are shown.
const LANGUAGES: &[BuildKind] = &[
    BuildKind::Rust,
    BuildKind::Js,
    BuildKind::Python,
    BuildKind::Go,
    BuildKind::C,
];

/// How many lines of npm and pip the error of a failed install has.
const MAX_LOG_LINES: usize = 10_000;

#[derive(Debug, Args)]
pub(super) struct LanguageFlags {
    /// Check only the tools that drivers in these languages are built with
    ///
    /// Some of rust, js, ts, python, go and c, or all.
    #[arg(
        long,
        num_args = 1..,
        value_parser = language,
        conflicts_with_all = ["config", "policy_file", "store_dir"]
    )]
    language: Vec<&'static [BuildKind]>,

    /// Fetch missing tools with npm and pip, after a yes
    ///
    /// Shows packages and directory, and asks first. Versions are exact, digests are checked against this release, and
    /// no package script runs. Does not fetch Rust, Node.js or Python.
    #[arg(long, conflicts_with_all = ["config", "policy_file", "store_dir"])]
    install: bool,

    /// The Cargo of the guest toolchain
    ///
    /// [default: TOOLWARD_GUEST_CARGO, else cargo]
    #[arg(long, value_name = "PROGRAM")]
    guest_cargo: Option<OsString>,

    /// Where the tools of other languages are installed
    ///
    /// [default: TOOLWARD_TOOLCHAIN, else toolchain in Toolward's data directory]
    #[arg(long, value_name = "DIRECTORY")]
    toolchain: Option<PathBuf>,
}

fn language(word: &str) -> std::result::Result<&'static [BuildKind], String> {
    let word = if word == "ts" { "js" } else { word };
    let mut each = LANGUAGES.chunks(1);
    let found = match word {
        "all" => Some(LANGUAGES),
        word => each.find(|one| one.iter().any(|kind| kind.word() == word)),
    };
    found.ok_or_else(|| "expected one of rust, js, ts, python, go, c, all".to_owned())
}

/// A language, and the tools that were found for it or what is missing.
pub(super) struct LanguageTools {
    pub(super) kind: BuildKind,
    pub(super) tools: std::result::Result<String, BuildError>,
}

impl LanguageTools {
    /// What would be fetched for it.
    pub(super) fn installable(&self) -> Option<Installable> {
        Installable::missing(self.kind, self.tools.as_ref().err()?)
    }

    fn as_json(&self) -> Value {
        let language = self.kind.word();
        match &self.tools {
            Ok(tools) => json!({ "language": language, "ok": true, "tools": tools }),
            Err(error) => json!({
                "language": language, "ok": false, "installable": self.installable().is_some(),
                "error": { "code": error.code(), "message": error.to_string(), "hint": error.hint() },
            }),
        }
    }
}

impl LanguageFlags {
    /// Whether only these tools are asked about.
    pub(super) fn is_set(&self) -> bool {
        self.install || !self.language.is_empty()
    }

    /// Reports the tools, after fetching what is missing if that is asked for.
    pub(super) fn run(&self, environment: &Environment, output: &mut Output) -> Result<Exit> {
        let tools = tools(self.toolchain.as_ref(), environment);
        let mut found = self.look(environment);
        if self.install {
            let wanted = found.iter().filter_map(LanguageTools::installable);
            let wanted: Vec<Installable> = wanted.collect();
            if !wanted.is_empty() {
                install(&wanted, &tools, output)?;
                found = self.look(environment);
            }
        }
        report(&found, &tools, output)
    }

    /// The tools of these languages, or of all if none is named.
    pub(super) fn look(&self, environment: &Environment) -> Vec<LanguageTools> {
        let tools = tools(self.toolchain.as_ref(), environment);
        let asked = |kind: BuildKind| {
            self.language.is_empty() || self.language.iter().any(|some| some.contains(&kind))
        };
        let mut found = Vec::new();
        if asked(BuildKind::Rust) {
            let cargo = self.cargo(environment);
            let makes = format!(
                "{} makes components for {}",
                cargo.to_string_lossy(),
                build::TARGET
            );
            found.push(LanguageTools {
                kind: BuildKind::Rust,
                tools: build::probe(&cargo, &tools).map(|()| makes),
            });
        }
        let others = build::look(&tools, Path::new(".")).into_iter();
        let others = others.filter(|one| asked(one.kind));
        found.extend(others.map(|one| LanguageTools {
            kind: one.kind,
            tools: one.tools,
        }));
        found
    }

    pub(super) fn cargo(&self, environment: &Environment) -> OsString {
        guest_cargo(self.guest_cargo.as_ref(), environment)
    }

    /// The command that fetches a language's tools to where they are looked for.
    pub(super) fn installing(&self, kind: BuildKind) -> String {
        let directory = self.toolchain.as_deref().map(quoted);
        let directory = directory.map(|directory| format!(" --toolchain {directory}"));
        format!(
            "`toolward doctor --language {} --install{}` fetches it",
            kind.word(),
            directory.unwrap_or_default()
        )
    }
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

/// Fails if a language's tools are missing.
fn report(found: &[LanguageTools], tools: &Tools, output: &mut Output) -> Result<Exit> {
    let ok = found.iter().all(|one| one.tools.is_ok());
    if output.json() {
        let languages: Vec<Value> = found.iter().map(LanguageTools::as_json).collect();
        let directory = tools.directory.as_ref();
        let directory = directory.map(|directory| directory.display().to_string());
        output.value(&json!({ "ok": ok, "directory": directory, "languages": languages }))?;
    } else {
        for LanguageTools { kind, tools } in found {
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
        if found.iter().any(|one| one.installable().is_some()) {
            output
                .note("\n`toolward doctor --install` fetches what npm and pip can, after asking.");
        }
    }
    Ok(if ok { Exit::Fine } else { Exit::Failed })
}
