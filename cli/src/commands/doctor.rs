//! `doctor`: whether this machine and installation are fit for the work.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use toolward_author::build::Installable;
use toolward_author::{BuildKind, build};
use toolward_bundle::text::visible_line;
use toolward_contract::diagnostic::Severity;

use super::build::{guest_cargo, tools};
use super::exec_broker::Programs;
use crate::environment::Environment;
use crate::failure::{Exit, Result};
use crate::flags::Flagged;
use crate::output::{Output, quoted};
use crate::wrap::{wrapped, wrapped_around_code};
use toolward_operator::bundles::BundleSource;
use toolward_operator::doctor::{self, Check, CheckState};
use toolward_operator::granted::PolicyFiles;
use toolward_operator::installed::StoreLocation;
use toolward_operator::trust::Trust;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The Cargo of the guest toolchain [default: TOOLWARD_GUEST_CARGO, else
    /// cargo]
    #[arg(long, value_name = "PROGRAM")]
    guest_cargo: Option<std::ffi::OsString>,

    /// Where the tools of other languages are installed [default: TOOLWARD_TOOLCHAIN,
    /// else toolchain in Toolward's data directory]
    #[arg(long, value_name = "DIRECTORY")]
    toolchain: Option<PathBuf>,

    /// Check this configuration [default: toolward.toml in the user's
    /// configuration directory]
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
        guest_toolchain(arguments, environment),
    ];
    checks.extend(languages(arguments, environment));
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

/// Only authors need it, so its absence is not an error.
fn guest_toolchain(arguments: &Arguments, environment: &Environment) -> Check {
    const NAME: &str = "guest-toolchain";
    let cargo = guest_cargo(arguments.guest_cargo.as_ref(), environment);
    let shown = cargo.to_string_lossy();
    let tools = tools(arguments.toolchain.as_ref(), environment);
    match build::probe(&cargo, &tools) {
        Ok(()) => {
            let makes = format!("{shown} makes components for {}", build::TARGET);
            Check::new(NAME, CheckState::Ok, makes)
        }
        Err(error) => {
            let lacks = format!("{shown} makes no components, so that `build` won't work: {error}");
            Check::new(NAME, CheckState::Note, lacks).maybe_hint(error.hint())
        }
    }
}

/// Few authors need all languages, so that a missing one is a note.
fn languages(arguments: &Arguments, environment: &Environment) -> Vec<Check> {
    let tools = tools(arguments.toolchain.as_ref(), environment);
    let found = build::look(&tools, std::path::Path::new("."));
    found
        .into_iter()
        .map(|found| {
            let name = match found.kind {
                BuildKind::Js => "javascript",
                other => other.word(),
            };
            match found.tools {
                Ok(tools) => Check::new(name, CheckState::Ok, tools),
                Err(error) => {
                    let hint = match Installable::missing(found.kind, &error) {
                        Some(_) => Some(installing(found.kind, arguments).into()),
                        None => error.hint(),
                    };
                    Check::new(name, CheckState::Note, error.to_string()).maybe_hint(hint)
                }
            }
        })
        .collect()
}

/// The command that fetches a language's tools to where they are looked for.
fn installing(kind: BuildKind, arguments: &Arguments) -> String {
    let directory = arguments.toolchain.as_deref().map(quoted);
    let directory = directory.map(|directory| format!(" --toolchain {directory}"));
    format!(
        "`toolward toolchain {} --install{}` fetches it",
        kind.word(),
        directory.unwrap_or_default()
    )
}
