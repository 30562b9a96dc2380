//! Publisher documents: which keys a publisher signs with, how many of them must sign, and which
//! keys it has revoked. The operator, not a document, grants the ids that a publisher may publish.
//!
//! A document contains its keys, so it is read before it is verified. None of its contents are used
//! until enough of the right keys have signed it.

use std::collections::HashSet;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

use crate::digest::Digest;
use crate::document::{DocumentKind, SignedDocument, Verified, line, name, number};
use crate::envelope::Envelope;
use crate::error::{ErrorKind, Refusal, refuse};
use crate::key::{KeyId, PublicKey};
use crate::revocation::known::Revocations;
use crate::sequence::{self, Advance};
use crate::signers::{Fingerprint, MAX_KEYS, Quorum};
use crate::timestamp::Timestamp;

pub use crate::document::Terms;
pub use crate::sequence::Reset;

/// The payload type under which a publisher document is signed.
pub const PAYLOAD_TYPE: &str = "application/vnd.toolward.publisher.v1+toml";
/// How large a document may be, in bytes: on first use it is read before any key is trusted.
pub const MAX_BYTES: usize = 256 * 1024;
/// How many revoked keys, and how many resets, a document may list.
pub const MAX_ENTRIES: usize = 256;
/// How long a reason for a revocation may be, in characters.
pub const MAX_REASON: usize = 200;
/// How many documents a chain may have: each costs the verification of its signatures.
pub const MAX_CHAIN: usize = 1024;

pub(crate) const KIND: DocumentKind = DocumentKind {
    name: "publisher document",
    payload_type: PAYLOAD_TYPE,
    max_bytes: MAX_BYTES,
    max_envelope_bytes: crate::envelope::MAX_BYTES,
};

/// A document whose signatures were verified.
pub type VerifiedPublisher = Verified<SignedDocument<PublisherDocument>>;

/// A publisher's keys and revocations. The signatures are verified only if the document is in a
/// [`VerifiedPublisher`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublisherDocument {
    /// The publisher's name, as in its manifests.
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// Rises by one with every document, from 1.
    #[serde(deserialize_with = "number::<1, _>")]
    pub version: u64,
    /// When the document was made.
    pub created: Timestamp,
    /// When it stops being valid, and with it every bundle of the publisher.
    pub expires: Option<Timestamp>,
    /// How many distinct keys must sign a bundle, a list or the next document.
    pub threshold: usize,
    /// The keys, 1 to 16, all distinct.
    #[serde(default, deserialize_with = "read_keys", serialize_with = "write_keys")]
    pub keys: Vec<PublicKey>,
    /// Keys whose signatures no longer count, on any document. None of them is among `keys`.
    #[serde(default)]
    pub revoked_keys: Vec<RevokedKey>,
    /// Sequences that are lowered after a key was stolen.
    #[serde(default)]
    pub resets: Vec<Reset>,
}

/// A key whose signatures no longer count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevokedKey {
    /// The revoked key.
    pub key_id: KeyId,
    /// Since when someone else may have had the key, for people to read. A signature has no
    /// trustworthy time, so signatures from before `since` do not count either.
    pub since: Option<Timestamp>,
    /// Why, in the publisher's words.
    #[serde(deserialize_with = "line::<MAX_REASON, _>")]
    pub reason: String,
}

