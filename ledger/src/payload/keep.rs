//! Which payloads are kept, and how long.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::payload::PayloadKind;

/// Which payloads are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// None: records have sizes.
    None,
    /// Inputs of calls that change something, or that a person was asked about.
    #[default]
    Asked,
    /// Input and context of every call.
    Inputs,
    /// All.
    All,
}

impl Keep {
    /// Whether a payload is kept. `matters` says that the call changes something, or that a person was asked.
    #[must_use]
    pub fn keeps(self, kind: PayloadKind, matters: bool) -> bool {
        match self {
            Self::None => false,
            Self::Asked => matters && kind == PayloadKind::Input,
            Self::Inputs => matches!(kind, PayloadKind::Input | PayloadKind::Context),
            Self::All => true,
        }
    }

    /// The setting that keeps the least, and such a payload with it.
    #[must_use]
    pub fn least(kind: PayloadKind, matters: bool) -> Self {
        let all = [Self::Asked, Self::Inputs];
        let keeps = all.into_iter().find(|keep| keep.keeps(kind, matters));
        keeps.unwrap_or(Self::All)
    }
}

/// Bounds of what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadLimits {
    /// How long, from when it was made.
    pub age: Duration,
    /// The most bytes of one payload. Larger ones are neither kept nor hashed.
    pub each: usize,
    /// The most bytes of all together. The oldest go first.
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
