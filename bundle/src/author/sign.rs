//! Adds a signature to a packed bundle, a directory or an archive. What gets
//! signed is checked first, file by file, with the same code that a host
//! verifies with: a signature never covers what its owner hasn't got in hand.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use toolward_signing::archive::{self, Contents};
use toolward_signing::envelope::Envelope;
use toolward_signing::key::{KeyId, SigningKey};
use toolward_signing::manifest::{self, MANIFEST_TYPE, Manifest};
use toolward_signing::path::BundlePath;
use toolward_signing::provenance::{self, Provenance};
use toolward_signing::trust::TrustStore;
use toolward_signing::verify::{self, VerifyOptions};
use toolward_signing::{Reason, Refusal};

use super::{AuthorError, Packed, output};
use crate::files::{self, MAX_TOTAL};

/// A bundle with its envelope, in memory. The name says what it is for; until
/// [`Sealed::sign`] was called it may hold no signature at all.
#[derive(Debug, Clone)]
pub struct Sealed {
    /// For messages.
    place: std::path::PathBuf,
    envelope: Envelope,
    provenance: Option<Vec<u8>>,
    files: BTreeMap<String, Arc<[u8]>>,
}

impl Sealed {
    /// A packed bundle, without signatures yet.
    #[must_use]
    pub fn new(packed: &Packed) -> Self {
        Self {
            place: Path::new(manifest::FILE).to_owned(),
            envelope: Envelope::new(MANIFEST_TYPE, packed.manifest_bytes.clone()),
            provenance: None,
            files: packed.files.clone(),
        }
    }

    /// Reads a packed directory or an archive. Nothing is verified yet.
    ///
    /// # Errors
    ///
    /// When it can't be read, or is no bundle.
    pub fn read(path: &Path) -> Result<Self, AuthorError> {
        if path.is_dir() {
            Self::read_directory(path)
        } else {
            Self::read_archive(path)
        }
    }

    fn read_directory(path: &Path) -> Result<Self, AuthorError> {
        let mut files = files::tree(path)?;
        let Some(manifest_bytes) = files.remove(manifest::FILE) else {
            return Err(AuthorError::NotABundle {
                path: path.to_owned(),
                reason: "it has no manifest.toml".to_owned(),
            });
        };
        let envelope = match files.remove(manifest::ENVELOPE_FILE) {
            None => Envelope::new(MANIFEST_TYPE, manifest_bytes.to_vec()),
            Some(bytes) => {
                let envelope = Envelope::parse(&bytes).map_err(|r| refused(path, r))?;
                if envelope.payload() != &*manifest_bytes {
                    return Err(AuthorError::NotABundle {
                        path: path.to_owned(),
                        reason: "manifest.dsse.json signs another manifest than the manifest.toml beside it"
                            .to_owned(),
                    });
                }
                envelope
            }
        };
        Ok(Self {
            place: path.to_owned(),
            envelope,
            provenance: files.remove(provenance::FILE).map(|bytes| bytes.to_vec()),
            files,
        })
    }