impl PublisherDocument {
    /// The fingerprint that people compare before they trust this publisher.
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

/// Accepts a publisher's document of any version, without an earlier document. Enough of the keys
/// in the document must have signed it. A person must confirm whose keys they are, by the
/// [`fingerprint`](PublisherDocument::fingerprint).
///
/// # Errors
/// The reason for which the document is refused.
pub fn first_use(bytes: &[u8], terms: &Terms<'_>) -> Result<VerifiedPublisher, Refusal> {
    let candidate = Candidate::read(bytes)?;
    let signers = candidate.signed_by(&candidate.document, terms.revocations)?;
    candidate.accept(bytes, signers, Some(terms))
}

/// Reads a document that was accepted earlier and stored. Checks only that enough of the keys in it
/// have signed it. Its time and later revocations of its keys are checked with each bundle of the
/// publisher.
///
/// # Errors
/// The reason for which the document is refused.
pub fn stored(bytes: &[u8]) -> Result<VerifiedPublisher, Refusal> {
    let candidate = Candidate::read(bytes)?;
    let signers = candidate.signed_by(&candidate.document, &Revocations::none())?;
    candidate.accept(bytes, signers, None)
}

/// Rotates from `current`, version N, to version N + 1, which must have enough signatures for the
/// thresholds of both versions. An envelope with the same document as `current` is accepted, too.
///
/// A key that `terms` or one of the two documents revokes counts for neither threshold. So a
/// document that revokes a stolen key never depends on that key. (A publisher with no other key
/// first replaces the stolen key, in a document that the stolen key signs, and revokes it in the
/// next document.)
///
/// # Errors
/// [`ErrorKind::WrongPublisher`] for another publisher's document, [`ErrorKind::Rollback`] for an
/// earlier version, [`ErrorKind::Equivocation`] for another document of the same version,
/// [`ErrorKind::VersionSkipped`] for a version after N + 1, [`ErrorKind::ThresholdNotMet`] or
/// [`ErrorKind::KeyRevoked`] if too few keys that count signed it, [`ErrorKind::RevocationDropped`]
/// if a key is no longer revoked, [`ErrorKind::ResetWithoutRevocation`] if sequences are lowered
/// though no key is newly revoked, and the errors about time.
pub fn rotate(
    current: &VerifiedPublisher,
    next: &[u8],
    terms: &Terms<'_>,
) -> Result<VerifiedPublisher, Refusal> {
    step(current, next, terms, true)
}

/// Applies [`rotate`] to all documents since `current`, in order. Documents older than the newest
/// accepted document are skipped; if the last document of the chain is older, it is refused as a
/// rollback. Only the last document must be valid now. Returns each newly accepted document, so
/// that the resets of each can be applied.
///
/// # Errors
/// The errors of [`rotate`], for the first document that is refused. In that case none of them is
/// accepted.
pub fn rotate_through(
    current: &VerifiedPublisher,
    chain: &[&[u8]],
    terms: &Terms<'_>,
) -> Result<Vec<VerifiedPublisher>, Refusal> {
    if chain.len() > MAX_CHAIN {
        return Err(Refusal::new(ErrorKind::DocumentInvalid)
            .at("chain of publisher documents")
            .expected(format!("at most {MAX_CHAIN} documents"))
            .found(chain.len().to_string()));
    }
    let mut accepted: Vec<VerifiedPublisher> = Vec::new();
    for (position, bytes) in chain.iter().enumerate() {
        let newest = accepted.last().unwrap_or(current);
        let document = Candidate::read(bytes)?.document;
        let is_last = position + 1 == chain.len();
        if document.version < newest.version && !is_last {
            continue;
        }
        let next = step(newest, bytes, terms, is_last)?;
        if next.version > newest.version {
            accepted.push(next);
        }
    }
    Ok(accepted)
}

fn step(
    current: &VerifiedPublisher,
    next: &[u8],
    terms: &Terms<'_>,
    is_last: bool,
) -> Result<VerifiedPublisher, Refusal> {
    let candidate = Candidate::read(next)?;
    let document = &candidate.document;
    if document.name != current.name {
        return Err(Refusal::new(ErrorKind::WrongPublisher)
            .at(KIND.name)
            .expected(format!("publisher {}", current.name))
            .found(format!("publisher {}", document.name))
            .hinted("name the document of the publisher that is to be updated"));
    }
    let terms_for_age = is_last.then_some(terms);
    let digest = Digest::of(candidate.envelope.payload());
    let found = (document.version, digest);
    match sequence::check(Some((current.version, current.digest)), found) {
        Ok(Advance::Same) => {
            let signers = candidate.signed_by(document, terms.revocations)?;
            return candidate.accept(next, signers, terms_for_age);
        }
        Ok(_) => {}
        Err(refusal) => {
            // Anyone can write another document of this version; it is equivocation only if the
            // publisher signed it.
            if refusal.kind() == ErrorKind::Equivocation {
                candidate.signed_by(current, terms.revocations)?;
            }
            return Err(match refusal.kind() {
                ErrorKind::Rollback => refusal.hinted("get the publisher's current document"),
                _ => refusal,
            }
            .at(KIND.name));
        }
    }
    if Some(document.version) != current.version.checked_add(1) {
        return Err(Refusal::new(ErrorKind::VersionSkipped)
            .at(KIND.name)
            .expected(format!("version {}", current.version.saturating_add(1)))
            .found(format!("version {}", document.version)));
    }
    candidate.signed_by(current, terms.revocations)?;
    let signers = candidate.signed_by(document, terms.revocations)?;
    check_revocations(current, document).map_err(|refusal| refusal.at(KIND.name))?;
    candidate.accept(next, signers, terms_for_age)
}

fn check_revocations(current: &PublisherDocument, next: &PublisherDocument) -> Result<(), Refusal> {
    let dropped = current
        .revoked_keys
        .iter()
        .find(|revoked| !next.revokes(&revoked.key_id));
    if let Some(dropped) = dropped {
        return Err(Refusal::new(ErrorKind::RevocationDropped)
            .expected("all `[[revoked_keys]]` of the document before")
            .found(format!("none for key {}", dropped.key_id)));
    }
    if !next.resets.is_empty() && next.revoked_keys.len() == current.revoked_keys.len() {
        return Err(Refusal::new(ErrorKind::ResetWithoutRevocation)
            .expected("a newly revoked key")
            .found(format!("{} `[[resets]]` and none", next.resets.len())));
    }
    Ok(())
}

/// A document before its signatures are checked.
struct Candidate {
    envelope: Envelope,
    document: PublisherDocument,
}

impl Candidate {
    fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        let envelope = KIND.open(bytes)?;
        Ok(Self {
            document: PublisherDocument::parse(envelope.payload())?,
            envelope,
        })
    }

