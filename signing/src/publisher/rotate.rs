//! From one document to the next. The keys stand in the document, so that it is read before it is verified;
//! nothing of it is used until enough of the right keys have signed it.

use super::{KIND, MAX_CHAIN, PublisherDocument, Terms, VerifiedPublisher};
use crate::digest::Digest;
use crate::document::Signed;
use crate::envelope::Envelope;
use crate::error::{ErrorKind, Refusal};
use crate::key::KeyId;
use crate::revocation::known::Revocations;
use crate::sequence::{self, Advance};
use crate::signers::Quorum;
use crate::verified::Verified;

/// Accepts a publisher's document, of any version, without an earlier one to compare it with: its own threshold
/// of its own keys signed it. Whose keys they are, a person has to find out, by
/// [`fingerprint`](PublisherDocument::fingerprint).
///
/// # Errors
/// The reason for which the document is refused.
pub fn first_use(bytes: &[u8], terms: &Terms<'_>) -> Result<VerifiedPublisher, Refusal> {
    let candidate = Candidate::read(bytes)?;
    let signers = candidate.signed_by_itself(terms.revocations)?;
    candidate.accept(bytes, signers, Some(terms))
}

/// Reads again a document that was accepted earlier and kept: only its own threshold is checked. Its time,
/// and whether keys were revoked since, is checked with each bundle of the publisher.
///
/// # Errors
/// The reason for which the document is refused.
pub fn stored(bytes: &[u8]) -> Result<VerifiedPublisher, Refusal> {
    let candidate = Candidate::read(bytes)?;
    let signers = candidate.signed_by_itself(&Revocations::none())?;
    candidate.accept(bytes, signers, None)
}

/// Goes from `current`, version N, to version N + 1: the thresholds of both must have signed it. A document
/// with the bytes of `current` is accepted, too, and changes nothing.
///
/// A key that is revoked counts for neither: not one that `terms` know, not one that either document
/// revokes. So a document that says of a key that it was stolen never rests on that key. (Who has no other key
/// leaves it out first, in a document that it signs itself, and revokes it in the one after.)
///
/// # Errors
/// [`ErrorKind::WrongPublisher`] for another publisher's document, [`ErrorKind::Rollback`] for an earlier version,
/// [`ErrorKind::Equivocation`] for another document of the same version, [`ErrorKind::VersionSkipped`] for a later
/// one than the next, [`ErrorKind::ThresholdNotMet`] or [`ErrorKind::KeyRevoked`] if too few keys signed that count,
/// [`ErrorKind::RevocationDropped`] if a key is no longer revoked, [`ErrorKind::ResetWithoutRevocation`] if
/// sequences are lowered though no key is newly revoked, and the reasons about time.
pub fn rotate(
    current: &VerifiedPublisher,
    next: &[u8],
    terms: &Terms<'_>,
) -> Result<VerifiedPublisher, Refusal> {
    step(current, next, terms, true)
}

/// [`rotate`] through all documents since `current`, given in order; earlier ones are passed over. Only the
/// last has to be valid now. Gives each newly accepted document, so that each one's resets can be applied.
///
/// # Errors
/// Those of [`rotate`], for the first document that is refused; then none of them counts.
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
    let found = (document.version, candidate.digest);
    match sequence::check(Some((current.version, current.digest)), found) {
        Ok(Advance::Same) => {
            let signers = candidate.signed_by_itself(terms.revocations)?;
            return candidate.accept(next, signers, terms_for_age);
        }
        Ok(_) => {}
        Err(refusal) => {
            // Anybody can write another document of this version: it is news only if the publisher did.
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
    let signers = candidate.signed_by_itself(terms.revocations)?;
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

/// A document whose signatures are not checked yet.
struct Candidate {
    envelope: Envelope,
    document: PublisherDocument,
    digest: Digest,
}

impl Candidate {
    fn read(bytes: &[u8]) -> Result<Self, Refusal> {
        let envelope = KIND.open(bytes)?;
        Ok(Self {
            document: PublisherDocument::parse(envelope.payload())?,
            digest: Digest::of(envelope.payload()),
            envelope,
        })
    }

    fn signed_by_itself(&self, revocations: &Revocations) -> Result<Vec<KeyId>, Refusal> {
        self.signed_by(&self.document, revocations)
    }

    /// The keys of `document` that signed this one and count.
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
        Quorum {
            whose: &format!(
                "publisher {}, by version {} of its document",
                document.name, document.version
            ),
            keys: &document.keys,
            threshold: document.threshold,
        }
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
        Ok(Verified::new(Signed {
            document: self.document,
            digest: self.digest,
            envelope_bytes: bytes.into(),
            signers,
            warnings,
        }))
    }
}
