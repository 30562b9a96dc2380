//! An envelope before its bundle: who signed which manifest. A download checks it first, and
//! verifies all of the bundle afterwards.

use std::fmt;
use std::sync::Arc;

use super::document::{Signed, parse_envelope};
use super::{Verified, VerifyOptions};
use crate::digest::Digest;
use crate::error::Refusal;
use crate::key::KeyId;
use crate::manifest::Manifest;
use crate::trust::{Publisher, TrustStore};

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

/// Verifies `manifest.dsse.json` alone, as strictly as [`open`](super::open) does: signatures, threshold,
/// prefix, age, revocation.
///
/// # Errors
/// Those of [`open`](super::open) that are about envelope and manifest.
pub fn envelope(
    bytes: &[u8],
    trust: &TrustStore,
    options: &VerifyOptions<'_>,
) -> Result<Verified<Announced>, Refusal> {
    let manifest = parse_envelope(bytes)?.into_payload();
    let signed = Signed::new(Some(bytes), Some(&manifest), trust, options)?;
    Ok(Verified::new(signed.announced()))
}
