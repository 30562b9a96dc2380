//! `sign`: adds a signature to a packed bundle.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use toolward_author::Sealed;

use super::pack::is_archive;
use crate::failure::{Result, authored, packed};
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

pub(crate) fn run(arguments: &Arguments, output: &mut Output) -> Result {
    let mut sealed = Sealed::read(&arguments.bundle).map_err(packed)?;
    let manifest = sealed.manifest().map_err(authored)?;
    let mut signers = Vec::new();
    for path in &arguments.key {
        let key = keyfile::read(path, &arguments.passphrase, output)?;
        signers.push(sealed.sign(&key).map_err(packed)?);
    }
    let place = arguments.output.as_ref().unwrap_or(&arguments.bundle);
    let written = match &arguments.output {
        None if arguments.bundle.is_dir() => sealed.write_envelope(&arguments.bundle),
        Some(place) if !is_archive(place) => sealed.write_directory(place),
        _ => sealed.write_archive(place),
    };
    written.map_err(authored)?;
    let (id, version) = (&manifest.id, &manifest.version);
    let value = json!({
        "ok": true,
        "output": place.display().to_string(),
        "id": id,
        "version": version.to_string(),
        "signers": signers,
        "signatures": sealed.signatures(),
    });
    output.result(&value, place.display())?;
    for signer in &signers {
        output.note(format!("{id} {version} signed with key {signer}"));
    }
    Ok(())
}
