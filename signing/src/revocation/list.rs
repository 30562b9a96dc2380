//! Revocation lists: what a publisher says of its own keys and bundles, whenever it has to.

use crate::digest::Digest;
use crate::document::{PayloadKind, Signed, Terms};
use crate::error::{ErrorKind, Refusal};
use crate::key::KeyId;
use crate::publisher::RevokedKey;
use crate::sequence;
use crate::timestamp::Timestamp;
use crate::trust::{Publisher, TrustStore};
use crate::verified::Verified;

/// The payload type under which a revocation list is signed.
pub const PAYLOAD_TYPE: &str = "application/vnd.toolward.revocations.v1+toml";
/// How large a list may be, in bytes.
pub const MAX_BYTES: usize = 256 * 1024;
/// How many keys, and how many bundles, a list may name.
pub const MAX_ENTRIES: usize = 1024;

pub(super) const KIND: PayloadKind = PayloadKind {
    name: "revocation list",
    payload_type: PAYLOAD_TYPE,
    max_bytes: MAX_BYTES,
    max_envelope_bytes: crate::envelope::MAX_BYTES,
};

/// A list with what is known of its signatures.
pub type SignedList = Signed<RevocationList>;
/// A list that its publisher's threshold of keys has signed.
pub type VerifiedList = Verified<SignedList>;

/// What a publisher revokes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevocationList {
    /// Whose keys and bundles they are.
    pub publisher: String,
    /// Rises with every list, from 1. A later list has all entries of the earlier.
    pub version: u64,
    /// When the list was made.
    pub created: Timestamp,
    /// When there will be a newer one. What is revoked stays so after that.
    pub expires: Option<Timestamp>,
    /// Keys that count for nothing any more; `since` is for people.
    pub keys: Vec<RevokedKey>,
    /// Bundles that must not run any more.
    pub bundles: Vec<RevokedBundle>,
}

/// A bundle that must not run any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevokedBundle {
    /// The manifest's digest.
    pub digest: Digest,
    /// The bundle's id, for people.
    pub id: Option<String>,
    /// Why, in the publisher's words.
    pub reason: String,
}

impl RevocationList {
    /// The first entry of `earlier` that this list leaves out.
    fn lacks(&self, earlier: &Self) -> Option<String> {
        let has_key = |key: &KeyId| self.keys.iter().any(|entry| entry.key_id == *key);
        let has_bundle = |digest: &Digest| self.bundles.iter().any(|entry| entry.digest == *digest);
        let key = earlier.keys.iter().find(|entry| !has_key(&entry.key_id));
        let bundle = earlier
            .bundles
            .iter()
            .find(|entry| !has_bundle(&entry.digest));
        key.map(|entry| format!("none for key {}", entry.key_id))
            .or_else(|| bundle.map(|entry| format!("none for bundle {}", entry.digest)))
    }
}

/// Accepts the list of a publisher of the trust store: its threshold of keys signed it, and it follows
/// `previous`, the one accepted last.
///
/// A key that the list itself revokes counts for it, since a list only takes away; one that was revoked
/// before does not. A `previous` that too few of its signers are left of, because keys were revoked since, is
/// no obstacle: the thief may have written it.
///
/// # Errors
/// [`ErrorKind::WrongPublisher`] for a list of somebody else, [`ErrorKind::ThresholdNotMet`], [`ErrorKind::KeyRevoked`],
/// [`ErrorKind::RevocationForeign`] if it names a key that the trust store knows as another publisher's,
/// [`ErrorKind::Rollback`], [`ErrorKind::Equivocation`], [`ErrorKind::RevocationDropped`], and the reasons about time.
pub fn accept(
    bytes: &[u8],
    publisher: &Publisher,
    trust: &TrustStore,
    previous: Option<&SignedList>,
    terms: &Terms<'_>,
) -> Result<VerifiedList, Refusal> {
    let at_list = |refusal: Refusal| refusal.at(KIND.name);
    let envelope = KIND.open(bytes)?;
    let is_revoked = |key: &KeyId| {
        publisher.revokes(key) || terms.revocations.key(publisher.name(), key).is_some()
    };
    let signers = publisher
        .quorum()
        .check(&envelope, &is_revoked)
        .map_err(at_list)?;
    let list = RevocationList::parse(envelope.payload())?;
    if list.publisher != publisher.name() {
        return Err(Refusal::new(ErrorKind::WrongPublisher)
            .at(KIND.name)
            .expected(format!("publisher {}", publisher.name()))
            .found(format!("publisher {}", list.publisher)));
    }
    for key in &list.keys {
        let owner = trust
            .owner(&key.key_id)
            .filter(|owner| owner.name() != publisher.name());
        if let Some(owner) = owner {
            return Err(Refusal::new(ErrorKind::RevocationForeign)
                .at(KIND.name)
                .expected(format!("keys of publisher {}", publisher.name()))
                .found(format!(
                    "key {}, which publisher {} has",
                    key.key_id,
                    owner.name()
                )));
        }
    }
    let digest = Digest::of(envelope.payload());
    // Without a revoked key among its signers it binds, even if the publisher's keys are others by now.
    let previous = previous.filter(|previous| {
        let unrevoked = previous.signers.iter().filter(|key| !is_revoked(key));
        previous.publisher == list.publisher
            && (!previous.signers.iter().any(is_revoked)
                || unrevoked.count() >= publisher.threshold())
    });
    if let Some(previous) = previous {
        sequence::check(
            Some((previous.version, previous.digest)),
            (list.version, digest),
        )
        .map_err(|refusal| at_list(refusal).hinted("get the publisher's current list"))?;
        if let Some(missing) = list.lacks(previous) {
            return Err(Refusal::new(ErrorKind::RevocationDropped)
                .at(KIND.name)
                .expected("all entries of the list before")
                .found(missing));
        }
    }
    let warnings = KIND.check_age(list.created, list.expires, terms)?;
    Ok(Verified::new(Signed {
        document: list,
        digest,
        envelope_bytes: bytes.into(),
        signers,
        warnings,
    }))
}

/// Reads again a list that was accepted earlier and kept, with the signers of then, where nobody else can
/// write. It counts though keys have changed since, and though it has expired: what is revoked stays so.
///
/// # Errors
/// Those of [`RevocationList::parse`].
pub fn stored(bytes: &[u8], signers: Vec<KeyId>) -> Result<SignedList, Refusal> {
    let envelope = KIND.open(bytes)?;
    Ok(Signed {
        document: RevocationList::parse(envelope.payload())?,
        digest: Digest::of(envelope.payload()),
        envelope_bytes: bytes.into(),
        signers,
        warnings: Vec::new(),
    })
}
