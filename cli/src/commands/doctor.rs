//! `doctor`: checks whether this machine and this installation work. With `--language` it lists the
//! languages in which drivers can be built here, and what is missing for the others.

use std::env::consts::{ARCH, OS};
use std::ffi::OsString;

use toolward_author::BuildKind;
use toolward_author::build::{self, BuildError, BuildOptions};
use toolward_author::scaffold::Language;
use toolward_contract::diagnostic::Severity;
use toolward_operator::doctor::{self, Check, CheckState};

use super::build::{guest_cargo, tools};
use crate::helper::Programs;
use crate::prelude::*;
use crate::wrap::wrapped_around_code;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Check only the tools that drivers in these languages are built with
    #[arg(
        long,
        long_help = language_help(),
        num_args = 1..,
        value_parser = languages,
        conflicts_with_all = ["config", "policy_file", "store_dir"]
    )]
    language: Vec<Kinds>,

    /// The Cargo of the guest toolchain
    ///
    /// [default: TOOLWARD_GUEST_CARGO, else cargo]
    #[arg(long, value_name = "PROGRAM")]
    guest_cargo: Option<OsString>,

    /// Where the build tools of languages other than Rust are installed
    ///
    /// [default: TOOLWARD_TOOLCHAIN, else toolchain in Toolward's data directory]
    #[arg(long, value_name = "DIRECTORY")]
    toolchain: Option<PathBuf>,

    /// Check this configuration
    ///
    /// [default: toolward.toml in the user's configuration directory]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    #[command(flatten)]
    policies: Flagged<PolicyFiles>,

    #[command(flatten)]
    store: Flagged<StoreLocation>,
}

/// The kinds of drivers that one word names. An alias, since clap treats the literal type
/// `Vec<Vec<_>>` as values grouped by occurrence of the flag.
type Kinds = Vec<BuildKind>;

fn words() -> Vec<&'static str> {
    Language::all().map(Language::word).collect()
}

fn language_help() -> String {
    let words = words();
    let (last, others) = words.split_last().unwrap_or((&"", &[]));
    format!(
        "Check only the tools that drivers in these languages are built with\n\nSome of {} and {last}, or all.",
        others.join(", ")
    )
}

fn languages(word: &str) -> std::result::Result<Kinds, String> {
    let found = Language::all().filter(|one| word == "all" || one.word() == word);
    let found: Kinds = found.map(|one| one.kind).collect();
    match found.is_empty() {
        true => Err(format!("expected one of {}, all", words().join(", "))),
        false => Ok(found),
    }
}

/// A language, and the tools that were found for it, or the error if they are missing.
type LanguageTools = (BuildKind, std::result::Result<String, BuildError>);

impl Arguments {
    pub(crate) fn run(&self, context: &Context) -> Result<Exit> {
        let failed = match self.language.is_empty() {
            true => self.check(context)?,
            false => self.check_languages(context)?,
        };
        Ok(if failed { Exit::Failed } else { Exit::Fine })
    }

    /// Runs and reports all checks, and returns whether one fails.
    fn check(&self, context: &Context) -> Result<bool> {
        let (policies, config) = (&self.policies, self.config.as_deref());
        let trust = Trust::of_config(self.config.clone());
        let mut checks = vec![Check::new(CheckState::Ok, version()).named("version")];
        checks.extend(doctor::machine(&trust, config, context));
        let found = self.language_tools(context).into_iter();
        checks.extend(found.map(|one| self.language_check(one, context)));
        checks.extend(doctor::installed(&self.store, &trust, context));
        checks.extend(doctor::lasting_changes(context));
        checks.extend(doctor::policy(&trust, policies, context));
        checks.extend(Programs::checks(&trust, policies, context)?);
        let source = BundleSource {
            trust,
            store: self.store.clone(),
            ..BundleSource::default()
        };
        checks.extend(doctor::unused_rules(&source, policies, context));
        let failed = checks.iter().any(|check| check.state == CheckState::Error);
        if context.json() {
            context.value(&json!({ "ok": !failed, "checks": checks }))?;
            return Ok(failed);
        }
        for check in &checks {
            context.line(shown(check, context))?;
        }
        Ok(failed)
    }

