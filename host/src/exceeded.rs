//! What ends a guest where it stands: a limit that it went beyond, or its deadline.

use std::fmt;

/// The limit `memory`, where the guest's own memory went beyond it.
pub(crate) const MEMORY: &str = "memory";
/// The same limit, where what the host holds for the guest did. Callers are told of
/// the one limit that there is.
pub(crate) const HOST_MEMORY: &str = "host_memory";

/// A guest asked for more than a limit allows. Raised as a host error, so that
/// the guest is ended where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exceeded {
    /// The limit's name, as in [`crate::Limits`].
    pub(crate) limit: &'static str,
    /// What the guest asked for in total.
    pub(crate) used: u64,
    /// What it may have.
    pub(crate) allowed: u64,
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

/// The deadline passed while the guest was calling the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeadlinePassed;

impl fmt::Display for DeadlinePassed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the deadline has passed")
    }
}

impl std::error::Error for DeadlinePassed {}