    /// The keys of `document` that signed this candidate and are not revoked: at least as many as
    /// the threshold of `document`.
    fn signed_by(
        &self,
        document: &PublisherDocument,
        revocations: &Revocations,
    ) -> Result<Vec<KeyId>, Refusal> {
        let is_revoked = |key: &KeyId| {
            self.document.revokes(key)
                || document.revokes(key)
                || revocations.key(&self.document.name, key).is_some()
        };
        let whose = format!(
            "publisher {}, by version {} of its document",
            document.name, document.version
        );
        Quorum(&whose, &document.keys, document.threshold)
            .check(&self.envelope, &is_revoked)
            .map_err(|refusal| refusal.at(KIND.name))
    }

    fn accept(
        self,
        bytes: &[u8],
        signers: Vec<KeyId>,
        terms: Option<&Terms<'_>>,
    ) -> Result<VerifiedPublisher, Refusal> {
        let (created, expires) = (self.document.created, self.document.expires);
        let warnings = terms
            .map(|terms| KIND.check_age(created, expires, terms))
            .transpose()?
            .unwrap_or_default();
        let document = SignedDocument::new(self.document, &self.envelope, bytes, signers, warnings);
        Ok(Verified::new(document))
    }
}

impl PublisherDocument {
    /// Reads a document. Signatures are not checked.
    ///
    /// # Errors
    /// [`ErrorKind::DocumentInvalid`], [`ErrorKind::DocumentSchema`],
    /// [`ErrorKind::TrustExampleKey`], or the error of an invalid value, such as
    /// [`ErrorKind::KeyWeak`].
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let format = KIND.format();
        let limits = [
            ("keys", MAX_KEYS, "`[[keys]]`"),
            ("revoked_keys", MAX_ENTRIES, "`[[revoked_keys]]`"),
            ("resets", MAX_ENTRIES, "`[[resets]]`"),
        ];
        let document: Self = format.read(bytes, &limits)?;
        let count = document.keys.len();
        if !(1..=count).contains(&document.threshold) {
            return Err(format
                .invalid()
                .expected(format!("a threshold from 1 to {count}, the number of keys"))
                .found(document.threshold.to_string()));
        }
        format.check_times(document.created, document.expires)?;
        document
            .check_sets()
            .map_err(|refusal| refusal.at(KIND.name))?;
        Ok(document)
    }

    /// Writes the document, the same bytes each time. The bytes are read back as a check.
    ///
    /// # Errors
    /// The errors of [`PublisherDocument::parse`], for a document that breaks a rule.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Refusal> {
        KIND.format().write(self, Self::parse)
    }

    /// The document in an envelope without signatures, see [`Envelope::sign`].
    ///
    /// # Errors
    /// The errors of [`PublisherDocument::to_bytes`].
    pub fn to_envelope(&self) -> Result<Envelope, Refusal> {
        Ok(Envelope::new(KIND.payload_type, self.to_bytes()?))
    }

    /// Refuses duplicates, and a key that is both in use and revoked.
    fn check_sets(&self) -> Result<(), Refusal> {
        let mut seen = HashSet::new();
        let keys = self.keys.iter().map(PublicKey::key_id);
        let revoked = self.revoked_keys.iter().map(|revoked| revoked.key_id);
        if let Some(key) = keys.chain(revoked).find(|key| !seen.insert(*key)) {
            return Err(Refusal::new(ErrorKind::DocumentInvalid)
                .expected("each key once, in `[[keys]]` or in `[[revoked_keys]]`")
                .found(format!("key {key} twice")));
        }
        let mut seen = HashSet::new();
        match self.resets.iter().find(|reset| !seen.insert(&reset.id)) {
            Some(reset) => Err(Refusal::new(ErrorKind::DocumentInvalid)
                .expected("each id once in `[[resets]]`")
                .found(format!("{} twice", reset.id))),
            None => Ok(()),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyTable {
    #[serde(deserialize_with = "read_key")]
    pem: PublicKey,
}

fn read_keys<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PublicKey>, D::Error> {
    let tables = Vec::<KeyTable>::deserialize(from)?;
    Ok(tables.into_iter().map(|table| table.pem).collect())
}

fn read_key<'de, D: Deserializer<'de>>(from: D) -> Result<PublicKey, D::Error> {
    let pem = String::deserialize(from)?;
    let key = PublicKey::from_pem(pem.trim()).map_err(refuse)?;
    if key.is_example() {
        let example = Refusal::new(ErrorKind::TrustExampleKey);
        return Err(refuse(example.found(format!("key {}", key.key_id()))));
    }
    Ok(key)
}

/// Writes keys as PEM. A key that can't be written is refused when the document is read back.
fn write_keys<S: Serializer>(keys: &[PublicKey], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(
        keys.iter()
            .map(|key| json!({ "pem": key.to_pem().unwrap_or_default() })),
    )
}
