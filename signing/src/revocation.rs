//! What counts for nothing any more: keys and bundles, revoked by their own publisher or denied by the
//! operator. Asked when a bundle is verified, and again as long as it is in use.

pub(crate) mod known;
mod list;
mod parse;
mod write;

use crate::bundle::Bundle;
use crate::digest::Digest;
#[cfg(doc)]
use crate::error::ErrorKind;
use crate::error::Refusal;
use crate::key::KeyId;
use crate::publisher::PublisherDocument;
use crate::trust::Publisher;

pub use known::{Revocations, Revoked, Revoker};
pub use list::{
    MAX_BYTES, MAX_ENTRIES, PAYLOAD_TYPE, RevocationList, RevokedBundle, SignedList, VerifiedList,
    accept, stored,
};

impl Revocations {
    /// Adds what a publisher's list revokes, for that publisher.
    pub fn add_list(&mut self, list: &RevocationList) {
        for key in &list.keys {
            self.add_key(&list.publisher, key.key_id, &key.reason);
        }
        for bundle in &list.bundles {
            self.add_bundle(&list.publisher, bundle.digest, &bundle.reason);
        }
    }

    /// Adds the keys that a publisher's document revokes, for that publisher.
    pub fn add_document(&mut self, document: &PublisherDocument) {
        for key in &document.revoked_keys {
            self.add_key(&document.name, key.key_id, &key.reason);
        }
    }

    /// Asks again about a bundle that was verified earlier, for as long as it is in use.
    ///
    /// # Errors
    /// [`ErrorKind::BundleRevoked`]; [`ErrorKind::KeyRevoked`] if fewer keys than the threshold are left of those that
    /// signed it.
    pub fn check(&self, bundle: &Bundle) -> Result<(), Refusal> {
        self.check_release(&bundle.publisher, &bundle.signers, &bundle.manifest_digest)
    }

    /// [`Revocations::check`] of what is kept of a bundle.
    ///
    /// # Errors
    /// Those of [`Revocations::check`].
    pub fn check_release(
        &self,
        publisher: &Publisher,
        signers: &[KeyId],
        digest: &Digest,
    ) -> Result<(), Refusal> {
        self.refuse_bundle(publisher.name(), digest)?;
        publisher
            .quorum()
            .count(signers.iter().copied(), &|key| {
                self.key(publisher.name(), key).is_some()
            })
            .map(drop)
            .map_err(|refusal| refusal.at(format!("publisher {}", publisher.name())))
    }
}