    fn read_archive(path: &Path) -> Result<Self, AuthorError> {
        let io = |source| {
            AuthorError::Files(files::FilesError::Io {
                path: path.to_owned(),
                source,
            })
        };
        let not_a_bundle = |reason: &str| AuthorError::NotABundle {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        let file = std::fs::File::open(path).map_err(io)?;
        // Nobody vouches for this archive yet: it gets no more room than a
        // verified one would.
        let compressed = file.metadata().map_err(io)?.len();
        let allowed = compressed
            .saturating_mul(archive::MAX_RATIO)
            .clamp(archive::RATIO_FLOOR, MAX_TOTAL);
        let decoder = zstd::Decoder::new(file).map_err(io)?;
        let mut entries = tar::Archive::new(decoder.take(allowed.saturating_add(1)));
        let mut total = 0_u64;
        let mut files = BTreeMap::new();
        for entry in entries
            .entries()
            .map_err(|_| not_a_bundle("it is no zstd-compressed tar"))?
        {
            let mut entry = entry.map_err(|_| not_a_bundle("it is no zstd-compressed tar"))?;
            let name = std::str::from_utf8(&entry.path_bytes())
                .map_err(|_| not_a_bundle("a name in it is not UTF-8"))?
                .to_owned();
            if !entry.header().entry_type().is_file() {
                return Err(not_a_bundle("it holds something that is no regular file"));
            }
            total = total.saturating_add(entry.size());
            if total > allowed {
                let refusal = Refusal::new(Reason::ArchiveRatio)
                    .expected(format!("at most {allowed} bytes"))
                    .found(format!("{total} bytes or more"));
                return Err(refused(path, refusal));
            }
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map_err(io)?;
            if files.insert(name, Arc::<[u8]>::from(bytes)).is_some() {
                return Err(not_a_bundle("it holds a name twice"));
            }
        }
        let (Some(envelope), Some(manifest_bytes)) = (
            files.remove(manifest::ENVELOPE_FILE),
            files.remove(manifest::FILE),
        ) else {
            return Err(not_a_bundle(
                "it has no manifest.dsse.json or no manifest.toml",
            ));
        };
        let envelope = Envelope::parse(&envelope).map_err(|refusal| refused(path, refusal))?;
        if envelope.payload() != &*manifest_bytes {
            return Err(not_a_bundle(
                "its envelope signs another manifest than it holds",
            ));
        }
        Ok(Self {
            place: path.to_owned(),
            envelope,
            provenance: files.remove(provenance::FILE).map(|bytes| bytes.to_vec()),
            files,
        })
    }

    /// What the manifest says.
    ///
    /// # Errors
    ///
    /// When the bytes to sign are no manifest.
    pub fn manifest(&self) -> Result<Manifest, AuthorError> {
        Manifest::parse(self.envelope.payload()).map_err(|refusal| refused(&self.place, refusal))
    }

    /// The bytes of the manifest: what is signed.
    #[must_use]
    pub fn manifest_bytes(&self) -> &[u8] {
        self.envelope.payload()
    }

    /// Every file but manifest, envelope and provenance, by name.
    #[must_use]
    pub fn files(&self) -> &BTreeMap<String, Arc<[u8]>> {
        &self.files
    }

    /// How many signatures the envelope holds.
    #[must_use]
    pub fn signatures(&self) -> usize {
        self.envelope.signatures().len()
    }

    /// Checks every file against the manifest, then adds the key's signature.
    /// A key that has signed already signs no second time.
    ///
    /// # Errors
    ///
    /// When a file is missing, extra, or not the one that the manifest lists;
    /// nothing is changed then.
    pub fn sign(&mut self, key: &SigningKey) -> Result<KeyId, AuthorError> {
        let public = key.public();
        let key_id = public.key_id();
        // Verified as somebody would who trusts this key alone. The provenance
        // is left out: another key of the publisher may have signed it.
        let mut envelope = Envelope::new(MANIFEST_TYPE, self.envelope.payload().to_vec());
        envelope.sign(key);
        let probe = self.archive_with(&self.bytes_of(&envelope)?, None)?;
        let options = VerifyOptions {
            now: None,
            ..VerifyOptions::default()
        };
        verify::archive_bytes(&probe, &TrustStore::for_key(public), &options)
            .map_err(|refusal| refused(&self.place, refusal))?;

        let named = key_id.to_string();
        let signed_before = self
            .envelope
            .signatures()
            .iter()
            .any(|signature| signature.keyid.as_deref() == Some(named.as_str()));
        if !signed_before {
            self.envelope.sign(key);
        }
        Ok(key_id)
    }

    /// Adds a statement of how the components were made, signed by `key`.
    ///
    /// # Errors
    ///
    /// When the statement can't be written.
    pub fn attest(&mut self, provenance: &Provenance, key: &SigningKey) -> Result<(), AuthorError> {
        let statement = provenance
            .statement(self.envelope.payload())
            .map_err(|refusal| refused(&self.place, refusal))?;
        let mut envelope = Envelope::new(provenance::PAYLOAD_TYPE, statement);
        envelope.sign(key);
        self.provenance = Some(self.bytes_of(&envelope)?);
        Ok(())
    }

    /// The archive, the same bytes for the same bundle.
    ///
    /// # Errors
    ///
    /// When a name or the size is more than an archive takes.
    pub fn to_archive(&self) -> Result<Vec<u8>, AuthorError> {
        self.archive_with(&self.bytes_of(&self.envelope)?, self.provenance.as_deref())
    }

    /// Writes the archive to `path`, in place of one that is there.
    ///
    /// # Errors
    ///
    /// As [`Sealed::to_archive`], and when the file can't be written.
    pub fn write_archive(&self, path: &Path) -> Result<(), AuthorError> {
        output::file(path, &self.to_archive()?)
    }

    /// Writes the bundle as a directory. `path` must not exist. Without a
    /// signature the directory has no envelope.
    ///
    /// # Errors
    ///
    /// When `path` exists or can't be written.
    pub fn write_directory(&self, path: &Path) -> Result<(), AuthorError> {
        let envelope = if self.signatures() > 0 {
            Some(self.bytes_of(&self.envelope)?)
        } else {
            None
        };
        let extra = [
            (manifest::FILE, Some(self.envelope.payload())),
            (manifest::ENVELOPE_FILE, envelope.as_deref()),
            (provenance::FILE, self.provenance.as_deref()),
        ];
        let extra = extra
            .into_iter()
            .filter_map(|(name, bytes)| Some((name, bytes?)));
        let listed = self
            .files
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_ref()));
        output::directory(path, extra.chain(listed))
    }

    /// Writes the envelope, and the provenance if there is one, into the
    /// directory that the bundle was read from.
    ///
    /// # Errors
    ///
    /// When a file can't be written.
    pub fn write_envelope(&self, directory: &Path) -> Result<(), AuthorError> {
        if let Some(provenance) = &self.provenance {
            output::file(&directory.join(provenance::FILE), provenance)?;
        }
        output::file(
            &directory.join(manifest::ENVELOPE_FILE),
            &self.bytes_of(&self.envelope)?,
        )
    }

    fn bytes_of(&self, envelope: &Envelope) -> Result<Vec<u8>, AuthorError> {
        envelope
            .to_bytes()
            .map_err(|refusal| refused(&self.place, refusal))
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
    AuthorError::Refused {
        path: path.to_owned(),
        refusal,
    }
}
