//! Payloads: bytes that callers, guests and servers made, and the names of principals. They are in
//! a separate file, from which they can be deleted. A record has only the size of a payload, a
//! commitment to it if it is kept, and a random id for a principal.
//!
//! A commitment is salted with 32 random bytes that are deleted with the payload. Without the salt,
//! a guess of the payload can't be checked against the commitment.

#[cfg(feature = "sqlite")]
mod room;
#[cfg(feature = "sqlite")]
mod store;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::record::{Hash, Hex};

#[cfg(feature = "sqlite")]
pub use store::Erase;
#[cfg(feature = "sqlite")]
pub(crate) use store::{Payloads, person, random};

toolward_support::words! {
    /// The kind of a payload of a call, with its name in the file and in commitments.
    #[derive(Hash)]
    PayloadKind {
        /// Its input.
        Input = "input",
        /// Its context.
        Context = "context",
        /// Its output.
        Output = "output",
        /// Texts about its end: messages, causes, unknown names, and the subjects of violations
        /// (attempts without a grant).
        Detail = "detail",
    }
}

/// `SHA-256(0x02 ‖ salt ‖ len(kind) ‖ kind ‖ bytes)`, where `len` is one byte.
pub fn commitment(salt: &[u8; 32], kind: &str, bytes: &[u8]) -> Hash {
    let mut hasher = Sha256::new();
    hasher.update([2]);
    hasher.update(salt);
    hasher.update([u8::try_from(kind.len()).unwrap_or(u8::MAX)]);
    hasher.update(kind);
    hasher.update(bytes);
    Hex(hasher.finalize().into())
}

/// Which payloads are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// None. Records have only sizes.
    None,
    /// Inputs of calls that change something, or that a person was asked about.
    #[default]
    Asked,
    /// Input and context of every call.
    Inputs,
    /// All payloads.
    All,
}

impl Keep {
    /// Whether a payload is kept. `matters` means that the call changes something, or that a person
    /// was asked.
    pub fn keeps(self, kind: PayloadKind, matters: bool) -> bool {
        match self {
            Self::None => false,
            Self::Asked => matters && kind == PayloadKind::Input,
            Self::Inputs => matches!(kind, PayloadKind::Input | PayloadKind::Context),
            Self::All => true,
        }
    }

    /// The setting that keeps such a payload and the fewest others.
    pub fn least(kind: PayloadKind, matters: bool) -> Self {
        let all = [Self::Asked, Self::Inputs];
        let keeps = all.into_iter().find(|keep| keep.keeps(kind, matters));
        keeps.unwrap_or(Self::All)
    }
}

/// The limits on kept payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PayloadLimits {
    /// The longest time that a payload is kept, from its creation.
    pub age: Duration,
    /// The most bytes of one payload. Larger ones are neither kept nor hashed.
    pub each: usize,
    /// The most bytes of all payloads together. Beyond this, the oldest payloads of the principals
    /// with the most bytes are deleted.
    pub total: u64,
}

impl Default for PayloadLimits {
    /// 30 days, 64 KiB, 1 GiB.
    fn default() -> Self {
        Self {
            age: Duration::from_hours(30 * 24),
            each: 64 * 1024,
            total: 1024 * 1024 * 1024,
        }
    }
}
