//! Events of calls: the reports of a host while a call goes through its stages. Events hold ids,
//! codes and numbers. The only text from a caller, a driver or a server is the ids of [`Native`].

use std::fmt;
use std::time::{Duration, SystemTime};

use serde_json::json;
use toolward_ledger::record::Native;
use toolward_sandbox::imports::Progress;

use crate::api::facts::{CallFacts, Cancellation};
use crate::api::result::{ErrorClass, LogRecord};
use crate::digest;

/// Something that happened to a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallEvent {
    /// The event's own id, a UUIDv7: ids rise with time.
    pub id: String,
    /// When it happened, by the system's clock.
    pub at: SystemTime,
    /// The invocation's id. A call that asks questions and resumes keeps its id.
    pub invocation: String,
    /// The invocation that made this call; `None` if a caller of the host made it.
    pub parent: Option<String>,
    /// On whose behalf it was made.
    pub principal: PrincipalId,
    /// The ids of the call in its caller's protocol.
    pub native: Native,
    /// The tool as `id@major`; `None` until a tool is found.
    pub tool: Option<String>,
    /// What happened.
    pub kind: CallEventKind,
}

/// What happened to a call: the event classes of Agent Tool 0.2.0 that calls of a host have. The
/// specification allows a host to skip states that do not apply to a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallEventKind {
    /// It was requested.
    Planned,
    /// Its tool was found.
    Selected,
    /// Its input matches the contract, and a driver takes it.
    ArgumentsReady,
    /// Its input does not match the contract, or no driver takes it.
    ValidationFailed {
        /// Why.
        code: &'static str,
    },
    /// A person is asked.
    PermissionRequested,
    /// Policy or a person has decided.
    PermissionDecided {
        /// How.
        decision: CallDecision,
    },
    /// It takes one of the slots of running calls, and may have to wait for it.
    Queued,
    /// A driver was started.
    Started {
        /// The driver's id.
        driver: String,
        /// The number of the attempt, counted from 1 over all drivers.
        attempt: u32,
    },
    /// The driver reported progress.
    Progress {
        /// How much is done.
        done: f64,
        /// The total, if the driver knows it.
        total: Option<f64>,
    },
    /// The driver did only a part of its task. The call has failed.
    PartialResult,
    /// The driver asks questions, and the call may resume with the answers.
    Yielded {
        /// How many.
        questions: u64,
    },
    /// Bytes of secrets were removed from the result.
    Redacted {
        /// In how many texts.
        texts: u64,
    },
    /// The result is complete.
    ResultCreated {
        /// Bytes that the driver returned; 0 without an output.
        bytes: u64,
        /// Why the call was cancelled, if it was; a cancelled call has no output.
        canceled: Option<Cancellation>,
    },
    /// Bytes of the result are in the ledger, on the disk.
    Persisted,
    /// The call has ended with an output.
    Succeeded(CallCost),
    /// The call has ended without an output: denied, blocked or failed.
    Failed {
        /// Why.
        code: &'static str,
        /// The class of the error.
        class: ErrorClass,
        /// The costs of the call.
        cost: CallCost,
    },
    /// The call was cancelled.
    Canceled {
        /// Why.
        reason: Cancellation,
        /// The costs of the call.
        cost: CallCost,
    },
    /// The deadline passed.
    TimedOut(CallCost),
}

impl CallEventKind {
    /// Its event class of Agent Tool 0.2.0.
    pub fn class(&self) -> &'static str {
        match self {
            Self::Planned => "tool.invocation.planned",
            Self::Selected => "tool.invocation.selected",
            Self::ArgumentsReady => "tool.invocation.arguments_ready",
            Self::ValidationFailed { .. } => "tool.invocation.validation_failed",
            Self::PermissionRequested => "tool.permission.requested",
            Self::PermissionDecided { .. } => "tool.permission.decided",
            Self::Queued => "tool.invocation.queued",
            Self::Started { .. } => "tool.invocation.started",
            Self::Progress { .. } => "tool.invocation.progress",
            Self::PartialResult => "tool.invocation.partial_result",
            Self::Yielded { .. } => "tool.invocation.yielded",
            Self::Redacted { .. } => "tool.result.redacted",
            Self::ResultCreated { .. } => "tool.result.created",
            Self::Persisted => "tool.result.persisted",
            Self::Succeeded(_) => "tool.invocation.succeeded",
            Self::Failed { .. } => "tool.invocation.failed",
            Self::Canceled { .. } => "tool.invocation.canceled",
            Self::TimedOut(_) => "tool.invocation.timed_out",
        }
    }
}

