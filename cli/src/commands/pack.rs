//! `pack`: from the directory an author works in to a bundle.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use toolward_author::{ARCHIVE_EXTENSION, PackOptions, Sealed};
use toolward_signing::digest::Digest;

use crate::environment::Environment;
use crate::failure::{self, Exit, Failure};
use crate::keyfile::{self, Passphrase};
use crate::output::Output;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The directory with bundle.toml
    #[arg(default_value = ".")]
    directory: PathBuf,

    /// Where to: NAME.toolbundle makes an archive (which needs --key), any
    /// other name a directory
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,

    /// Sign with this private key (PEM file; may be given again)
    #[arg(long, value_name = "PEM")]
    key: Vec<PathBuf>,

    /// Say from which sources the components were built, and by which compiler
    /// (`rustc --version`); signed with the first key. Without that statement the
    /// bundle is refused then
    #[arg(long, value_name = "COMPILER", requires = "key")]
    provenance: Option<String>,

    #[command(flatten)]
    passphrase: Passphrase,
}

/// `SOURCE_DATE_EPOCH` as a number.
pub(crate) fn source_date_epoch(environment: &Environment) -> Result<Option<i64>, Failure> {
    environment
        .source_date_epoch
        .as_ref()
        .map(|value| {
            value.parse().map_err(|_| {
                Failure::usage(
                    "source-date-epoch-invalid",
                    format!("SOURCE_DATE_EPOCH is {value:?}; expected seconds since 1970"),
                )
            })
        })
        .transpose()
}

pub(crate) fn run(
    arguments: &Arguments,
    environment: &Environment,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let archive = arguments
        .output
        .extension()
        .is_some_and(|extension| extension == ARCHIVE_EXTENSION);
    if archive && arguments.key.is_empty() {
        return Err(Failure::usage(
            "key-missing",
            "an archive carries its signatures, and no key was given",
        )
        .hint("sign it at once: --key PRIVATE.pem (`toolward keys new` makes one)")
        .hint("or pack into a directory, and `toolward sign` it later"));
    }
    let options = PackOptions {
        source_date_epoch: source_date_epoch(environment)?,
        provenance: arguments.provenance.is_some(),
    };
    let packed =
        toolward_author::pack(&arguments.directory, &options).map_err(failure::authored)?;
    for warning in &packed.warnings {
        output.warning(warning);
    }
    let mut sealed = Sealed::new(&packed);
    let mut signers = Vec::new();
    let mut compiler = arguments.provenance.as_ref();
    for path in &arguments.key {
        let key = keyfile::read(path, &arguments.passphrase, output)?;
        signers.push(sealed.sign(&key).map_err(failure::authored)?);
        if let Some(compiler) = compiler.take() {
            let provenance = toolward_author::provenance(&arguments.directory, compiler)
                .map_err(failure::authored)?;
            sealed
                .attest(&provenance, &key)
                .map_err(failure::authored)?;
        }
    }
    let written = if archive {
        sealed.write_archive(&arguments.output)
    } else {
        sealed.write_directory(&arguments.output)
    };
    written.map_err(failure::authored)?;
    let digest = Digest::of(&packed.manifest_bytes);
    let manifest = &packed.manifest;
    if output.json() {
        output.value(&json!({
            "ok": true,
            "output": arguments.output,
            "id": manifest.id,
            "version": manifest.version.to_string(),
            "sequence": manifest.sequence,
            "manifest_digest": digest,
            "files": packed.files.len(),
            "signers": signers,
        }))?;
        return Ok(Exit::Fine);
    }
    output.line(arguments.output.display())?;
    output.note(format!(
        "{} {} (sequence {}), {} files, manifest {digest}",
        manifest.id,
        manifest.version,
        manifest.sequence,
        packed.files.len()
    ));
    if signers.is_empty() {
        output.note(format!(
            "not signed yet: toolward sign {} --key PRIVATE.pem",
            arguments.output.display()
        ));
    }
    Ok(Exit::Fine)
}
