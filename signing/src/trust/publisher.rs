//! A publisher of the trust store.

use std::time::Duration;

use crate::fingerprint::Fingerprint;
use crate::id::Prefix;
use crate::key::{KeyId, PublicKey};
use crate::signers::Quorum;
use crate::timestamp::Timestamp;

/// A publisher, as the operator knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publisher {
    pub(super) name: String,
    pub(super) keys: Vec<PublicKey>,
    pub(super) threshold: usize,
    pub(super) prefixes: Vec<Prefix>,
    pub(super) actions: Vec<Prefix>,
    pub(super) ad_hoc: bool,
    pub(super) bare: bool,
    pub(super) document: Option<FromDocument>,
    pub(super) max_age: Option<Duration>,
}

/// What a publisher document says beyond keys and threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FromDocument {
    pub(super) version: u64,
    pub(super) expires: Option<Timestamp>,
    pub(super) revoked: Vec<KeyId>,
}

impl Publisher {
    /// The publisher's name; `key:` and the key id for a key named with `--trust-key`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The publisher's keys, all distinct.
    #[must_use]
    pub fn keys(&self) -> &[PublicKey] {
        &self.keys
    }

    /// How many distinct keys must have signed, from 1 to the number of keys.
    #[must_use]
    pub fn threshold(&self) -> usize {
        self.threshold
    }

    /// The prefixes of the ids that it may publish.
    #[must_use]
    pub fn prefixes(&self) -> &[Prefix] {
        &self.prefixes
    }

    /// The prefixes of the action ids that it may publish besides those below [`Publisher::prefixes`]. They
    /// cover ids of nothing else.
    #[must_use]
    pub fn actions(&self) -> &[Prefix] {
        &self.actions
    }

    /// Whether this is a key that was named for one command, with `--trust-key`.
    #[must_use]
    pub fn is_ad_hoc(&self) -> bool {
        self.ad_hoc
    }

    /// Whether this is a bare key that the operator trusts lastingly: nothing rotates it, and no list revokes it or
    /// what it signed.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.bare
    }

    /// The version of the publisher document that its keys come from; nothing for a `[[publisher]]` table.
    #[must_use]
    pub fn document_version(&self) -> Option<u64> {
        self.document.as_ref().map(|document| document.version)
    }

    /// When the publisher document that its keys come from stops being valid, if it says so.
    #[must_use]
    pub fn expires(&self) -> Option<Timestamp> {
        self.document.as_ref()?.expires
    }

    /// How old its bundles may be, where the operator says so of this publisher.
    #[must_use]
    pub fn max_age(&self) -> Option<Duration> {
        self.max_age
    }

    /// Whether its publisher document revokes this key.
    #[must_use]
    pub fn revokes(&self, key: &KeyId) -> bool {
        self.document
            .as_ref()
            .is_some_and(|document| document.revoked.contains(key))
    }

    /// What people compare before they trust this publisher; state about its signatures is kept under it.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.name, self.threshold, &self.keys)
    }

    pub(crate) fn quorum(&self) -> Quorum<'_> {
        Quorum {
            whose: &self.name,
            keys: &self.keys,
            threshold: self.threshold,
        }
    }

    pub(super) fn key(&self, id: &KeyId) -> Option<&PublicKey> {
        self.keys.iter().find(|key| key.key_id() == *id)
    }
}
