//! `doctor --language`: what drivers can be built with here, language by language, and what is missing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};
use toolward_author::BuildKind;
use toolward_author::build::{self, BuildError, BuildOptions};
use toolward_bundle::text::visible_line;

use crate::commands::build::{guest_cargo, tools};
use crate::environment::Environment;
use crate::failure::{Exit, Result};
use crate::output::Output;

/// The languages, in the order in which they are shown.
const LANGUAGES: &[BuildKind] = &[
    BuildKind::Rust,
    BuildKind::Js,
    BuildKind::Python,
    BuildKind::Go,
    BuildKind::C,
];

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
    fn as_json(&self) -> Value {
        let language = self.kind.word();
        match &self.tools {
            Ok(tools) => json!({ "language": language, "ok": true, "tools": tools }),
            Err(error) => json!({
                "language": language, "ok": false,
                "error": { "code": error.code(), "message": error.to_string(), "hint": error.hint() },
            }),
        }
    }
}

impl LanguageFlags {
    /// Whether only these tools are asked about.
    pub(super) fn is_set(&self) -> bool {
        !self.language.is_empty()
    }

    /// Reports the tools.
    pub(super) fn run(&self, environment: &Environment, output: &mut Output) -> Result<Exit> {
        let options = self.options(environment);
        report(
            &self.look(environment),
            options.tools.directory.as_deref(),
            output,
        )
    }

    /// The tools of these languages, or of all if none is named.
    pub(super) fn look(&self, environment: &Environment) -> Vec<LanguageTools> {
        let options = self.options(environment);
        let asked = LANGUAGES.iter().filter(|kind| {
            self.language.is_empty() || self.language.iter().any(|some| some.contains(kind))
        });
        let found = asked.map(|kind| LanguageTools {
            kind: *kind,
            tools: build::look(*kind, &options, Path::new(".")),
        });
        found.collect()
    }

    fn options(&self, environment: &Environment) -> BuildOptions {
        BuildOptions {
            cargo: self.cargo(environment),
            locked: false,
            offline: true,
            confine: true,
            tools: tools(self.toolchain.as_ref(), environment),
        }
    }

    pub(super) fn cargo(&self, environment: &Environment) -> OsString {
        guest_cargo(self.guest_cargo.as_ref(), environment)
    }
}

/// Fails if a language's tools are missing.
fn report(found: &[LanguageTools], directory: Option<&Path>, output: &mut Output) -> Result<Exit> {
    let ok = found.iter().all(|one| one.tools.is_ok());
    if output.json() {
        let languages: Vec<Value> = found.iter().map(LanguageTools::as_json).collect();
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
    }
    Ok(if ok { Exit::Fine } else { Exit::Failed })
}