    /// Reports the tools of the named languages, and returns whether some are missing.
    fn check_languages(&self, context: &Context) -> Result<bool> {
        let found = self.language_tools(context);
        let failed = found.iter().any(|(_, tools)| tools.is_err());
        if context.json() {
            let languages: Vec<Value> = found.iter().map(language_json).collect();
            let directory = tools(self.toolchain.as_ref(), context).directory;
            let directory = directory.map(|directory| directory.display().to_string());
            let value = json!({ "ok": !failed, "directory": directory, "languages": languages });
            context.value(&value)?;
            return Ok(failed);
        }
        for (kind, tools) in &found {
            let (state, text) = match tools {
                Ok(tools) => ("ok     ", tools.clone()),
                Err(error) => ("missing", error.to_string()),
            };
            let text = visible_line(&text, 1000);
            context.line(format!("{state}  {:<6}  {text}", kind.word()))?;
            if let Some(hint) = tools.as_ref().err().and_then(BuildError::hint) {
                context.line(format!("         hint: {}", visible_line(&hint, 1000)))?;
            }
        }
        Ok(failed)
    }

    /// Returns the tools of the named languages, or of all languages if none is named.
    fn language_tools(&self, context: &Context) -> Vec<LanguageTools> {
        let options = BuildOptions {
            cargo: guest_cargo(self.guest_cargo.as_ref(), context),
            locked: false,
            offline: true,
            confine: true,
            tools: tools(self.toolchain.as_ref(), context),
        };
        let mut asked: Vec<BuildKind> = Language::all().map(|one| one.kind).collect();
        asked.dedup();
        asked.retain(|kind| self.language.is_empty() || self.language.concat().contains(kind));
        let look = |kind| (kind, build::look(kind, &options, Path::new(".")));
        asked.into_iter().map(look).collect()
    }

    /// Missing tools are only a note, since only authors build, and only in a few languages.
    fn language_check(&self, (kind, tools): LanguageTools, context: &Context) -> Check {
        let name = match kind {
            BuildKind::Rust => "guest-toolchain",
            BuildKind::Js => "javascript",
            other => other.word(),
        };
        let error = match tools {
            Ok(tools) => return Check::new(CheckState::Ok, tools).named(name),
            Err(error) => error,
        };
        let cargo = guest_cargo(self.guest_cargo.as_ref(), context);
        let message = match kind {
            BuildKind::Rust => format!(
                "{} makes no components, so that `build` won't work: {error}",
                cargo.to_string_lossy()
            ),
            _ => error.to_string(),
        };
        let check = Check::new(CheckState::Note, message).named(name);
        check.maybe_hint(error.hint())
    }
}

fn language_json((kind, tools): &LanguageTools) -> Value {
    let language = kind.word();
    match tools {
        Ok(tools) => json!({ "language": language, "ok": true, "tools": tools }),
        Err(error) => json!({
            "language": language, "ok": false,
            "error": { "code": error.code(), "message": error.to_string(), "hint": error.hint() },
        }),
    }
}

/// Formats a check as lines for people. Continued lines are indented to the start of the text.
fn shown(check: &Check, context: &Context) -> String {
    let state = match check.state {
        CheckState::Ok => "ok     ".to_owned(),
        CheckState::Note => context.label("note   ", Severity::Note),
        CheckState::Warning => context.label("warning", Severity::Warning),
        CheckState::Error => context.label("ERROR  ", Severity::Error),
    };
    let message = visible_line(&check.message, 1000);
    let message = wrapped(&message, &format!("\n{:26}", ""));
    let mut shown = format!("{state}  {:<15}  {message}", check.name);
    if let Some(hint) = &check.hint {
        let hint = wrapped_around_code(&visible_line(hint, 1000), &format!("\n{:15}", ""));
        shown.push_str(&format!("\n         hint: {hint}"));
    }
    shown
}

fn version() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!("toolward {version} on {OS} {ARCH}")
}
