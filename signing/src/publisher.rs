//! Publisher documents: which keys a publisher signs with, how many of them must, and which it has revoked.
//! A document says nothing of the ids that its publisher may publish: the operator grants those.

mod parse;
mod rotate;
mod write;

use crate::document::{PayloadKind, Signed};
use crate::fingerprint::Fingerprint;
use crate::key::{KeyId, PublicKey};
use crate::timestamp::Timestamp;
use crate::verified::Verified;

pub use crate::document::Terms;
pub use crate::sequence::Reset;
pub use rotate::{first_use, rotate, rotate_through, stored};

/// The payload type under which a publisher document is signed.
pub const PAYLOAD_TYPE: &str = "application/vnd.toolward.publisher.v1+toml";
/// How a document's file ends, after the publisher's name.
pub const FILE_SUFFIX: &str = ".publisher.json";
/// How large a document may be, in bytes: on first use it is read before anybody is trusted.
pub const MAX_BYTES: usize = 256 * 1024;
/// How many revoked keys, and how many resets, a document may name.
pub const MAX_ENTRIES: usize = 256;
/// How long a reason for a revocation may be, in characters.
pub const MAX_REASON: usize = 200;
/// How many documents a chain may have: each costs the verification of its signatures.
pub const MAX_CHAIN: usize = 1024;

pub(crate) const KIND: PayloadKind = PayloadKind {
    name: "publisher document",
    payload_type: PAYLOAD_TYPE,
    max_bytes: MAX_BYTES,
    max_envelope_bytes: crate::envelope::MAX_BYTES,
};

/// A document whose signatures were verified.
pub type VerifiedPublisher = Verified<Signed<PublisherDocument>>;

/// What a publisher says of its keys. Whether it said so is known of a [`VerifiedPublisher`] only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublisherDocument {
    /// The publisher's name, as its manifests have it.
    pub name: String,
    /// Rises by one with every document, from 1.
    pub version: u64,
    /// When the document was made.
    pub created: Timestamp,
    /// When it stops being valid, and with it every bundle of the publisher.
    pub expires: Option<Timestamp>,
    /// How many distinct keys must sign a bundle, a list or the next document.
    pub threshold: usize,
    /// The keys, 1 to 16, all distinct.
    pub keys: Vec<PublicKey>,
    /// Keys that count for nothing any more, wherever they signed. None of them is among `keys`.
    pub revoked_keys: Vec<RevokedKey>,
    /// Sequences that are lowered after a key was stolen.
    pub resets: Vec<Reset>,
}

/// A key that counts for nothing any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevokedKey {
    /// The key.
    pub key_id: KeyId,
    /// Since when it may have been in other hands: for people. A signature has no time that could be
    /// trusted, so that earlier ones count for nothing either.
    pub since: Option<Timestamp>,
    /// Why, in the publisher's words.
    pub reason: String,
}

impl PublisherDocument {
    /// What people compare before they trust this publisher.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.name, self.threshold, &self.keys)
    }

    /// Whether the document revokes this key.
    #[must_use]
    pub fn revokes(&self, key: &KeyId) -> bool {
        self.revoked_keys
            .iter()
            .any(|revoked| revoked.key_id == *key)
    }
}
