//! The known revocations, by publisher.

use std::collections::BTreeMap;

use crate::digest::Digest;
use crate::error::{ErrorKind, Refusal};
use crate::key::KeyId;

/// Who revoked something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Revoker {
    /// The operator, in `[trust.deny]`.
    Operator,
    /// The publisher of the key or bundle.
    Publisher(String),
}

/// The reason for which a key or a bundle is revoked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// Who revoked it.
    pub by: Revoker,
    /// Why, in the publisher's words: sanitise it before it is shown.
    pub reason: String,
}

/// The reason shown for a key or bundle that the operator denies.
const DENIED: &str = "it stands in `[trust.deny]`";

/// The keys and bundles that the operator or one publisher has revoked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RevokedSet {
    keys: BTreeMap<KeyId, Revocation>,
    bundles: BTreeMap<Digest, Revocation>,
}

/// All known revocations. A publisher revokes only its own keys and bundles; the operator denies
/// keys and bundles of every publisher.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revocations(BTreeMap<Revoker, RevokedSet>);

impl Revocations {
    /// Revocations without any entry.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Whether nothing is revoked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Denies a key of any publisher.
    pub fn deny_key(&mut self, key: KeyId) {
        self.add_key(Revoker::Operator, key, DENIED);
    }

    /// Denies a bundle of any publisher, by its manifest's digest.
    pub fn deny_bundle(&mut self, digest: Digest) {
        self.add_bundle(Revoker::Operator, digest, DENIED);
    }

    pub(super) fn add_key(&mut self, by: Revoker, key: KeyId, reason: &str) {
        let reason = reason.to_owned();
        let set = self.0.entry(by.clone()).or_default();
        set.keys.insert(key, Revocation { by, reason });
    }

    pub(super) fn add_bundle(&mut self, by: Revoker, digest: Digest, reason: &str) {
        let reason = reason.to_owned();
        let set = self.0.entry(by.clone()).or_default();
        set.bundles.insert(digest, Revocation { by, reason });
    }

    fn extend_set(&mut self, by: Revoker, revoked: RevokedSet) {
        let set = self.0.entry(by).or_default();
        set.keys.extend(revoked.keys);
        set.bundles.extend(revoked.bundles);
    }

    /// Adds all revocations of `other`.
    pub fn extend(&mut self, other: &Self) {
        for (by, revoked) in &other.0 {
            self.extend_set(by.clone(), revoked.clone());
        }
    }

    /// Applies the revocations of `publisher` also to `other`, which is another name of the same
    /// publisher, such as the name of an ad-hoc key.
    pub fn share(&mut self, publisher: &str, other: &str) {
        if let Some(revoked) = self.0.get(&Revoker::Publisher(publisher.to_owned())) {
            self.extend_set(Revoker::Publisher(other.to_owned()), revoked.clone());
        }
    }

    /// The operator's and the publisher's own revocations.
    fn sets(&self, publisher: &str) -> impl Iterator<Item = &RevokedSet> {
        let revokers = [Revoker::Operator, Revoker::Publisher(publisher.to_owned())];
        revokers.into_iter().filter_map(|by| self.0.get(&by))
    }

    /// Whether a key of `publisher` is revoked, and why.
    #[must_use]
    pub fn key(&self, publisher: &str, key: &KeyId) -> Option<&Revocation> {
        self.sets(publisher).find_map(|set| set.keys.get(key))
    }

    /// Whether the operator denies a key, of any publisher.
    pub(crate) fn is_denied(&self, key: &KeyId) -> bool {
        let denied = self.0.get(&Revoker::Operator);
        denied.is_some_and(|denied| denied.keys.contains_key(key))
    }

    /// Whether a bundle of `publisher` is revoked, by its manifest's digest, and why.
    #[must_use]
    pub fn bundle(&self, publisher: &str, digest: &Digest) -> Option<&Revocation> {
        self.sets(publisher).find_map(|set| set.bundles.get(digest))
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
