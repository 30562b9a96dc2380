//! Listeners for finished calls.

use std::time::{Duration, SystemTime};

use crate::result::ErrorCode;

/// How far a call came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CallStage {
    /// The tool was looked up.
    Resolve,
    /// The input was checked against the contract.
    Validate,
    /// The policy's decision was applied.
    Authorise,
    /// A person was asked, where one has to be.
    Approve,
    /// The driver was made ready, which compiles it the first time.
    Prepare,
    /// The call waited for a slot.
    Admit,
    /// The driver ran.
    Run,
}

impl CallStage {
    /// Its name, for records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Resolve => "resolve",
            Self::Validate => "validate",
            Self::Authorise => "authorise",
            Self::Approve => "approve",
            Self::Prepare => "prepare",
            Self::Admit => "admit",
            Self::Run => "run",
        }
    }
}

/// One call that has ended, with or without success. It holds ids, codes and numbers, and
/// nothing of input or output.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FinishedCall {
    /// The invocation's id, a UUIDv7. A call that asks questions and resumes keeps
    /// its id, and is reported each time it ends.
    pub invocation: String,
    /// The invocation that made this call; `None` where a caller of the host did.
    pub parent: Option<String>,
    /// How many calls led to this one; 0 for a call by a caller of the host.
    pub depth: usize,
    /// On whose behalf it was made.
    pub principal: String,
    /// The tool as `id@major`; `None` where none was found.
    pub tool: Option<String>,
    /// BLAKE3 of the manifest of the tool's bundle, 64 hex digits.
    pub bundle: Option<String>,
    /// The driver's id; `None` where none was picked.
    pub driver: Option<String>,
    /// BLAKE3 of the manifest of the driver's bundle, 64 hex digits.
    pub driver_bundle: Option<String>,
    /// Why it has no output; `None` where it has one.
    pub error: Option<ErrorCode>,
    /// The stage in which it ended.
    pub stage: CallStage,
    /// How often the driver was started.
    pub attempts: u32,
    /// Units of fuel that all attempts consumed. What an attempt that was cut off by
    /// cancelling consumed is not in it.
    pub fuel: u64,
    /// The most memory that an attempt took, in bytes.
    pub peak_memory: u64,
    /// How often the driver tried what it was not granted.
    pub violations: u64,
    /// When it began, by the system's clock.
    pub started: SystemTime,
    /// From request to result.
    pub duration: Duration,
}

/// Hears of each call that ends, exactly once: of those that succeed, fail, are
/// refused early, or are cancelled, and of those that tools make.
///
/// Called where the call ends, on the task that drives it; for a cancelled call while
/// its future is dropped. Return quickly, and hand on what takes time.
pub trait CallListener: Send + Sync {
    /// A call has ended.
    fn finished(&self, call: &FinishedCall);
}
