//! `doctor`: whether this machine and installation are fit for the work.

mod languages;

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use toolward_author::BuildKind;
use toolward_bundle::text::visible_line;
use toolward_contract::diagnostic::Severity;

use languages::{LanguageFlags, LanguageTools};

use super::exec_broker::Programs;
use crate::environment::Environment;
use crate::failure::{Exit, Result};
use crate::flags::Flagged;
use crate::output::Output;
use crate::wrap::{wrapped, wrapped_around_code};
use toolward_operator::bundles::BundleSource;
use toolward_operator::doctor::{self, Check, CheckState};
use toolward_operator::granted::PolicyFiles;
use toolward_operator::installed::StoreLocation;
use toolward_operator::trust::Trust;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    languages: LanguageFlags,

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

pub(crate) fn run(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit> {
    if arguments.languages.is_set() {
        return arguments.languages.run(environment, output);
    }
    let trust = Trust::of_config(arguments.config.clone());
    let mut checks = vec![
        Check::new("version", CheckState::Ok, version()),
        doctor::engine(),
        doctor::memory_reset(),
        doctor::confinement(),
        doctor::system_calls(&trust, environment),
        doctor::cache(environment),
        doctor::configuration(arguments.config.as_deref(), environment),
        doctor::publishers(&trust, environment),
        doctor::ledger(&trust, environment),
    ];
    let found = arguments.languages.look(environment).into_iter();
    checks.extend(found.map(|one| language(one, &arguments.languages, environment)));
    checks.extend(doctor::installed(
        &arguments.store,
        &trust,
        environment,
        output,
    ));
    checks.extend(doctor::lasting_changes(environment));
    checks.extend(doctor::policy(&trust, &arguments.policies, environment));
    checks.extend(Programs::checks(&trust, &arguments.policies, environment)?);
    let source = BundleSource {
        trust,
        store: arguments.store.clone(),
        ..BundleSource::default()
    };
    checks.extend(doctor::unused_rules(
        &source,
        &arguments.policies,
        environment,
    ));
    let failed = checks.iter().any(|check| check.state == CheckState::Error);
    if output.json() {
        output.value(&json!({ "ok": !failed, "checks": checks }))?;
    } else {
        for check in &checks {
            output.line(shown(check, output))?;
        }
    }
    Ok(if failed { Exit::Failed } else { Exit::Fine })
}

/// A check as lines for people. What continues on another line stands below its beginning.
fn shown(check: &Check, output: &Output) -> String {
    let state = match check.state {
        CheckState::Ok => "ok     ".to_owned(),
        CheckState::Note => output.label("note   ", Severity::Note),
        CheckState::Warning => output.label("warning", Severity::Warning),
        CheckState::Error => output.label("ERROR  ", Severity::Error),
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
    format!(
        "toolward {} on {} {}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    )
}

/// Only authors build, and in few languages, so that a missing one is a note.
fn language(found: LanguageTools, flags: &LanguageFlags, environment: &Environment) -> Check {
    let name = match found.kind {
        BuildKind::Rust => "guest-toolchain",
        BuildKind::Js => "javascript",
        other => other.word(),
    };
    let error = match found.tools {
        Ok(tools) => return Check::new(name, CheckState::Ok, tools),
        Err(error) => error,
    };
    let message = match found.kind {
        BuildKind::Rust => format!(
            "{} makes no components, so that `build` won't work: {error}",
            flags.cargo(environment).to_string_lossy()
        ),
        _ => error.to_string(),
    };
    Check::new(name, CheckState::Note, message).maybe_hint(error.hint())
}
