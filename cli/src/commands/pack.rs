//! `pack`: makes a bundle from the directory in which an author works.

use toolward_author::{ARCHIVE_EXTENSION, PackOptions, Sealed};
use toolward_signing::digest::Digest;

use super::publisher::keys::{self, Passphrase};
use crate::prelude::*;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The directory with bundle.toml
    #[arg(default_value = ".")]
    directory: PathBuf,

    /// Where to: NAME.toolbundle makes an archive, any other name a directory
    ///
    /// An archive needs --key. [default: ID.toolbundle]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    /// Sign with this private key (PEM file; may be given again)
    #[arg(long, value_name = "PEM")]
    key: Vec<PathBuf>,

    /// Name the compilers, as `toolward build` prints them
    ///
    /// The bundle then contains a statement, signed with the first key, that names the sources and
    /// the compilers of the bundle's components. If this statement is removed, hosts refuse the
    /// bundle.
    #[arg(long, value_name = "COMPILERS", requires = "key")]
    provenance: Option<String>,

    #[command(flatten)]
    passphrase: Passphrase,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result {
    let named = arguments.output.as_deref();
    let archive = named.is_none_or(is_archive);
    if archive && arguments.key.is_empty() {
        let message = "an archive carries its signatures, and no key was given";
        return Err(Failure::usage(Code::KeyMissing, message)
            .hint("sign it at once: --key PRIVATE.pem (`toolward publisher keys new` makes one)")
            .hint("or pack into a directory, `-o DIR`, and `toolward publisher sign` it later"));
    }
    let options = PackOptions {
        source_date_epoch: context.source_date_epoch()?,
        provenance: arguments.provenance.is_some(),
    };
    let packed = toolward_author::pack(&arguments.directory, &options).map_err(authored)?;
    for warning in &packed.warnings {
        context.warning(warning);
    }
    let own = PathBuf::from(format!("{}.{ARCHIVE_EXTENSION}", packed.manifest.id));
    let place = named.unwrap_or(&own);
    let mut sealed = Sealed::new(&packed);
    let mut signers = Vec::new();
    let mut compiler = arguments.provenance.as_ref();
    for path in &arguments.key {
        let key = keys::read(path, &arguments.passphrase, context)?;
        signers.push(sealed.sign(&key).map_err(authored)?);
        if let Some(compiler) = compiler.take() {
            let provenance = toolward_author::provenance(&arguments.directory, compiler);
            let attested = provenance.and_then(|provenance| sealed.attest(&provenance, &key));
            attested.map_err(authored)?;
        }
    }
    let written = match archive {
        true => sealed.write_archive(place),
        false => sealed.write_directory(place),
    };
    written.map_err(authored)?;
    let digest = Digest::of(&packed.manifest_bytes);
    let (manifest, files) = (&packed.manifest, packed.files.len());
    let (id, version, sequence) = (&manifest.id, &manifest.version, manifest.sequence);
    let value = json!({
        "ok": true,
        "output": place.display().to_string(),
        "id": id,
        "version": version.to_string(),
        "sequence": sequence,
        "manifest_digest": digest,
        "files": files,
        "signers": signers,
    });
    context.result(&value, place.display())?;
    context.note(format!(
        "{id} {version} (sequence {sequence}), {files} files, manifest {digest}"
    ));
    if signers.is_empty() {
        context.note(format!(
            "not signed yet: toolward publisher sign {} --key PRIVATE.pem",
            place.display()
        ));
    }
    Ok(())
}

/// Whether a bundle at this path is an archive and not a directory.
pub(super) fn is_archive(place: &Path) -> bool {
    place
        .extension()
        .is_some_and(|ending| ending == ARCHIVE_EXTENSION)
}
