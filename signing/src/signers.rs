//! Finds the keys that signed an envelope, compares them with a threshold, and computes the
//! fingerprint of a set of keys.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::digest::Digest;
use crate::envelope::Envelope;
use crate::error::{ErrorKind, Refusal};
use crate::key::{KeyId, PublicKey};

/// How many keys a publisher or a channel may have: each may cost a verification per signature.
pub(crate) const MAX_KEYS: usize = 16;
/// How many bytes may be hashed to try keys that a signature does not name. Anyone can add
/// signatures with wrong key ids.
const MAX_UNHINTED_BYTES: usize = 64 * 1024 * 1024;
/// The minimum cost of an attempt with one key, in bytes that could be hashed in the same time.
const MIN_ATTEMPT_BYTES: usize = 32 * 1024;

/// The distinct keys whose signatures verify.
///
/// A key id is a hint. If it names no known key, or a key that does not verify the signature, other
/// keys are tried. [`MAX_UNHINTED_BYTES`] allows 256 such attempts for the largest manifest and
/// 2048 for a usual one. A signature that claims a known key but verifies with no tried key means
/// that the envelope was changed: the envelope is refused, even if other signatures suffice.
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

/// The keys of a publisher or channel: the owner's name for messages, the keys, and how many of
/// them must have signed.
#[derive(Clone, Copy)]
pub(crate) struct Quorum<'a>(
    pub(crate) &'a str,
    pub(crate) &'a [PublicKey],
    pub(crate) usize,
);

impl Quorum<'_> {
    /// The keys that signed and are not revoked, at least as many as the threshold.
    pub(crate) fn check(
        &self,
        envelope: &Envelope,
        is_revoked: &dyn Fn(&KeyId) -> bool,
    ) -> Result<Vec<KeyId>, Refusal> {
        let signers = verified(envelope, self.1.iter())?;
        self.count(signers, is_revoked)
    }

    /// As [`Quorum::check`], for keys whose signatures are already verified.
    pub(crate) fn count(
        &self,
        signers: impl IntoIterator<Item = KeyId>,
        is_revoked: &dyn Fn(&KeyId) -> bool,
    ) -> Result<Vec<KeyId>, Refusal> {
        let Self(whose, _, threshold) = *self;
        let (revoked, counting): (Vec<_>, Vec<_>) = signers.into_iter().partition(is_revoked);
        if counting.len() >= threshold {
            return Ok(counting);
        }
        let expected = format!("{threshold} distinct keys of {whose}");
        // Revocation is reported only if the signatures would have sufficed without it.
        Err(if revoked.len() + counting.len() >= threshold {
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

/// Separates these digests from the digests of files.
const DOMAIN: &str = "toolward fingerprint v1";
/// How many digits form a group.
const GROUP_LENGTH: usize = 4;

/// The fingerprint of a name, a threshold and a set of keys. The order of the keys does not matter.
/// It is written as 16 groups of 4 hexadecimal digits.
///
/// Sequence numbers and versions are stored under the fingerprint, because numbers from other keys
/// mean nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(Digest);

impl Fingerprint {
    /// Computes BLAKE3 over these lines, each with a line feed: `toolward fingerprint v1`, the
    /// name, the threshold, and each key id, sorted.
    #[must_use]
    pub fn of(name: &str, threshold: usize, keys: &[PublicKey]) -> Self {
        let mut ids: Vec<_> = keys.iter().map(|key| key.key_id().to_string()).collect();
        ids.sort();
        ids.dedup();
        let mut hasher = blake3::Hasher::new();
        let threshold = threshold.to_string();
        for line in [DOMAIN, name, &threshold]
            .into_iter()
            .chain(ids.iter().map(String::as_str))
        {
            hasher.update(line.as_bytes());
            hasher.update(b"\n");
        }
        Self(Digest::finish(&hasher))
    }

    /// The fingerprint as a digest, for the names of stored state.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, digit) in self.0.to_string().chars().enumerate() {
            if position > 0 && position % GROUP_LENGTH == 0 {
                f.write_str(" ")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

impl FromStr for Fingerprint {
    type Err = Refusal;

    /// Reads 64 hexadecimal digits as people write them: with spaces, dashes or colons between
    /// them, in either case.
    ///
    /// # Errors
    /// [`ErrorKind::DigestInvalid`], also for a shortened fingerprint.
    fn from_str(text: &str) -> Result<Self, Refusal> {
        let digits: String = text
            .chars()
            .filter(|c| !matches!(c, ' ' | '-' | ':' | '\n' | '\r' | '\t'))
            .map(|c| c.to_ascii_lowercase())
            .collect();
        digits.parse().map(Self).map_err(|_: Refusal| {
            Refusal::new(ErrorKind::DigestInvalid)
                .expected("a fingerprint: 64 hexadecimal digits, in groups or not")
                .found(crate::text::quoted(text))
                .hinted("copy all 16 groups")
        })
    }
}

crate::error::impl_serde_text!(Fingerprint);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::SigningKey;

    fn keys(numbers: &[u8]) -> Vec<PublicKey> {
        numbers
            .iter()
            .map(|number| SigningKey::from_bytes(&[*number; 32]).public())
            .collect()
    }

    #[test]
    fn name_threshold_and_keys_count_and_their_order_does_not() {
        let base = Fingerprint::of("acme", 1, &keys(&[1, 2]));
        assert_eq!(base, Fingerprint::of("acme", 1, &keys(&[2, 1])));
        for other in [
            Fingerprint::of("acne", 1, &keys(&[1, 2])),
            Fingerprint::of("acme", 2, &keys(&[1, 2])),
            Fingerprint::of("acme", 1, &keys(&[1])),
            Fingerprint::of("acme", 1, &keys(&[1, 2, 3])),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn what_a_person_writes_down_reads_back_and_a_part_of_it_does_not() {
        let fingerprint = Fingerprint::of("acme", 1, &keys(&[1]));
        let text = fingerprint.to_string();
        assert_eq!(text.split(' ').count(), 16);
        for spelling in [
            text.clone(),
            text.to_uppercase(),
            text.replace(' ', ""),
            text.replace(' ', ":"),
            format!(" {text}\n"),
        ] {
            assert_eq!(spelling.parse::<Fingerprint>().unwrap(), fingerprint);
        }
        for wrong in ["", text.trim_end_matches(|c| c != ' '), "acme"] {
            assert_eq!(
                wrong.parse::<Fingerprint>().unwrap_err().code(),
                "digest-invalid"
            );
        }
    }
}
