//! Adds a signature to a packed bundle, which is a directory or an archive. Before signing, every
//! file is checked by the code with which hosts verify. So a signature never covers files that the
//! signer does not have.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use toolward_bundle::dev::PackedBundle;
use toolward_signing::archive::{self, Contents};
use toolward_signing::envelope::Envelope;
use toolward_signing::key::{KeyId, SigningKey};
use toolward_signing::manifest::{self, MANIFEST_TYPE, Manifest};
use toolward_signing::path::BundlePath;
use toolward_signing::provenance::{self, Provenance};
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, VerifyOptions};
use toolward_signing::{ErrorKind, Refusal};

use crate::error::AuthorError;
use crate::output;

/// A bundle with its envelope, in memory. The envelope may have no signature before
/// [`Sealed::sign`] adds one.
#[derive(Debug, Clone)]
pub struct Sealed {
    /// The path, for messages.
    place: std::path::PathBuf,
    envelope: Envelope,
    provenance: Option<Vec<u8>>,
    files: BTreeMap<String, Arc<[u8]>>,
}

impl Sealed {
    /// Holds a packed bundle that has no signatures yet.
    pub fn new(packed: &PackedBundle) -> Self {
        Self {
            place: Path::new(manifest::FILE).to_owned(),
            envelope: Envelope::new(MANIFEST_TYPE, packed.manifest_bytes.clone()),
            provenance: None,
            files: packed.files.clone(),
        }
    }

    /// Reads a packed directory or an archive, and checks every file against the manifest with the
    /// code with which hosts verify. It does not check who signed the bundle.
    ///
    /// # Errors
    ///
    /// If it can't be read, is not a bundle, or differs from its manifest.
    pub fn read(path: &Path) -> Result<Self, AuthorError> {
        let bundle = verify::unsigned(path).map_err(|refusal| refused(path, refusal))?;
        let unsigned = || Envelope::new(MANIFEST_TYPE, bundle.manifest_bytes.to_vec());
        let files = bundle.files.into_iter();
        let files = files.map(|(path, bytes)| (path.as_str().to_owned(), bytes));
        Ok(Self {
            place: path.to_owned(),
            envelope: bundle.envelope.unwrap_or_else(unsigned),
            provenance: bundle.provenance_bytes.map(|bytes| bytes.to_vec()),
            files: files.collect(),
        })
    }

    /// The manifest's content.
    ///
    /// # Errors
    ///
    /// If the bytes to sign are not a manifest.
    pub fn manifest(&self) -> Result<Manifest, AuthorError> {
        Manifest::parse(self.envelope.payload()).map_err(|refusal| refused(&self.place, refusal))
    }

    /// Returns the bytes of the manifest, which are signed.
    pub fn manifest_bytes(&self) -> &[u8] {
        self.envelope.payload()
    }

    /// Returns every file except the manifest, the envelope and the provenance, by name.
    pub fn files(&self) -> &BTreeMap<String, Arc<[u8]>> {
        &self.files
    }

    /// Returns the number of signatures in the envelope.
    pub fn signatures(&self) -> usize {
        self.envelope.signatures().len()
    }

    /// Checks every file against the manifest, then adds the key's signature. An existing signature
    /// by this key is replaced.
    ///
    /// # Errors
    ///
    /// If a file is missing, additional, or different from the manifest. Nothing is changed then.
    pub fn sign(&mut self, key: &SigningKey) -> Result<KeyId, AuthorError> {
        let public = key.public();
        let key_id = public.key_id();
        let mut envelope = self.envelope.clone();
        envelope.sign(key);
        // Verifies as a host that trusts this key alone. The provenance is left out, since another
        // key of the publisher may have signed it.
        let probe = self.archive_with(&self.bytes_of(&envelope)?, None)?;
        let options = VerifyOptions {
            now: None,
            ..VerifyOptions::default()
        };
        match verify::archive_bytes(&probe, &TrustStore::for_key(public), &options) {
            Ok(_) => {}
            // The check for provenance comes last, after every file was compared.
            Err(refusal) if refusal.kind() == ErrorKind::ProvenanceMissing => {}
            Err(refusal) => return Err(refused(&self.place, refusal)),
        }
        self.envelope = envelope;
        Ok(key_id)
    }

