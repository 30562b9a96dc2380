//! What one call and one attempt may spend. The table of all limits is [`toolward_policy::Limits`]; they are enforced
//! where the resource is spent.

use std::task::{Context, Poll};

pub use toolward_policy::CallLimits;

use crate::exceeded::Exceeded;

/// The limits of one attempt, from what is left of the call's.
#[derive(Debug, Clone, Copy)]
pub struct AttemptLimits {
    /// Units of fuel.
    pub fuel: u64,
    /// What all attempts may spend together; for messages.
    pub fuel_total: u64,
    /// Bytes of memory.
    pub memory_bytes: u64,
}

/// The part of the memory of all calls that one call has.
pub trait MemoryBudget: Send + Sync {
    /// Covers `used` bytes of a call that may take `limit`. Returns how many are covered.
    ///
    /// # Errors
    /// If all room is taken, and this is the call that must end.
    fn cover(&self, used: u64, limit: u64) -> Result<u64, Exceeded>;

    /// Gives back what it covers beyond `used` bytes. Returns how many are covered.
    fn shrink(&self, used: u64) -> u64;

    /// Ready once the call has to end to make room for others. Wakes the task then.
    fn poll_ended(&self, context: &mut Context<'_>) -> Poll<Exceeded>;
}
