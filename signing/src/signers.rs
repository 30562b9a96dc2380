//! Which of some keys signed an envelope. For whom that counts is decided elsewhere.

use std::collections::BTreeSet;

use crate::envelope::Envelope;
use crate::error::{ErrorKind, Refusal};
use crate::key::{KeyId, PublicKey};

/// How many keys a publisher or a channel may have: each may cost a verification per signature.
pub(crate) const MAX_KEYS: usize = 16;
/// How many bytes are hashed for signatures whose key id names no known key: anybody can add such signatures.
const MAX_UNHINTED_BYTES: usize = 64 * 1024 * 1024;
/// What an attempt with one key costs at least, in bytes hashed in the same time.
const MIN_ATTEMPT_BYTES: usize = 32 * 1024;

/// The keys whose signatures verify, distinct.
///
/// A key id is a hint: where it names no known key, other keys are tried, as many as [`MAX_UNHINTED_BYTES`] allows, which is
/// 256 for the largest manifest and 2048 for a usual one. A signature that claims one of the keys
/// and verifies with none is refused even if others suffice: somebody changed the envelope.
pub(crate) fn verified<'a>(
    envelope: &Envelope,
    keys: impl Iterator<Item = &'a PublicKey> + Clone,
) -> Result<BTreeSet<KeyId>, Refusal> {
    let message = envelope.to_be_signed();
    let mut attempts = MAX_UNHINTED_BYTES / message.len().max(MIN_ATTEMPT_BYTES);
    let mut verified = BTreeSet::new();
    for signature in envelope.signatures() {
        let claimed: Option<KeyId> = signature
            .keyid
            .as_deref()
            .and_then(|keyid| keyid.parse().ok());
        let hinted = claimed.and_then(|id| keys.clone().find(|key| key.key_id() == id));
        let others = keys
            .clone()
            .filter(|key| hinted.is_none_or(|hinted| hinted.key_id() != key.key_id()));
        let verifies = |key: &&PublicKey| key.verify(&message, &signature.sig).is_ok();
        let signer = hinted.filter(verifies).or_else(|| {
            others
                .take_while(|_| {
                    let left = attempts.checked_sub(1);
                    attempts = left.unwrap_or(0);
                    left.is_some()
                })
                .find(verifies)
        });
        match (signer, hinted) {
            (Some(key), _) => {
                verified.insert(key.key_id());
            }
            (None, Some(hinted)) => {
                return Err(Refusal::new(ErrorKind::SignatureInvalid)
                    .found(format!("a signature that claims key {}", hinted.key_id())));
            }
            (None, None) => {}
        }
    }
    Ok(verified)
}

/// Who must have signed: a threshold of these keys.
#[derive(Clone, Copy)]
pub(crate) struct Quorum<'a> {
    /// Whose keys they are, for messages.
    pub(crate) whose: &'a str,
    /// The keys.
    pub(crate) keys: &'a [PublicKey],
    /// How many distinct ones.
    pub(crate) threshold: usize,
}

impl Quorum<'_> {
    /// The keys that signed and count, at least the threshold. Those that `is_revoked` do not count.
    pub(crate) fn check(
        &self,
        envelope: &Envelope,
        is_revoked: &dyn Fn(&KeyId) -> bool,
    ) -> Result<Vec<KeyId>, Refusal> {
        let signers = verified(envelope, self.keys.iter())?;
        self.count(signers, is_revoked)
    }

    /// [`Quorum::check`] of keys whose signatures were verified.
    pub(crate) fn count(
        &self,
        signers: impl IntoIterator<Item = KeyId>,
        is_revoked: &dyn Fn(&KeyId) -> bool,
    ) -> Result<Vec<KeyId>, Refusal> {
        let (revoked, counting): (Vec<_>, Vec<_>) = signers.into_iter().partition(is_revoked);
        if counting.len() >= self.threshold {
            return Ok(counting);
        }
        let expected = format!("{} distinct keys of {}", self.threshold, self.whose);
        // Revocation is the reason only where the signatures would have sufficed without.
        Err(if revoked.len() + counting.len() >= self.threshold {
            let revoked: Vec<_> = revoked.iter().map(KeyId::to_string).collect();
            Refusal::new(ErrorKind::KeyRevoked)
                .expected(format!("{expected} that are not revoked"))
                .found(format!(
                    "{}, and revoked ones: {}",
                    counting.len(),
                    revoked.join(", ")
                ))
        } else {
            Refusal::new(ErrorKind::ThresholdNotMet)
                .expected(expected)
                .found(counting.len().to_string())
        })
    }
}
