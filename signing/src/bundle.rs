//! A verified bundle, and the contents of its archive.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::digest::Digest;
use crate::error::{ErrorKind, Refusal};
use crate::key::KeyId;
use crate::manifest::{self, ENVELOPE_FILE, Manifest};
use crate::path::BundlePath;
use crate::provenance::{self, Provenance};
use crate::stored::UnreadFile;
use crate::trust::{Publisher, TrustStore};

/// How large all files of a bundle together may be, in bytes: they are held in memory.
pub const MAX_BYTES: u64 = 512 * 1024 * 1024;

/// A bundle with all its bytes, except the content of unread files.
#[derive(Clone)]
#[non_exhaustive]
pub struct Bundle {
    /// The manifest, parsed from the signed bytes.
    pub manifest: Manifest,
    /// The signed bytes of `manifest.toml`.
    pub manifest_bytes: Arc<[u8]>,
    /// The digest of the signed bytes: the identity of this bundle.
    pub manifest_digest: Digest,
    /// The bytes of `manifest.dsse.json`.
    pub envelope_bytes: Arc<[u8]>,
    /// `tools.json` and all other listed files, by path, without the unread files.
    pub files: BTreeMap<BundlePath, Arc<[u8]>>,
    /// The listed files whose content was not read, by path. Empty, unless the bundle was verified
    /// by [`stored_file`](crate::verify::stored_file).
    pub unread: BTreeMap<BundlePath, UnreadFile>,
    /// The publisher, as the trust store knows it.
    pub publisher: Arc<Publisher>,
    /// The publisher's keys that signed and are not revoked: sorted, distinct, at least as many as
    /// the threshold.
    pub signers: Vec<KeyId>,
    /// How the bundle was built, if the publisher states it.
    pub provenance: Option<Provenance>,
    /// The bytes of `provenance.dsse.json`, if the bundle has one.
    pub provenance_bytes: Option<Arc<[u8]>>,
    /// Warnings for people, one sentence each.
    pub warnings: Vec<String>,
    pub(crate) trust: TrustStore,
}

impl Bundle {
    /// The bytes of a listed file.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&Arc<[u8]>> {
        self.files.get(path)
    }

    /// Whether the bundle's publisher may publish `id`. Every id in a bundle must pass this check,
    /// except the ids of actions; the bundle's own id has passed it.
    #[must_use]
    pub fn may_publish(&self, id: &str) -> bool {
        self.trust.covers(&self.publisher, id)
    }

    /// Whether the bundle's publisher may publish an action of this id: the operator's `actions`
    /// prefixes count in addition to the prefixes of [`Bundle::may_publish`].
    #[must_use]
    pub fn may_publish_action(&self, id: &str) -> bool {
        self.trust.covers_action(&self.publisher, id)
    }

    /// The refusal of an id in the bundle's content, or `None` if the publisher may publish it.
    #[must_use]
    pub fn refuse_id(&self, id: &str) -> Option<Refusal> {
        (!self.may_publish(id)).then(|| self.trust.refuse_id(&self.publisher, id))
    }

    /// The contents of the bundle's archive, to be written or unpacked.
    ///
    /// # Errors
    /// [`ErrorKind::FileMissing`] if the bundle has unread files.
    pub fn contents(&self) -> Result<Contents<'_>, Refusal> {
        if let Some(path) = self.unread.keys().next() {
            return Err(Refusal::new(ErrorKind::FileMissing)
                .at(path.as_str())
                .expected("the content of all files")
                .found("a file that was not read"));
        }
        Ok(Contents {
            envelope: &self.envelope_bytes,
            manifest: &self.manifest_bytes,
            provenance: self.provenance_bytes.as_deref(),
            files: self
                .files
                .iter()
                .map(|(path, bytes)| (path.clone(), &**bytes))
                .collect(),
        })
    }
}

/// The contents of an archive, borrowed.
#[derive(Clone, Debug)]
pub struct Contents<'a> {
    /// `manifest.dsse.json`.
    pub envelope: &'a [u8],
    /// `manifest.toml`, as signed.
    pub manifest: &'a [u8],
    /// `provenance.dsse.json`, if the bundle has one.
    pub provenance: Option<&'a [u8]>,
    /// `tools.json` and all other listed files, in any order.
    pub files: Vec<(BundlePath, &'a [u8])>,
}

impl<'a> Contents<'a> {
    /// All entries in the order of an archive.
    pub(crate) fn entries(&self) -> Vec<(&str, &'a [u8])> {
        let mut files: Vec<_> = self
            .files
            .iter()
            .map(|(path, bytes)| (path.as_str(), *bytes))
            .collect();
        files.sort_by_key(|(path, _)| *path);
        let mut entries = vec![
            (ENVELOPE_FILE, self.envelope),
            (manifest::FILE, self.manifest),
        ];
        entries.extend(self.provenance.map(|bytes| (provenance::FILE, bytes)));
        entries.extend(files);
        entries
    }
}

impl fmt::Debug for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bundle")
            .field("id", &self.manifest.id)
            .field("version", &self.manifest.version)
            .field("publisher", &self.publisher.name())
            .field("signers", &self.signers)
            .field("files", &self.files.len())
            .field("unread", &self.unread.len())
            .finish_non_exhaustive()
    }
}
