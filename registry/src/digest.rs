//! SHA-256 digests, the only kind that is accepted from a registry. A bundle's identity is a
//! different digest: BLAKE3 of its manifest.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use toolward_signing::digest;

use crate::failure::{Failure, FailureReason, quoted};

/// The digest of a blob or an OCI manifest, written as `sha256:` and 64 lower-case hexadecimal
/// digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobDigest([u8; 32]);

impl BlobDigest {
    /// The digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The 64 hexadecimal digits without a prefix.
    pub fn hex(&self) -> String {
        digest::hex(self.0)
    }
}

impl From<Sha256> for BlobDigest {
    fn from(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
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
    /// [`FailureReason::DigestInvalid`] for another algorithm or another spelling.
    fn from_str(text: &str) -> Result<Self, Failure> {
        text.strip_prefix("sha256:")
            .and_then(digest::parse_hex)
            .map(Self)
            .ok_or_else(|| {
                Failure::new(FailureReason::DigestInvalid)
                    .expected("`sha256:` and 64 lower-case hexadecimal digits")
                    .found(quoted(text))
            })
    }
}

impl Serialize for BlobDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
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
