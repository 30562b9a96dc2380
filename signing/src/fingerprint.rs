//! What two people read to each other before one trusts the other's keys.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::digest::{Digest, Hasher};
use crate::error::{ErrorKind, Refusal};
use crate::key::PublicKey;

/// Sets these digests apart from those of files.
const DOMAIN: &str = "toolward fingerprint v1";
/// How many digits stand together.
const GROUP_LENGTH: usize = 4;

/// The fingerprint of a name, a threshold and a set of keys: who may sign, and how many must. It stays the
/// same while these do, and the order of the keys does not matter. Written as 16 groups of 4 hexadecimal
/// digits.
///
/// It is also what state about signatures is kept under: with other keys, earlier numbers mean nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(Digest);

impl Fingerprint {
    /// The fingerprint of `threshold` of `keys`, of somebody called `name`: BLAKE3 over lines that end in a
    /// line feed: `toolward fingerprint v1`, the name, the threshold, and each key id, sorted.
    #[must_use]
    pub fn of(name: &str, threshold: usize, keys: &[PublicKey]) -> Self {
        let mut ids: Vec<_> = keys.iter().map(|key| key.key_id().to_string()).collect();
        ids.sort();
        ids.dedup();
        let mut hasher = Hasher::new();
        let threshold = threshold.to_string();
        for line in [DOMAIN, name, &threshold]
            .into_iter()
            .chain(ids.iter().map(String::as_str))
        {
            hasher.update(line.as_bytes());
            hasher.update(b"\n");
        }
        Self(hasher.finish())
    }

    /// The fingerprint without the spaces, as a name for state.
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

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

impl FromStr for Fingerprint {
    type Err = Refusal;

    /// Reads 64 hexadecimal digits as people write them: with spaces, dashes or colons between them, in
    /// either case.
    ///
    /// # Errors
    /// [`ErrorKind::DigestInvalid`]; a shortened fingerprint is none.
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

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

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
