//! The errors that end a guest at once: an exceeded limit, or its deadline.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use toolward_policy::LimitName;

/// A guest asked for more than a limit allows. Raised as a host error, which ends the guest at
/// once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("limit `{limit}` exceeded: {used} of {allowed} allowed")]
pub struct Exceeded {
    /// The limit.
    #[serde(deserialize_with = "limit_name")]
    pub limit: LimitName,
    /// The total that the guest asked for or used. If it is unknown, one more than `allowed`; for
    /// fuel and stack, equal to `allowed`.
    pub used: u64,
    /// The amount that is allowed.
    pub allowed: u64,
    /// For the memory limit: whether the host's memory for the guest exceeded it, and not the
    /// guest's own memory. Callers see a single limit.
    #[serde(skip)]
    pub by_host: bool,
}

impl Exceeded {
    /// A limit that the guest's own use exceeded.
    pub const fn new(limit: LimitName, used: u64, allowed: u64) -> Self {
        Self {
            limit,
            used,
            allowed,
            by_host: false,
        }
    }

    /// A limit that was exceeded by an unknown amount.
    pub const fn over(limit: LimitName, allowed: u64) -> Self {
        Self::new(limit, allowed.saturating_add(1), allowed)
    }

    /// Marks the error as caused by memory that the host holds for the guest.
    pub const fn by_host(self) -> Self {
        Self {
            by_host: true,
            ..self
        }
    }
}

fn limit_name<'de, D: Deserializer<'de>>(from: D) -> Result<LimitName, D::Error> {
    let name = String::deserialize(from)?;
    let mut all = LimitName::ALL.iter();
    let found = all.find(|limit| limit.as_str() == name).copied();
    found.ok_or_else(|| D::Error::custom("not a limit of this host"))
}

/// Adds to a counter, or leaves it unchanged if the sum would exceed the limit.
pub fn take(
    counter: &AtomicU64,
    limit: LimitName,
    amount: u64,
    allowed: u64,
) -> Result<(), Exceeded> {
    let add = |used: u64| used.checked_add(amount).filter(|sum| *sum <= allowed);
    counter
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
        .map(|_| ())
        .map_err(|used| Exceeded::new(limit, used.saturating_add(amount), allowed))
}

/// The error of a guest that calls the host after its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the deadline has passed")]
pub struct DeadlinePassed;
