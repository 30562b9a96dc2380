//! `policy check`: a policy file for itself. Whether it is the right one for a
//! bundle is what `list` and `explain` show.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use toolward_policy::Policy;
use toolward_signing::trust::TrustStore;

use crate::commands::check::counted;
use crate::environment::Environment;
use crate::failure::{Exit, Failure, Kind};
use crate::output::Output;
use toolward_operator::config::{ConfigFile, default_config};
use toolward_operator::doctor::unknown_publishers;
use toolward_operator::host_setup;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The file [default: toolward.toml in the user's configuration directory]
    file: Option<PathBuf>,
}

pub(crate) fn run(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let path = match &arguments.file {
        Some(path) => path.clone(),
        None => default_config(environment).ok_or_else(|| {
            Failure::usage("policy-missing", "there is no configuration directory")
                .hint("name the file to check")
        })?,
    };
    let file = ConfigFile::read(&path)?;
    // First the problems that have a place.
    let policy = file.policy().map_err(failed)?;
    let trust = file.trust_store().map_err(failed)?;
    host_setup::transport(&policy).map_err(failed)?;
    let warnings = warnings(&policy, &trust);
    let count = [
        ("grant", policy.grants().count()),
        ("deny rule", policy.denies().count()),
        ("workspace", policy.workspaces().len()),
        ("secret", policy.secrets().len()),
        ("service", policy.services().len()),
        ("share", policy.shares().len()),
        ("document rule", policy.documents().len()),
    ];
    if output.json() {
        let counts = count.map(|(name, number)| (name.replace(' ', "_"), number.into()));
        output.value(&json!({
            "ok": true,
            "file": path,
            "counts": serde_json::Map::from_iter(counts),
            "warnings": warnings,
        }))?;
        return Ok(Exit::Fine);
    }
    let found: Vec<String> = count
        .iter()
        .filter(|(_, number)| *number > 0)
        .map(|(name, number)| counted(*number, name))
        .collect();
    let found = match found.as_slice() {
        [] => "grants nothing".to_owned(),
        found => found.join(", "),
    };
    for warning in &warnings {
        output.warning(warning);
    }
    output.line(format!("{}: fine ({found})", path.display()))?;
    Ok(Exit::Fine)
}

/// The file was read, and it is what fails the check.
fn failed(failure: Failure) -> Failure {
    failure.of_kind(Kind::Failed)
}

/// What is allowed, and probably not meant.
fn warnings(policy: &Policy, trust: &TrustStore) -> Vec<String> {
    let mut warnings = unknown_publishers(policy, trust);
    for workspace in policy.workspaces() {
        let directory = workspace.directory.display();
        if workspace.is_placeholder() {
            warnings.push(format!(
                "the workspace {} still waits for its directory: {directory}",
                workspace.path
            ));
        } else if !workspace.directory.is_dir() {
            warnings.push(format!(
                "the workspace {} has no directory: {directory} is not there",
                workspace.path
            ));
        }
    }
    for secret in policy.secrets().iter().filter(|one| one.is_placeholder()) {
        warnings.push(format!(
            "the secret {} of {} still waits for its source and origin: nobody gets it",
            secret.slug, secret.publisher
        ));
    }
    for service in policy.services().iter().filter(|one| one.is_placeholder()) {
        warnings.push(format!(
            "the service {} still waits for its hosts: nobody gets it",
            service.name
        ));
    }
    warnings
}
