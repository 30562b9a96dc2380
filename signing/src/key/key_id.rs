//! The id of a key: a name for logs and hints, never a reason to trust.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::digest::{parse_hex, write_hex};
use crate::error::{ErrorKind, Refusal};

/// The SHA-256 of a public key's SPKI DER, written as 64 lower-case hexadecimal digits. It is the `keyid`
/// of DSSE signatures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub(super) [u8; 32]);

impl KeyId {
    /// The first 12 digits: enough to tell keys apart in a list.
    #[must_use]
    pub fn short(&self) -> String {
        self.to_string().chars().take(12).collect()
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyId({self})")
    }
}

impl FromStr for KeyId {
    type Err = Refusal;

    /// Reads 64 lower-case hexadecimal digits.
    ///
    /// # Errors
    /// [`ErrorKind::DigestInvalid`] for anything else.
    fn from_str(text: &str) -> Result<Self, Refusal> {
        parse_hex(text).map(Self).ok_or_else(|| {
            Refusal::new(ErrorKind::DigestInvalid)
                .expected("64 lower-case hexadecimal digits")
                .found(crate::text::quoted(text))
        })
    }
}

impl Serialize for KeyId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