toolward_support::words! {
    /// How it was decided whether a call may run.
    #[derive(Hash)]
    CallDecision {
        /// Policy allows it without a question.
        Allowed = "allowed",
        /// A person approved it, or an approval covers it.
        Approved = "approved",
        /// Policy or a person denied it, or no one could be asked.
        Denied = "denied",
    }
}

/// The costs of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallCost {
    /// Microseconds from request to result.
    pub micros: u64,
    /// Units of fuel of all attempts.
    pub fuel: u64,
    /// The peak memory of an attempt, in bytes.
    pub peak_memory: u64,
    /// How often drivers tried something that they were not granted, also in nested calls.
    pub violations: u64,
}

/// Stands for a principal in events and logs: the same id for all calls of the principal as long as
/// the process runs. The principal's name can't be guessed from the id. Shown as 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PrincipalId([u8; 16]);

impl PrincipalId {
    /// The id of a principal in this process.
    pub fn of(principal: &str) -> Self {
        let digest = digest::secret(&json!({ "principal": principal }));
        let first = digest.first_chunk();
        Self(first.copied().unwrap_or_default())
    }
}

impl fmt::Debug for PrincipalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for PrincipalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Selects the principals whose events are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter(pub(crate) Option<PrincipalId>);

impl EventFilter {
    /// The events of all principals, for the operator.
    pub fn all() -> Self {
        Self(None)
    }

    /// The events of one principal. Take its name from the authentication of the reader, never from
    /// data that the reader sends.
    pub fn principal(name: &str) -> Self {
        Self(Some(PrincipalId::of(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_principal_has_one_id_and_another_has_another() {
        let ada = PrincipalId::of("ada");
        assert_eq!(ada, PrincipalId::of("ada"));
        assert_ne!(ada, PrincipalId::of("bob"));
        assert_eq!(ada.to_string().len(), 32);
    }
}

/// A driver is being compiled, and a call waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiling {
    /// The driver's id.
    pub driver: String,
    /// How long it has been compiling; `None` while it waits for other drivers.
    pub elapsed: Option<Duration>,
    /// The longest time that the compilation may take, if that is bounded.
    pub longest: Option<Duration>,
}

/// Receives progress and log records of a call. The call waits while a method runs: return quickly.
///
/// ```
/// use std::sync::Arc;
/// use toolward_bundle::text::visible_line;
/// use toolward_host::{CallFacts, Compiling, LogLevel, LogRecord, Observer, Progress, Request};
///
/// struct Printed;
///
/// impl Observer for Printed {
///     fn progress(&self, progress: &Progress) {
///         println!("{} of {:?}", progress.done, progress.total);
///     }
///
///     fn compiling(&self, compiling: &Compiling) {
///         println!("compiling {}", compiling.driver);
///     }
///
///     fn log(&self, record: &LogRecord) {
///         if record.level == LogLevel::Error {
///             println!("{}", visible_line(&record.message, 1000));
///         }
///     }
///
///     fn canceled(&self, call: &CallFacts) {
///         println!("{} was cancelled", call.tool);
///     }
/// }
///
/// let request = Request::new("text.stats", r#"{"text": "Hello"}"#).observer(Arc::new(Printed));
/// ```
pub trait Observer: Send + Sync {
    /// The driver reported progress. A report that is not higher than the last one is dropped, and
    /// so are reports of a driver after its first 1000.
    fn progress(&self, _progress: &Progress) {}

    /// The call waits for the driver to be compiled. Repeated while it waits.
    fn compiling(&self, _compiling: &Compiling) {}

    /// The call, or a nested call, was cancelled: its future was dropped, and there will be no
    /// reply. Nested calls are reported before their callers. Runs while the future is dropped:
    /// don't panic.
    fn canceled(&self, _call: &CallFacts) {}

    /// The driver logged a record.
    fn log(&self, _record: &LogRecord) {}
}
