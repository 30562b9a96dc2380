//! What the descriptors, streams and listings of one attempt share.

use std::sync::{Arc, OnceLock};

use tokio::sync::Semaphore;

use super::counters::{FileCounters, FileLimits, Slot};
use super::plan::Plan;
use crate::api::violations::Violations;
use crate::exceeded::Exceeded;
use crate::sandbox::held;

/// What everything that an attempt opened shares.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) plan: Arc<Plan>,
    pub(super) limits: FileLimits,
    pub(super) counters: Arc<FileCounters>,
    pub(super) violations: Violations,
    /// The limit that a stream's write exceeded. The stream reports it at its next
    /// operation, which a guest may never call.
    pub(super) exceeded: OnceLock<Exceeded>,
    /// Counts what the host holds for the call.
    pub(super) held: held::Shared,
}

/// Bytes that one operation reads or writes at most.
pub(super) const CHUNK: usize = 64 << 10;

/// What a file takes that is open, beside its path.
pub(crate) const OPEN_FILE: u64 = 512;

/// What a stream of a file takes: what it has read or is to write, at most.
pub(crate) const FILE_STREAM: u64 = CHUNK as u64 + 1024;

/// What a listing takes: the part that was read, of the longest names, and the
/// kernel's answer that it is read from.
pub(crate) const LISTING: u64 = 128 << 10;

impl Shared {
    /// One of the files that may be open; it takes `bytes` of the host's memory.
    pub(super) fn open(&self, bytes: u64) -> Result<Slot, Exceeded> {
        self.counters.open(&self.limits, self.held.hold(bytes))
    }

    pub(super) fn threads(&self) -> &Arc<Semaphore> {
        self.counters.threads()
    }
}
