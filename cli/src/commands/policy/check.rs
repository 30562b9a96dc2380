//! `policy check`: a policy file for itself. Whether it is the right one for a
//! bundle is what `policy list` and `show --policy` show.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::environment::Environment;
use crate::failure::{Code, Failure, Kind, Result};
use crate::output::{Output, counted};
use toolward_operator::bundles::BundleSource;
use toolward_operator::config::{ConfigFile, default_config};
use toolward_operator::doctor::{policy_warnings, unused_rule_warnings};
use toolward_operator::granted::PolicyFiles;
use toolward_operator::host_setup;
use toolward_operator::trust::Trust;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The file [default: toolward.toml in the user's configuration directory]
    file: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment, output: &mut Output) -> Result {
    let path = match &arguments.file {
        Some(path) => path.clone(),
        None => default_config(environment).ok_or_else(|| {
            Failure::usage(Code::PolicyMissing, "there is no configuration directory")
                .hint("name the file to check")
        })?,
    };
    let file = ConfigFile::read(&path)?;
    // First the problems that have a place.
    let policy = file.policy().map_err(failed)?;
    let trust = file.trust_store().map_err(failed)?;
    host_setup::transport(&policy).map_err(failed)?;
    file.approving_clients().map_err(failed)?;
    file.ledger().map_err(failed)?;
    file.registries().map_err(failed)?;
    let mut warnings = policy_warnings(&policy, &trust);
    let source = BundleSource {
        trust: Trust::of_config(Some(path.clone())),
        ..BundleSource::default()
    };
    warnings.extend(unused_rule_warnings(
        &source,
        &PolicyFiles::default(),
        environment,
    ));
    let count = [
        ("grant", policy.grants().count()),
        ("deny rule", policy.denies().count()),
        ("workspace", policy.tables().workspaces.len()),
        ("secret", policy.tables().secrets.len()),
        ("service", policy.tables().services.len()),
        ("share", policy.tables().shares.len()),
        ("document rule", policy.tables().documents.len()),
    ];
    if output.json() {
        let counts = count.map(|(name, number)| (name.replace(' ', "_"), number.into()));
        return output.value(&json!({
            "ok": true,
            "file": path.display().to_string(),
            "counts": serde_json::Map::from_iter(counts),
            "warnings": warnings,
        }));
    }
    for warning in &warnings {
        output.warning(warning);
    }
    let found = count.iter().filter(|(_, number)| *number > 0);
    let found = found.map(|(name, number)| counted(*number, name));
    let found = match found.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => "grants nothing".to_owned(),
        found => found,
    };
    let verdict = match warnings.is_empty() {
        true => "fine",
        false => "valid",
    };
    output.line(format!("{}: {verdict} ({found})", path.display()))
}

/// The file was read, and it is what fails the check.
fn failed(failure: Failure) -> Failure {
    failure.of_kind(Kind::Failed)
}
