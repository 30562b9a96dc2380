//! The revocations that are known, by whose they are.

use std::collections::BTreeMap;

use crate::digest::Digest;
use crate::error::{ErrorKind, Refusal};
use crate::key::KeyId;

/// Who revoked something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Revoker {
    /// The operator, in `[trust.deny]`.
    Operator,
    /// The publisher whose it is.
    Publisher(String),
}

/// That something is revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revoked {
    /// By whom.
    pub by: Revoker,
    /// Why, in the publisher's words: sanitise it before it is shown.
    pub reason: String,
}

impl Revoked {
    fn by_operator() -> Self {
        Self {
            by: Revoker::Operator,
            reason: "it stands in `[trust.deny]`".to_owned(),
        }
    }

    fn by_publisher(name: &str, reason: &str) -> Self {
        Self {
            by: Revoker::Publisher(name.to_owned()),
            reason: reason.to_owned(),
        }
    }

    fn described(&self) -> String {
        match &self.by {
            Revoker::Operator => "denied by the operator in `[trust.deny]`".to_owned(),
            Revoker::Publisher(name) => format!(
                "revoked by its publisher {name}: {}",
                crate::text::quoted(&self.reason)
            ),
        }
    }
}

/// What one publisher has revoked of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Own {
    keys: BTreeMap<KeyId, Revoked>,
    bundles: BTreeMap<Digest, Revoked>,
}

/// All revocations that are known. What a publisher revokes reaches its own keys and bundles only, what the
/// operator denies reaches everybody's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revocations {
    denied: Own,
    publishers: BTreeMap<String, Own>,
}

impl Revocations {
    /// Nothing is revoked.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Whether nothing is revoked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Denies a key of any publisher.
    pub fn deny_key(&mut self, key: KeyId) {
        self.denied.keys.insert(key, Revoked::by_operator());
    }

    /// Denies a bundle of any publisher, by its manifest's digest.
    pub fn deny_bundle(&mut self, digest: Digest) {
        self.denied.bundles.insert(digest, Revoked::by_operator());
    }

    /// Adds a key that a publisher revokes.
    pub(super) fn add_key(&mut self, publisher: &str, key: KeyId, reason: &str) {
        let own = self.publishers.entry(publisher.to_owned()).or_default();
        own.keys
            .insert(key, Revoked::by_publisher(publisher, reason));
    }

    /// Adds a bundle that a publisher revokes.
    pub(super) fn add_bundle(&mut self, publisher: &str, digest: Digest, reason: &str) {
        let own = self.publishers.entry(publisher.to_owned()).or_default();
        own.bundles
            .insert(digest, Revoked::by_publisher(publisher, reason));
    }

    /// Adds all that `other` has.
    pub fn extend(&mut self, other: &Self) {
        let merge = |into: &mut Own, from: &Own| {
            into.keys.extend(from.keys.clone());
            into.bundles.extend(from.bundles.clone());
        };
        merge(&mut self.denied, &other.denied);
        for (name, own) in &other.publishers {
            merge(self.publishers.entry(name.clone()).or_default(), own);
        }
    }

    /// What `publisher` revokes counts for `other`, too: another name of the same, such as that of a key which
    /// is named by itself.
    pub fn share(&mut self, publisher: &str, other: &str) {
        let Some(own) = self.publishers.get(publisher).cloned() else {
            return;
        };
        let into = self.publishers.entry(other.to_owned()).or_default();
        into.keys.extend(own.keys);
        into.bundles.extend(own.bundles);
    }

    /// Whether a key of `publisher` is revoked, and why.
    #[must_use]
    pub fn key(&self, publisher: &str, key: &KeyId) -> Option<&Revoked> {
        let own = || self.publishers.get(publisher)?.keys.get(key);
        self.denied.keys.get(key).or_else(own)
    }

    /// Whether the operator denies a key, of any publisher.
    pub(crate) fn is_denied(&self, key: &KeyId) -> bool {
        self.denied.keys.contains_key(key)
    }

    /// Whether a bundle of `publisher` is revoked, by its manifest's digest, and why.
    #[must_use]
    pub fn bundle(&self, publisher: &str, digest: &Digest) -> Option<&Revoked> {
        let own = || self.publishers.get(publisher)?.bundles.get(digest);
        self.denied.bundles.get(digest).or_else(own)
    }

    pub(crate) fn refuse_bundle(&self, publisher: &str, digest: &Digest) -> Result<(), Refusal> {
        match self.bundle(publisher, digest) {
            None => Ok(()),
            Some(revoked) => Err(Refusal::new(ErrorKind::BundleRevoked)
                .at(format!("publisher {publisher}"))
                .expected("a bundle that is not revoked")
                .found(format!("digest {digest}, {}", revoked.described()))),
        }
    }
}
