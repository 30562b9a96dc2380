//! Payloads: bytes that callers, guests and servers made, and the names of principals. They lie in a file of their
//! own, from which they can be deleted; records have commitments to them at most.
//!
//! A commitment is salted with 32 random bytes that are deleted with the payload: from then on nothing can be
//! guessed from it.

#[cfg(feature = "sqlite")]
mod aside;
mod keep;
#[cfg(feature = "sqlite")]
mod store;

use sha2::{Digest as _, Sha256};

pub use keep::{Keep, PayloadLimits};
#[cfg(feature = "sqlite")]
pub use store::Erase;
#[cfg(feature = "sqlite")]
pub(crate) use store::{Payloads, random};

use crate::record::{Hash, Hex};

/// What a payload is of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PayloadKind {
    /// Its input.
    Input,
    /// Its context.
    Context,
    /// Its output.
    Output,
    /// Messages, causes, unknown names, subjects of violations.
    Detail,
}

impl PayloadKind {
    /// Its name, in the file and in commitments.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Context => "context",
            Self::Output => "output",
            Self::Detail => "detail",
        }
    }
}

/// `SHA-256(0x02 ‖ salt ‖ len(kind) ‖ kind ‖ bytes)`, where `len` is one byte.
#[must_use]
pub fn commitment(salt: &[u8; 32], kind: &str, bytes: &[u8]) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update([2]);
    hasher.update(salt);
    hasher.update([u8::try_from(kind.len()).unwrap_or(u8::MAX)]);
    hasher.update(kind);
    hasher.update(bytes);
    Hex(hasher.finalize().into())
}
