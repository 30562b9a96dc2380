//! The errors that end a guest at once: an exceeded limit, or its deadline.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use toolward_policy::LimitName;

/// A guest asked for more than a limit allows. Raised as a host error, which ends the
/// guest at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// Which limit.
    pub limit: LimitName,
    /// What the guest asked for in total.
    pub used: u64,
    /// What it may have.
    pub allowed: u64,
    /// For the limit on memory: whether memory that the host holds for the guest
    /// exceeded it, and not the guest's own. Callers see one limit.
    pub by_host: bool,
}

impl Exceeded {
    /// A limit on what the guest itself has.
    #[must_use]
    pub const fn new(limit: LimitName, used: u64, allowed: u64) -> Self {
        Self {
            limit,
            used,
            allowed,
            by_host: false,
        }
    }

    /// Marks it as caused by memory that the host holds for the guest.
    #[must_use]
    pub const fn by_host(self) -> Self {
        Self {
            by_host: true,
            ..self
        }
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "limit `{}` exceeded: {} of {} allowed",
            self.limit, self.used, self.allowed
        )
    }
}

impl std::error::Error for Exceeded {}

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

/// The deadline passed while the guest was calling the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeadlinePassed;

impl fmt::Display for DeadlinePassed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the deadline has passed")
    }
}

impl std::error::Error for DeadlinePassed {}
