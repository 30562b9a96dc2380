//! The known revocations, by publisher.

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

/// Why a key or a bundle is revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// Who revoked it.
    pub by: Revoker,
    /// Why, in the publisher's words: sanitise it before it is shown.
    pub reason: String,
}

impl Revocation {
    fn new(by: Revoker, reason: &str) -> Self {
        Self {
            by,
            reason: reason.to_owned(),
        }
    }

    fn by_operator() -> Self {
        Self::new(Revoker::Operator, "it stands in `[trust.deny]`")
    }
}

/// The keys and bundles that one publisher has revoked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RevokedSet {
    keys: BTreeMap<KeyId, Revocation>,
    bundles: BTreeMap<Digest, Revocation>,
}

impl RevokedSet {
    fn extend(&mut self, other: Self) {
        self.keys.extend(other.keys);
        self.bundles.extend(other.bundles);
    }
}

/// All known revocations. A publisher revokes only its own keys and bundles, the operator denies those of every
/// publisher.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revocations {
    denied: RevokedSet,
    publishers: BTreeMap<String, RevokedSet>,
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
        self.denied.keys.insert(key, Revocation::by_operator());
    }

    /// Denies a bundle of any publisher, by its manifest's digest.
    pub fn deny_bundle(&mut self, digest: Digest) {
        self.denied
            .bundles
            .insert(digest, Revocation::by_operator());
    }

    /// Adds a key that a publisher revokes.
    pub(super) fn add_key(&mut self, publisher: &str, key: KeyId, reason: &str) {
        let revoked = Revocation::new(Revoker::Publisher(publisher.to_owned()), reason);
        let own = self.publishers.entry(publisher.to_owned()).or_default();
        own.keys.insert(key, revoked);
    }

    /// Adds a bundle that a publisher revokes.
    pub(super) fn add_bundle(&mut self, publisher: &str, digest: Digest, reason: &str) {
        let revoked = Revocation::new(Revoker::Publisher(publisher.to_owned()), reason);
        let own = self.publishers.entry(publisher.to_owned()).or_default();
        own.bundles.insert(digest, revoked);
    }

    /// Adds all revocations of `other`.
    pub fn extend(&mut self, other: &Self) {
        self.denied.extend(other.denied.clone());
        for (name, revoked) in &other.publishers {
            let own = self.publishers.entry(name.clone()).or_default();
            own.extend(revoked.clone());
        }
    }

    /// Applies the revocations of `publisher` to `other`, too: another name of the same publisher, such as the name of
    /// an ad-hoc key.
    pub fn share(&mut self, publisher: &str, other: &str) {
        if let Some(revoked) = self.publishers.get(publisher).cloned() {
            let own = self.publishers.entry(other.to_owned()).or_default();
            own.extend(revoked);
        }
    }

    /// Whether a key of `publisher` is revoked, and why.
    #[must_use]
    pub fn key(&self, publisher: &str, key: &KeyId) -> Option<&Revocation> {
        let own = || self.publishers.get(publisher)?.keys.get(key);
        self.denied.keys.get(key).or_else(own)
    }

    /// Whether the operator denies a key, of any publisher.
    pub(crate) fn is_denied(&self, key: &KeyId) -> bool {
        self.denied.keys.contains_key(key)
    }

    /// Whether a bundle of `publisher` is revoked, by its manifest's digest, and why.
    #[must_use]
    pub fn bundle(&self, publisher: &str, digest: &Digest) -> Option<&Revocation> {
        let own = || self.publishers.get(publisher)?.bundles.get(digest);
        self.denied.bundles.get(digest).or_else(own)
    }

    pub(crate) fn refuse_bundle(&self, publisher: &str, digest: &Digest) -> Result<(), Refusal> {
        let Some(revoked) = self.bundle(publisher, digest) else {
            return Ok(());
        };
        let by = match &revoked.by {
            Revoker::Operator => "denied by the operator in `[trust.deny]`".to_owned(),
            Revoker::Publisher(name) => {
                let reason = crate::text::quoted(&revoked.reason);
                format!("revoked by its publisher {name}: {reason}")
            }
        };
        Err(Refusal::new(ErrorKind::BundleRevoked)
            .at(format!("publisher {publisher}"))
            .expected("a bundle that is not revoked")
            .found(format!("digest {digest}, {by}")))
    }
}
