//! Reading a bundle that matches its manifest, without verifying its signatures: to sign it, or to inspect it before
//! deciding whom to trust. Nothing read here may be run.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::document::{
    BundleHead, Files, check_loose, manifest_missing, parse_envelope, parse_manifest,
    provenance_missing,
};
use super::{BundleSource, archive, directory, open_source};
use crate::digest::Digest;
use crate::envelope::Envelope;
use crate::error::Refusal;
use crate::manifest::Manifest;

/// A bundle that matches its manifest. Anyone can make one: no signature was verified.
#[derive(Clone)]
#[non_exhaustive]
pub struct UnsignedBundle {
    /// The manifest. Publisher and id are claims.
    pub manifest: Manifest,
    /// The bytes of `manifest.toml`.
    pub manifest_bytes: Arc<[u8]>,
    /// The digest of these bytes.
    pub manifest_digest: Digest,
    /// `manifest.dsse.json`, of this manifest. A directory that was packed but not signed has none.
    pub envelope: Option<Envelope>,
    /// The bytes of `provenance.dsse.json`, if the bundle has one, not parsed.
    pub provenance_bytes: Option<Arc<[u8]>>,
    /// `tools.json` and all other listed files, by path.
    pub files: Files,
}

impl fmt::Debug for UnsignedBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnsignedBundle")
            .field("id", &self.manifest.id)
            .field("version", &self.manifest.version)
            .field("files", &self.files.len())
            .finish_non_exhaustive()
    }
}

/// Reads a bundle directory or a `.toolbundle` file, as strictly as [`open`](super::open) does, except for signatures.
///
/// # Errors
/// Those of [`open`](super::open), except errors about keys, publishers and age.
pub fn unsigned(path: &Path) -> Result<UnsignedBundle, Refusal> {
    let (head, files) = match open_source(path)? {
        BundleSource::Directory(root) => directory::read(&root, UnsignedHead::new)?,
        BundleSource::Archive(bytes) => archive::read(&bytes, UnsignedHead::new)?,
    };
    if head.manifest.provenance && head.provenance.is_none() {
        return Err(provenance_missing());
    }
    Ok(UnsignedBundle {
        manifest_digest: Digest::of(&head.manifest_bytes),
        manifest: head.manifest,
        manifest_bytes: head.manifest_bytes,
        envelope: head.envelope,
        provenance_bytes: head.provenance,
        files,
    })
}

/// A manifest, signed or not.
struct UnsignedHead {
    manifest: Manifest,
    manifest_bytes: Arc<[u8]>,
    envelope: Option<Envelope>,
    provenance: Option<Arc<[u8]>>,
}

impl UnsignedHead {
    fn new(envelope: Option<&[u8]>, manifest: Option<&[u8]>) -> Result<Self, Refusal> {
        let manifest_bytes = manifest.ok_or_else(manifest_missing)?;
        let envelope = envelope.map(parse_envelope).transpose()?;
        if let Some(envelope) = &envelope {
            check_loose(envelope, manifest_bytes)?;
        }
        Ok(Self {
            manifest: parse_manifest(manifest_bytes)?,
            manifest_bytes: manifest_bytes.into(),
            envelope,
            provenance: None,
        })
    }
}

impl BundleHead for UnsignedHead {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn provenance(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        self.provenance = Some(bytes.into());
        Ok(())
    }
}
