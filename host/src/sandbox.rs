//! The sandbox: engine, linker, one fresh store per attempt, and the limits
//! that are enforced inside it. Decides nothing: what may run, and with what,
//! was settled by the stages before it.

pub(crate) mod capture;
pub(crate) mod context;
pub(crate) mod deadline;
pub(crate) mod engine;
pub(crate) mod files;
pub(crate) mod held;
pub(crate) mod http;
pub(crate) mod keyvalue;
pub(crate) mod limiter;
#[cfg(test)]
mod memory_page;
pub(crate) mod run;
pub(crate) mod secrets;
mod sockets;
mod state;
pub(crate) mod tools;
pub(crate) mod turns;
mod turnstile;
pub(crate) mod v0_1;

use std::fmt;

pub(crate) use state::{AttemptLimits, State, Told};

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
