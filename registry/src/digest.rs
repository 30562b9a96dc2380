//! SHA-256 digests, the only kind that is taken from a registry. What a bundle is known by is another one,
//! the BLAKE3 digest of its manifest.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::failure::{Failure, Reason};
use crate::text::quoted;

/// The digest of a blob or an OCI manifest, written as `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobDigest([u8; 32]);

impl BlobDigest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The 64 hexadecimal digits without a prefix.
    #[must_use]
    pub fn hex(&self) -> String {
        self.0.iter().fold(String::new(), |mut hex, byte| {
            for nibble in [byte >> 4, byte & 15] {
                hex.extend(char::from_digit(u32::from(nibble), 16));
            }
            hex
        })
    }
}

/// A digest in the making, for bytes that arrive in pieces.
#[derive(Clone, Default)]
pub(crate) struct Hasher(Sha256);

impl Hasher {
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> BlobDigest {
        BlobDigest(self.0.finalize().into())
    }
}

impl fmt::Display for BlobDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for BlobDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlobDigest({self})")
    }
}

impl FromStr for BlobDigest {
    type Err = Failure;

    /// # Errors
    /// [`Reason::DigestInvalid`] for another algorithm or another spelling.
    fn from_str(text: &str) -> Result<Self, Failure> {
        let refuse = || {
            Failure::new(Reason::DigestInvalid)
                .expected("`sha256:` and 64 lower-case hexadecimal digits")
                .found(quoted(text))
        };
        let hex = text.strip_prefix("sha256:").ok_or_else(refuse)?;
        let mut bytes = [0; 32];
        let digits = hex.as_bytes().chunks_exact(2);
        if hex.len() != 64 {
            return Err(refuse());
        }
        for (byte, pair) in bytes.iter_mut().zip(digits) {
            for digit in pair {
                let value = match digit {
                    b'0'..=b'9' => digit - b'0',
                    b'a'..=b'f' => digit - b'a' + 10,
                    _ => return Err(refuse()),
                };
                *byte = *byte << 4 | value;
            }
        }
        Ok(Self(bytes))
    }
}

impl Serialize for BlobDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BlobDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_has_one_spelling() {
        let digest = BlobDigest::of(b"{}");
        let text = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse::<BlobDigest>().unwrap(), digest);
        for wrong in [
            "",
            "sha256:",
            &text.to_uppercase(),
            &text.replace("sha256", "sha512"),
            &text.replace("sha256:", ""),
            &format!("{text}0"),
            text.strip_suffix("f8a").unwrap(),
            &text.replace('4', "g"),
        ] {
            let failure = wrong.parse::<BlobDigest>().unwrap_err();
            assert_eq!(failure.code(), "registry-digest-invalid", "{wrong}");
        }
    }
}
