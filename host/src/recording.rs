//! What is recorded of calls in a ledger: rows for a [`Recorder`]. The one place that makes them is the end of a
//! call ([`crate::pipeline::call_record`]), and its start where it changes something.
//!
//! What a record may say of tools, drivers and rules is made ready with the catalogue; what callers and tools wrote
//! is payload, without sensitive values.

mod approvals;
mod names;
mod payloads;
mod rows;

use std::sync::Arc;

use toolward_ledger::Recorder;
use toolward_ledger::record::Hash;

pub(crate) use approvals::ApprovalStep;
pub(crate) use names::{RecordedRoute, RecordedTool, publisher_id};
pub(crate) use payloads::Keeping;
pub use payloads::has_hidden;
pub(crate) use rows::{CallRows, Parties, RecordedEnd, micros, recorded_id};

/// Where a host's calls are recorded.
pub(crate) struct Recording {
    pub(crate) recorder: Arc<dyn Recorder>,
    /// Whether the reply of a call that changes something waits until its end is on the disk.
    pub(crate) waits_for_end: bool,
    /// The digest of the policy.
    pub(crate) policy: Option<Hash>,
}
