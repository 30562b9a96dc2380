//! What ends a guest where it stands: a limit that it went beyond, or its deadline.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use toolward_policy::LimitName;

/// A guest asked for more than a limit allows. Raised as a host error, so that
/// the guest is ended where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exceeded {
    /// Which limit.
    pub(crate) limit: LimitName,
    /// What the guest asked for in total.
    pub(crate) used: u64,
    /// What it may have.
    pub(crate) allowed: u64,
    /// Of the limit on memory: whether what the host holds for the guest went beyond
    /// it, instead of the guest's own memory. Callers are told of the one limit.
    pub(crate) by_host: bool,
}

impl Exceeded {
    pub(crate) const fn new(limit: LimitName, used: u64, allowed: u64) -> Self {
        Self {
            limit,
            used,
            allowed,
            by_host: false,
        }
    }

    /// By what the host holds for the guest.
    pub(crate) const fn by_host(self) -> Self {
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

/// Adds to a counter, or changes nothing where the sum would go beyond.
pub(crate) fn take(
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
pub(crate) struct DeadlinePassed;

impl fmt::Display for DeadlinePassed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the deadline has passed")
    }
}

impl std::error::Error for DeadlinePassed {}
