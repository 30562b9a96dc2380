//! The limits of one call: the host's limits, adjusted by the call's contract and driver. The table
//! of all limits is [`toolward_policy::Limits`]. Each limit is enforced by the code that uses the
//! resource, in the sandbox or in the host.

use std::task::{Context, Poll};

pub use toolward_policy::CallLimits;

use crate::exceeded::Exceeded;

/// The limits of one attempt: the part of the call's limits that is left.
#[derive(Debug, Clone, Copy)]
pub struct AttemptLimits {
    /// Units of fuel.
    pub fuel: u64,
    /// Units of fuel for all attempts together; used in messages.
    pub fuel_total: u64,
    /// Bytes of memory.
    pub memory_bytes: u64,
}

/// The part of the memory of all calls that one call has leased.
pub trait MemoryBudget: Send + Sync {
    /// Leases at least `used` bytes for a call whose own limit is `limit` bytes. Returns the leased
    /// bytes.
    ///
    /// # Errors
    /// If no memory is left, and this call must end.
    fn cover(&self, used: u64, limit: u64) -> Result<u64, Exceeded>;

    /// Gives leased memory beyond `used` bytes back to all calls. Returns the bytes that are still
    /// leased.
    fn shrink(&self, used: u64) -> u64;

    /// Ready once the call must end to make room for others. Otherwise registers the task to be
    /// woken then.
    fn poll_ended(&self, context: &mut Context<'_>) -> Poll<Exceeded>;
}
