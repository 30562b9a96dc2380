//! Listeners for finished calls.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use toolward_contract::driver::DriverKind;
use toolward_policy::LimitName;

use crate::api::cancellation::Cancellation;
use crate::api::result::{ErrorClass, ErrorCode, Tried};
use crate::api::violations::ViolationKind;

/// The target of log lines of calls, by which a filter of `tracing` names them. A call that ends logs one line of
/// level `INFO`: ids of what is loaded, codes, numbers, and a random id for the principal.
pub const CALL_LOG: &str = "toolward_host::calls";

/// The stages of a call, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum CallStage {
    /// The tool was looked up.
    Resolve,
    /// The input was checked against the contract.
    Validate,
    /// The policy's decision was applied.
    Authorise,
    /// The call was answered from a [tape](crate::Tape), and goes no further.
    Replay,
    /// A person was asked, if approval is needed.
    Approve,
    /// The driver was prepared, which compiles it the first time.
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
            Self::Replay => "replay",
            Self::Approve => "approve",
            Self::Prepare => "prepare",
            Self::Admit => "admit",
            Self::Run => "run",
        }
    }
}

/// A call that has ended, with or without success. It has ids, codes and numbers, and
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
    /// How often drivers were started.
    pub attempts: u32,
    /// The drivers that were tried, in order.
    pub tried: Vec<Tried>,
    /// Units of fuel that all attempts consumed, without an attempt that was cancelled
    /// while it ran.
    pub fuel: u64,
    /// The peak memory of an attempt, in bytes.
    pub peak_memory: u64,
    /// How often the driver tried something that it was not granted.
    pub violations: u64,
    /// The same by kind; empty where the call was cancelled.
    pub violations_by_kind: BTreeMap<ViolationKind, u64>,
    /// The class of the error; `None` where the call has an output.
    pub class: Option<ErrorClass>,
    /// Why the call was cancelled; `None` where it was not.
    pub cancellation: Option<Cancellation>,
    /// The limit that the call hit and that ended it.
    pub limit: Option<LimitName>,
    /// Whether a driver that was picked changes something itself.
    pub mutating: bool,
    /// Whether a person approved it who was asked about this call; `false` also where nobody answered. `None` where
    /// no question about it ended with it: an earlier answer covers it, nobody can be asked, or the answer is to come.
    pub approval: Option<bool>,
    /// When it began, by the system's clock.
    pub started: SystemTime,
    /// From request to result.
    pub duration: Duration,
}

/// Is called exactly once for each call that ends: successful, failed, refused and
/// cancelled ones, and nested ones.
///
/// Runs on the task that drives the call; for a cancelled call, while its future is
/// dropped. Return quickly, and do slow work elsewhere.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use toolward_host::{CallListener, CallStage, FinishedCall, Host};
///
/// /// Counts the calls that failed before their drivers ran.
/// #[derive(Default)]
/// struct Refused(AtomicUsize);
///
/// impl CallListener for Refused {
///     fn finished(&self, call: &FinishedCall) {
///         if call.error.is_some() && call.stage < CallStage::Run {
///             self.0.fetch_add(1, Ordering::Relaxed);
///         }
///     }
/// }
///
/// # fn main() -> Result<(), toolward_host::HostError> {
/// let refused = Arc::new(Refused::default());
/// let host = Host::builder().listener(refused.clone()).build()?;
/// # Ok(())
/// # }
/// ```
pub trait CallListener: Send + Sync {
    /// A call begins. [`CallListener::finished`] is called for each of them.
    fn began(&self) {}

    /// A driver of this kind is started for a call, first or once more.
    fn driver_started(&self, kind: &DriverKind) {
        let _ = kind;
    }

    /// A call has ended.
    fn finished(&self, call: &FinishedCall);
}
