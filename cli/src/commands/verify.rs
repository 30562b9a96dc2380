//! `verify`: signatures, trust, and every byte.

use crate::flags::Flagged;
use std::fs::File;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use toolward_bundle::content::{Content, Origin};
use toolward_bundle::text::visible_line;

use super::check::counted;
use crate::environment::Environment;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use toolward_operator::installed::{self, StoreLocation};
use toolward_operator::trust::Trust;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A bundle: a directory or an archive
    #[arg(required_unless_present = "all")]
    bundle: Option<PathBuf>,

    /// Verify all that is installed, as deeply as an installation does
    #[arg(long, conflicts_with = "bundle")]
    all: bool,

    #[command(flatten)]
    trust: Flagged<Trust>,

    #[command(flatten)]
    store: Flagged<StoreLocation>,
}

pub(crate) fn run(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let Some(bundle) = &arguments.bundle else {
        return all(arguments, environment, output);
    };
    let content = arguments.trust.content(bundle, environment, output)?;
    report(&content, output)?;
    Ok(Exit::Fine)
}

fn all(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let Some(store) = arguments.store.existing(environment)? else {
        output.note("nothing is installed");
        return Ok(Exit::Fine);
    };
    let standing = arguments.trust.context(environment, output)?;
    let verify = |file: &mut File| standing.archive_file(file);
    let mut written = Ok(());
    let refused = store.verify_all(&verify, standing.now, &mut |checked| {
        let (state, code) = match &checked.result {
            Ok(()) => ("verified".to_owned(), None),
            Err(error) => (error.to_string(), Some(error.code())),
        };
        let line = if output.json() {
            output.value(&json!({
                "ok": code.is_none(), "id": checked.id, "version": checked.version.to_string(),
                "held": checked.held, "code": code,
            }))
        } else {
            let code = code.map(|code| format!(" [{code}]")).unwrap_or_default();
            output.line(format!(
                "{} {}: {}{code}",
                checked.id,
                checked.version,
                visible_line(&state, 400)
            ))
        };
        if line.is_err() {
            written = line;
        }
    })?;
    written?;
    installed::unrecorded(&store, output);
    Ok(if refused == 0 {
        Exit::Fine
    } else {
        Exit::Refused
    })
}

fn report(content: &Content, output: &mut Output) -> Result<(), Failure> {
    let manifest = &content.manifest;
    let signers: Vec<String> = match &content.origin {
        Origin::Signed { signers, .. } => signers.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    };
    let warnings: Vec<&str> = content
        .warnings
        .iter()
        .map(|warning| warning.message.as_str())
        .collect();
    if output.json() {
        return output.value(&json!({
            "ok": true,
            "id": manifest.id,
            "version": manifest.version.to_string(),
            "sequence": manifest.sequence,
            "publisher": content.origin.publisher(),
            "signers": signers,
            "manifest_digest": content.manifest_digest,
            "files": content.files.len(),
            "provenance": content.provenance.is_some(),
            "warnings": warnings,
        }));
    }
    for warning in warnings {
        output.warning(warning);
    }
    output.line(format!(
        "{} {} (sequence {}) by {}: verified",
        manifest.id,
        manifest.version,
        manifest.sequence,
        visible_line(&content.origin.publisher(), 100)
    ))?;
    for signer in &signers {
        output.line(format!("  signed by  {signer}"))?;
    }
    output.line(format!("  manifest   {}", content.manifest_digest))?;
    output.line(format!(
        "  holds      {}, {}, {}{}",
        counted(content.files.len(), "file"),
        counted(content.tools.len(), "contract"),
        counted(content.drivers.len(), "driver"),
        if content.provenance.is_some() {
            ", provenance"
        } else {
            ""
        }
    ))
}