    /// Adds a statement of how the components were made, signed by `key`.
    ///
    /// # Errors
    ///
    /// If the statement can't be written.
    pub fn attest(&mut self, provenance: &Provenance, key: &SigningKey) -> Result<(), AuthorError> {
        let statement = provenance.statement(self.envelope.payload());
        let statement = statement.map_err(|refusal| refused(&self.place, refusal))?;
        let mut envelope = Envelope::new(provenance::PAYLOAD_TYPE, statement);
        envelope.sign(key);
        self.provenance = Some(self.bytes_of(&envelope)?);
        Ok(())
    }

    /// Returns the archive. The same bundle always gives the same bytes.
    ///
    /// # Errors
    ///
    /// If a name or the size exceeds the limits of an archive.
    pub fn to_archive(&self) -> Result<Vec<u8>, AuthorError> {
        self.archive_with(&self.bytes_of(&self.envelope)?, self.provenance.as_deref())
    }

    /// Writes the archive to `path`. An existing bundle with the same id is replaced.
    ///
    /// # Errors
    ///
    /// As [`Sealed::to_archive`]. Fails also if something else exists at the path, or if the file
    /// can't be written.
    pub fn write_archive(&self, path: &Path) -> Result<(), AuthorError> {
        if path.symlink_metadata().is_ok() {
            let id = self.manifest()?.id;
            if !verify::unsigned(path).is_ok_and(|bundle| bundle.manifest.id == id) {
                return Err(AuthorError::Exists(path.to_owned()));
            }
        }
        output::file(path, &self.to_archive()?)
    }

    /// Writes the bundle as a directory. `path` must not exist. Without a signature, the directory
    /// has no envelope.
    ///
    /// # Errors
    ///
    /// If `path` exists or can't be written.
    pub fn write_directory(&self, path: &Path) -> Result<(), AuthorError> {
        let signed = self.signatures() > 0;
        let envelope = signed.then(|| self.bytes_of(&self.envelope)).transpose()?;
        let extra = [
            (manifest::FILE, Some(self.envelope.payload())),
            (manifest::ENVELOPE_FILE, envelope.as_deref()),
            (provenance::FILE, self.provenance.as_deref()),
        ];
        let extra = extra.into_iter();
        let extra = extra.filter_map(|(name, bytes)| Some((name, bytes?)));
        let listed = self.files.iter();
        let listed = listed.map(|(name, bytes)| (name.as_str(), bytes.as_ref()));
        output::directory(path, extra.chain(listed))
    }

    /// Writes the envelope, and the provenance if it exists, into the directory from which the
    /// bundle was read.
    ///
    /// # Errors
    ///
    /// If a file can't be written.
    pub fn write_envelope(&self, directory: &Path) -> Result<(), AuthorError> {
        if let Some(provenance) = &self.provenance {
            output::file(&directory.join(provenance::FILE), provenance)?;
        }
        let envelope = self.bytes_of(&self.envelope)?;
        output::file(&directory.join(manifest::ENVELOPE_FILE), &envelope)
    }

    fn bytes_of(&self, envelope: &Envelope) -> Result<Vec<u8>, AuthorError> {
        let bytes = envelope.to_bytes();
        bytes.map_err(|refusal| refused(&self.place, refusal))
    }

    fn archive_with(
        &self,
        envelope: &[u8],
        provenance: Option<&[u8]>,
    ) -> Result<Vec<u8>, AuthorError> {
        let mut files = Vec::with_capacity(self.files.len());
        for (name, bytes) in &self.files {
            let path = BundlePath::parse(name).map_err(|r| refused(&self.place, r))?;
            files.push((path, bytes.as_ref()));
        }
        let contents = Contents {
            envelope,
            manifest: self.envelope.payload(),
            provenance,
            files,
        };
        archive::to_bytes(&contents).map_err(|refusal| refused(&self.place, refusal))
    }
}

fn refused(path: &Path, refusal: Refusal) -> AuthorError {
    AuthorError::Refused(path.to_owned(), refusal)
}
