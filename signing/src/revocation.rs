//! Revocation of keys and bundles. Publishers revoke their own keys and bundles in lists, and the
//! operator can deny any key or bundle. Revocations are checked when a bundle is verified, and
//! again for as long as it is in use.

pub(crate) mod known;

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::bundle::Bundle;
use crate::digest::Digest;
use crate::document::{
    DocumentKind, SignedDocument, Terms, Verified, line, name, number, optional_name,
};
use crate::envelope::Envelope;
use crate::error::{ErrorKind, Refusal};
use crate::key::KeyId;
use crate::publisher::{MAX_REASON, PublisherDocument, RevokedKey};
use crate::sequence;
use crate::timestamp::Timestamp;
use crate::trust::{Publisher, TrustStore};

pub use known::{Revocation, Revocations, Revoker};

/// The payload type under which a revocation list is signed.
pub const PAYLOAD_TYPE: &str = "application/vnd.toolward.revocations.v1+toml";
/// How large a list may be, in bytes.
pub const MAX_BYTES: usize = 256 * 1024;
/// How many keys, and how many bundles, a list may have.
pub const MAX_ENTRIES: usize = 1024;

const KIND: DocumentKind = DocumentKind {
    name: "revocation list",
    payload_type: PAYLOAD_TYPE,
    max_bytes: MAX_BYTES,
    max_envelope_bytes: crate::envelope::MAX_BYTES,
};

/// A list with the keys that signed it.
pub type SignedList = SignedDocument<RevocationList>;
/// A list that its publisher's threshold of keys has signed.
pub type VerifiedList = Verified<SignedList>;

/// The keys and bundles that a publisher revokes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevocationList {
    /// The name of the publisher that makes the list.
    #[serde(deserialize_with = "name")]
    pub publisher: String,
    /// Rises with every list, from 1. A later list has all entries of the earlier lists.
    #[serde(deserialize_with = "number::<1, _>")]
    pub version: u64,
    /// When the list was made.
    pub created: Timestamp,
    /// When a newer list is due. Revocations stay in force after this time.
    pub expires: Option<Timestamp>,
    /// Keys whose signatures no longer count; `since` is for people.
    #[serde(default)]
    pub keys: Vec<RevokedKey>,
    /// Bundles that must not run any more.
    #[serde(default)]
    pub bundles: Vec<RevokedBundle>,
}

/// A bundle that must not run any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevokedBundle {
    /// The manifest's digest.
    pub digest: Digest,
    /// The bundle's id, for people.
    #[serde(default, deserialize_with = "optional_name")]
    pub id: Option<String>,
    /// Why, in the publisher's words.
    #[serde(deserialize_with = "line::<MAX_REASON, _>")]
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

impl Revocations {
    /// Adds the keys and bundles that a publisher's list revokes, for that publisher.
    pub fn add_list(&mut self, list: &RevocationList) {
        let by = || Revoker::Publisher(list.publisher.clone());
        for key in &list.keys {
            self.add_key(by(), key.key_id, &key.reason);
        }
        for bundle in &list.bundles {
            self.add_bundle(by(), bundle.digest, &bundle.reason);
        }
    }

    /// Adds the keys that a publisher's document revokes, for that publisher.
    pub fn add_document(&mut self, document: &PublisherDocument) {
        for key in &document.revoked_keys {
            let by = Revoker::Publisher(document.name.clone());
            self.add_key(by, key.key_id, &key.reason);
        }
    }

    /// Checks a bundle that was verified earlier and is still in use.
    ///
    /// # Errors
    /// [`ErrorKind::BundleRevoked`]; [`ErrorKind::KeyRevoked`] if revocations leave fewer signers
    /// than the threshold.
    pub fn check(&self, bundle: &Bundle) -> Result<(), Refusal> {
        let publisher = &bundle.publisher;
        self.refuse_bundle(publisher.name(), &bundle.manifest_digest)?;
        publisher
            .quorum()
            .count(bundle.signers.iter().copied(), &|key| {
                self.key(publisher.name(), key).is_some()
            })
            .map(drop)
            .map_err(|refusal| refusal.at(format!("publisher {}", publisher.name())))
    }
}

/// Accepts the list of a publisher in the trust store. Enough of the publisher's keys must have
/// signed the list, and it must follow `previous`, the list accepted last.
///
/// A key that the list itself revokes counts for the list, since a list only removes permissions. A
/// key that was revoked before does not count. If too few signers of `previous` remain after later
/// revocations, a thief may have written `previous`, so this list need not follow it.
///
/// # Errors
/// [`ErrorKind::WrongPublisher`] for a list of another publisher, [`ErrorKind::ThresholdNotMet`],
/// [`ErrorKind::KeyRevoked`], [`ErrorKind::RevocationForeign`] if it names a key that the trust
/// store knows as another publisher's, [`ErrorKind::Rollback`], [`ErrorKind::Equivocation`],
/// [`ErrorKind::RevocationDropped`], and the errors about time.
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
    // The previous list counts if none of its signers was revoked, even if the publisher has other
    // keys by now.
    let previous = previous.filter(|previous| {
        let unrevoked = previous.signers.iter().filter(|key| !is_revoked(key));
        previous.publisher == list.publisher
            && (!previous.signers.iter().any(is_revoked)
                || unrevoked.count() >= publisher.threshold)
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
    let list = SignedDocument::new(list, &envelope, bytes, signers, warnings);
    Ok(Verified::new(list))
}

/// Reads a list that was accepted earlier and stored, with its signers at that time, in a place
/// that only the host can write. The list counts even if keys have changed since, or if it has
/// expired: revocations are permanent.
///
/// # Errors
/// The errors of [`RevocationList::parse`].
pub fn stored(bytes: &[u8], signers: Vec<KeyId>) -> Result<SignedList, Refusal> {
    let envelope = KIND.open(bytes)?;
    let list = RevocationList::parse(envelope.payload())?;
    Ok(SignedDocument::new(
        list,
        &envelope,
        bytes,
        signers,
        Vec::new(),
    ))
}

impl RevocationList {
    /// Reads a list. Signatures are not checked.
    ///
    /// # Errors
    /// [`ErrorKind::DocumentInvalid`], [`ErrorKind::DocumentSchema`], or the error of an invalid
    /// value.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let format = KIND.format();
        let limits = ["keys", "bundles"].map(|key| (key, MAX_ENTRIES, "entries of a kind"));
        let list: Self = format.read(bytes, &limits)?;
        format.check_times(list.created, list.expires)?;
        let keys: HashSet<_> = list.keys.iter().map(|key| key.key_id).collect();
        let bundles: HashSet<_> = list.bundles.iter().map(|bundle| bundle.digest).collect();
        if keys.len() != list.keys.len() || bundles.len() != list.bundles.len() {
            return Err(format
                .invalid()
                .expected("each key and each bundle once")
                .found("one of them twice"));
        }
        Ok(list)
    }

    /// Writes the list, the same bytes each time. The bytes are read back as a check.
    ///
    /// # Errors
    /// The errors of [`RevocationList::parse`], for a list that breaks a rule.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Refusal> {
        KIND.format().write(self, Self::parse)
    }

    /// The list in an envelope without signatures, see [`Envelope::sign`].
    ///
    /// # Errors
    /// The errors of [`RevocationList::to_bytes`].
    pub fn to_envelope(&self) -> Result<Envelope, Refusal> {
        Ok(Envelope::new(KIND.payload_type, self.to_bytes()?))
    }
}
