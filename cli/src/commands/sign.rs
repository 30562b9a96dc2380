//! `sign`: adds a signature to a packed bundle.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use toolward_author::{ARCHIVE_EXTENSION, Sealed};

use crate::failure::{self, Exit, Failure};
use crate::keyfile::{self, Passphrase};
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A packed directory, or an archive
    bundle: PathBuf,

    /// The private key to sign with (PEM file; may be given again)
    #[arg(long, value_name = "PEM", required = true)]
    key: Vec<PathBuf>,

    /// Write the signed bundle here instead of in place; NAME.toolbundle makes
    /// an archive
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    #[command(flatten)]
    passphrase: Passphrase,
}

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result<Exit, Failure> {
    let mut sealed = Sealed::read(&arguments.bundle).map_err(failure::packed)?;
    let manifest = sealed.manifest().map_err(failure::authored)?;
    let mut signers = Vec::new();
    for path in &arguments.key {
        let key = keyfile::read(path, &arguments.passphrase, output)?;
        signers.push(sealed.sign(&key).map_err(failure::packed)?);
    }
    let place = arguments.output.as_ref().unwrap_or(&arguments.bundle);
    let archive = place
        .extension()
        .is_some_and(|extension| extension == ARCHIVE_EXTENSION);
    let written = match &arguments.output {
        None if arguments.bundle.is_dir() => sealed.write_envelope(&arguments.bundle),
        Some(place) if !archive => sealed.write_directory(place),
        _ => sealed.write_archive(place),
    };
    written.map_err(failure::authored)?;
    if output.json() {
        output.value(&json!({
            "ok": true,
            "output": place,
            "id": manifest.id,
            "version": manifest.version.to_string(),
            "signers": signers,
            "signatures": sealed.signatures(),
        }))?;
        return Ok(Exit::Fine);
    }
    output.line(place.display())?;
    for signer in &signers {
        output.note(format!(
            "{} {} signed with key {signer}",
            manifest.id, manifest.version
        ));
    }
    Ok(Exit::Fine)
}
