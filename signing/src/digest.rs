//! BLAKE3 digests of manifests and files. They have no prefix that names an algorithm.

use std::fmt;

/// Implements the text form of a type that wraps 32 bytes: 64 lower-case hexadecimal digits, the
/// only spelling.
macro_rules! impl_hex_text {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&$crate::digest::hex(self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::Refusal;

            /// Reads 64 lower-case hexadecimal digits.
            ///
            /// # Errors
            /// [`DigestInvalid`](crate::ErrorKind::DigestInvalid) for anything else, upper case
            /// included.
            fn from_str(text: &str) -> Result<Self, $crate::Refusal> {
                $crate::digest::parse_hex(text).map(Self).ok_or_else(|| {
                    $crate::Refusal::new($crate::ErrorKind::DigestInvalid)
                        .expected("64 lower-case hexadecimal digits")
                        .found($crate::text::quoted(text))
                })
            }
        }

        $crate::error::impl_serde_text!($name);
    };
}

pub(crate) use impl_hex_text;

/// A plain, unkeyed BLAKE3 digest of 32 bytes, written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).into())
    }

    /// The digest of the bytes that were hashed so far.
    pub(crate) fn finish(hasher: &blake3::Hasher) -> Self {
        Self(hasher.finalize().into())
    }

    /// A digest from its 32 bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl_hex_text!(Digest);

/// 32 bytes as 64 lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: [u8; 32]) -> String {
    blake3::Hash::from_bytes(bytes).to_hex().to_string()
}

/// Reads exactly 64 lower-case hexadecimal digits.
#[must_use]
pub fn parse_hex(text: &str) -> Option<[u8; 32]> {
    let hash = blake3::Hash::from_hex(text).ok()?;
    (hash.to_hex().as_str() == text).then(|| hash.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_has_one_spelling() {
        let text = Digest::of(b"").to_string();
        assert_eq!(
            text,
            "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
        );
        assert_eq!(text.parse::<Digest>().unwrap(), Digest::of(b""));
        for wrong in [
            text.to_uppercase(),
            text.get(1..).unwrap().to_owned(),
            format!("{text}0"),
            format!("blake3:{text}"),
        ] {
            let refusal = wrong.parse::<Digest>().unwrap_err();
            assert_eq!(refusal.code(), "digest-invalid");
        }
    }
}
