//! A publisher of the trust store, and the rules for every publisher, whether a table or a document
//! describes it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::error::{ErrorKind, Refusal};
use crate::id::Prefix;
use crate::key::{KeyId, PublicKey};
use crate::signers::{Fingerprint, MAX_KEYS, Quorum};
use crate::timestamp::Timestamp;

/// A publisher, as the operator knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Publisher {
    pub(super) name: String,
    /// The publisher's keys, all distinct.
    pub keys: Vec<PublicKey>,
    /// How many distinct keys must have signed, from 1 to the number of keys.
    pub threshold: usize,
    /// The prefixes of the ids that it may publish.
    pub prefixes: Vec<Prefix>,
    /// Prefixes for ids of actions only, besides `prefixes`.
    pub actions: Vec<Prefix>,
    /// Whether this is a key that `--trust-key` names for one command.
    pub is_ad_hoc: bool,
    /// Whether this is a bare key that the operator trusts permanently. It is never rotated, and no
    /// list revokes it or its bundles.
    pub is_bare: bool,
    /// When the publisher document with its keys expires, if it does.
    pub expires: Option<Timestamp>,
    /// The keys that its publisher document revokes.
    pub(super) revoked: Vec<KeyId>,
    /// How old its bundles may be, if the operator limits that for this publisher.
    pub max_age: Option<Duration>,
}

impl Publisher {
    pub(super) fn new(
        name: String,
        keys: Vec<PublicKey>,
        threshold: usize,
        prefixes: Vec<Prefix>,
    ) -> Self {
        Self {
            name,
            keys,
            threshold,
            prefixes,
            actions: Vec::new(),
            is_ad_hoc: false,
            is_bare: false,
            expires: None,
            revoked: Vec::new(),
            max_age: None,
        }
    }

    /// A configured publisher, whose keys and prefixes are checked.
    pub(super) fn checked(
        name: String,
        keys: Vec<PublicKey>,
        threshold: usize,
        prefixes: Vec<Prefix>,
    ) -> Result<Self, Refusal> {
        let place = format!("publisher {name}");
        check_keys(&place, &keys, threshold)?;
        if prefixes.is_empty() {
            return Err(Refusal::new(ErrorKind::TrustInvalid)
                .at(place)
                .expected("the prefixes that this publisher may publish")
                .found("none: an empty list means nothing"));
        }
        Ok(Self::new(name, keys, threshold, prefixes))
    }

    /// The publisher's name; `key:` and the key id for a key named with `--trust-key`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether its publisher document revokes this key.
    #[must_use]
    pub fn revokes(&self, key: &KeyId) -> bool {
        self.revoked.contains(key)
    }

    /// The fingerprint that people compare before they trust this publisher. Sequence numbers and
    /// versions are stored under it.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.name, self.threshold, &self.keys)
    }

    pub(crate) fn quorum(&self) -> Quorum<'_> {
        Quorum(&self.name, &self.keys, self.threshold)
    }

    pub(super) fn key(&self, id: &KeyId) -> Option<&PublicKey> {
        self.keys.iter().find(|key| key.key_id() == *id)
    }
}

/// How many publishers a trust store may have: each of their keys may cost a verification per
/// signature.
pub(super) const MAX_PUBLISHERS: usize = 256;

/// Adds a publisher, whose name and keys no other publisher may have.
pub(super) fn insert(
    publishers: &mut BTreeMap<String, Arc<Publisher>>,
    publisher: Publisher,
) -> Result<(), Refusal> {
    let refusal =
        || Refusal::new(ErrorKind::TrustInvalid).at(format!("publisher {}", publisher.name));
    if publishers.len() >= MAX_PUBLISHERS {
        return Err(refusal()
            .expected("at most 256 publishers")
            .found("one more"));
    }
    if publishers.contains_key(&publisher.name) {
        return Err(refusal()
            .expected("each publisher once")
            .found("the name twice"));
    }
    for key in &publisher.keys {
        let owner = publishers
            .values()
            .find(|owner| owner.key(&key.key_id()).is_some());
        if let Some(owner) = owner {
            return Err(refusal()
                .expected("keys that belong to one publisher each")
                .found(format!(
                    "key {}, which publisher {} has, too",
                    key.key_id(),
                    owner.name
                )));
        }
    }
    publishers.insert(publisher.name.clone(), Arc::new(publisher));
    Ok(())
}

/// Checks the keys of a publisher or a channel, and how many of them must sign.
pub(super) fn check_keys(place: &str, keys: &[PublicKey], threshold: usize) -> Result<(), Refusal> {
    let refusal = || Refusal::new(ErrorKind::TrustInvalid).at(place);
    if keys.is_empty() || keys.len() > MAX_KEYS {
        return Err(refusal()
            .expected("1 to 16 keys")
            .found(keys.len().to_string()));
    }
    if let Some(key) = keys.iter().find(|key| key.is_example()) {
        return Err(Refusal::new(ErrorKind::TrustExampleKey)
            .at(place)
            .found(format!("key {}", key.key_id())));
    }
    for (position, key) in keys.iter().enumerate() {
        if keys.iter().skip(position + 1).any(|other| other == key) {
            return Err(refusal()
                .expected("each key once")
                .found(format!("key {} twice", key.key_id())));
        }
    }
    if threshold == 0 || threshold > keys.len() {
        return Err(refusal()
            .expected(format!(
                "a threshold from 1 to {}, the number of keys",
                keys.len()
            ))
            .found(threshold.to_string()));
    }
    Ok(())
}
