//! What an envelope states of its bundle.

use std::fmt;
use std::sync::Arc;

use crate::digest::Digest;
use crate::key::KeyId;
use crate::manifest::Manifest;
use crate::trust::Publisher;

/// What is known of a bundle from its envelope: everything but the files, and whether they are those.
#[derive(Clone)]
#[non_exhaustive]
pub struct Announced {
    /// The manifest, parsed from the signed bytes.
    pub manifest: Manifest,
    /// The digest of the signed bytes: the identity of the bundle.
    pub manifest_digest: Digest,
    /// The publisher, as the trust store knows it.
    pub publisher: Arc<Publisher>,
    /// The publisher's keys that signed: sorted, distinct, at least the threshold.
    pub signers: Vec<KeyId>,
    /// What a person should be told, one sentence each.
    pub warnings: Vec<String>,
}

impl fmt::Debug for Announced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Announced")
            .field("id", &self.manifest.id)
            .field("version", &self.manifest.version)
            .field("publisher", &self.publisher.name())
            .field("signers", &self.signers)
            .finish_non_exhaustive()
    }
}
