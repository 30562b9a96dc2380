//! The facts of one call: the tool, the principal, the drivers that served it, how it ended and
//! what it consumed. The stages of the host write the facts. Replies, listeners, observers, events,
//! log lines and rows of a ledger show them.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::Serialize;
use toolward_contract::driver::DriverKind;
use toolward_ledger::record::Native;
use toolward_policy::LimitName;
use toolward_sandbox::result::{CallError, ErrorClass, ErrorCode, Origin};
use toolward_sandbox::violations::{Violation, ViolationKind};

use crate::tape::Replayed;

/// The facts of one call that a host knows: ids, codes, numbers and the subjects of violations, but
/// no values of its input and output. Serialised, this is the `meta` that the caller sees.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CallFacts {
    /// The invocation's id, a UUIDv7. A call that asks questions and resumes keeps its id.
    pub invocation: String,
    /// The tool as `id@version`; as written in the request if no tool was found.
    pub tool: Arc<str>,
    /// The driver's id, once a driver was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<Arc<str>>,
    /// Who published the driver that ran, or would have run; `dev:<dir>` for an
    /// unsigned one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver_publisher: Option<Arc<str>>,
    /// Who published the tool's bundle; `dev:<dir>` for an unsigned one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publisher: Option<Arc<str>>,
    /// BLAKE3 of the manifest of the driver's bundle, 64 hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<Arc<str>>,
    /// Who gave the output, if that was a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// For a call that changes something: whether its end was recorded before the reply. `None` if
    /// the reply does not wait for the record. Serialised only if recording failed; the record may
    /// follow later.
    #[serde(skip_serializing_if = "is_recorded")]
    pub recorded: Option<bool>,
    /// The invocation whose reply this is, if the call repeats an id
    /// ([`Request::named`](crate::Request::named)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<String>,
    /// The recorded call from which the result was replayed; nothing ran for this call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Replayed>,
    /// How often drivers were started.
    pub attempts: u32,
    /// The drivers that were tried, in order; the last one is `driver`. Serialised only if several
    /// drivers were tried.
    #[serde(skip_serializing_if = "is_single")]
    pub tried: Vec<Tried>,
    /// Time from request to result in milliseconds, rounded to microseconds.
    pub milliseconds: f64,
    /// Fuel consumed by all attempts, except an attempt that was cancelled while it ran. Too low
    /// after a hardware trap or a panic of the engine.
    pub fuel: u64,
    /// The peak memory of an attempt, in bytes: the driver's memory, the memory that the host held
    /// for the driver, and the memory of nested calls.
    pub peak_memory: u64,
    /// The first 32 distinct violations: operations that drivers tried beyond their grants, also in
    /// nested calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    /// The number of all violations.
    #[serde(skip_serializing_if = "is_default")]
    pub violations_total: u64,
    /// The number of violations by kind, of all drivers of the call, without nested calls. Empty if
    /// the call was cancelled.
    #[serde(skip)]
    pub violations_by_kind: BTreeMap<ViolationKind, u64>,
    /// On whose behalf it was made.
    #[serde(skip)]
    pub principal: Arc<str>,
    /// The invocation that made this call; `None` if a caller of the host did.
    #[serde(skip)]
    pub parent: Option<Arc<str>>,
    /// The tools that led to the call as `id@major`, outermost first; empty if a caller of the host
    /// made it.
    #[serde(skip)]
    pub called_by: Arc<[String]>,
    /// The tool as `id@major`; `None` if none was found.
    #[serde(skip)]
    pub tool_id: Option<Arc<str>>,
    /// BLAKE3 of the manifest of the tool's bundle, 64 hex digits.
    #[serde(skip)]
    pub tool_bundle: Option<Arc<str>>,
    /// The stage in which it ended.
    #[serde(skip)]
    pub stage: CallStage,
    /// Why it has no output; `None` if it has one.
    #[serde(skip)]
    pub error: Option<ErrorCode>,
    /// The class of the error.
    #[serde(skip)]
    pub class: Option<ErrorClass>,
    /// The limit that the call hit and that ended it.
    #[serde(skip)]
    pub limit: Option<LimitName>,
    /// Why the call was cancelled; `None` if it was not.
    #[serde(skip)]
    pub cancellation: Option<Cancellation>,
    /// Whether a driver that was chosen changes something itself.
    #[serde(skip)]
    pub mutating: bool,
    /// Whether the person who was asked about this call approved it; `false` also if the question
    /// timed out or was withdrawn. `None` if no question about the call has ended: an earlier
    /// answer covers the call, no one can be asked, or the answer comes later.
    #[serde(skip)]
    pub approval: Option<bool>,
    /// Bytes that the last driver returned.
    #[serde(skip)]
    pub output_bytes: u64,
    /// When it started, in microseconds since 1970 by the system's clock.
    #[serde(skip)]
    pub started: u64,
}

impl CallFacts {
    /// How many calls led to this one; 0 for a call by a caller of the host.
    pub fn depth(&self) -> usize {
        self.called_by.len()
    }

    /// From request to result.
    pub fn duration(&self) -> Duration {
        Duration::try_from_secs_f64(self.milliseconds / 1e3).unwrap_or_default()
    }
}

/// A driver that was tried for a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tried {
    /// Its id.
    pub driver: Arc<str>,
    /// Who published it.
    pub driver_publisher: Arc<str>,
    /// BLAKE3 of the manifest of its bundle, 64 hex digits.
    pub bundle: Arc<str>,
    /// How often it was started.
    pub attempts: u32,
    /// Why it did not serve the call; `None` if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorCode>,
}

toolward_support::words! {
    /// The stages of a call, in order.
    #[derive(Default, PartialOrd, Ord, Hash)]
    CallStage {
        /// The tool was looked up.
        #[default]
        Resolve = "resolve",
        /// The input was checked against the contract.
        Validate = "validate",
        /// The policy's decision was applied.
        Authorise = "authorise",
        /// The call was answered from a [tape](crate::Tape), and goes no further.
        Replay = "replay",
        /// A person was asked, if approval is needed.
        Approve = "approve",
        /// The driver was prepared, which compiles it the first time.
        Prepare = "prepare",
        /// The call waited for a slot.
        Admit = "admit",
        /// The driver ran.
        Run = "run",
    }
}

toolward_support::words! {
    /// Who or what cancelled a call.
    #[derive(Hash)]
    Cancellation {
        /// Its caller: a client by a notification, an embedder by dropping the call's future.
        Caller = "caller",
        /// Its client disconnected, or ended its session.
        Disconnected = "disconnected",
        /// The server that made it ended.
        Shutdown = "shutdown",
        /// The call that made it ended first.
        Parent = "parent",
    }
}

/// Why a call will be cancelled, for a program that makes calls on behalf of its clients. The
/// program keeps a clone while the call runs, and sets the reason before it drops the call's
/// future. Clones share everything.
///
/// ```
/// use toolward_host::{Cancellation, Request, SharedCancellation};
///
/// // Without a reason it was the end of this program.
/// let cancellation = SharedCancellation::unless_set(Cancellation::Shutdown);
/// let request = Request::new("text.stats", r#"{"text": "Hello"}"#).cancellation(cancellation.clone());
/// // When the connection of the client closes:
/// cancellation.set(Cancellation::Disconnected);
/// ```
#[derive(Debug, Clone)]
pub struct SharedCancellation {
    reason: Arc<OnceLock<Cancellation>>,
    otherwise: Cancellation,
}

impl SharedCancellation {
    /// `otherwise` is the reason if none is set until the call's future is dropped.
    pub fn unless_set(otherwise: Cancellation) -> Self {
        Self {
            reason: Arc::default(),
            otherwise,
        }
    }

    /// Sets the reason, unless one was set before.
    pub fn set(&self, reason: Cancellation) {
        let _ = self.reason.set(reason);
    }

    pub(crate) fn get(&self) -> Cancellation {
        self.reason.get().copied().unwrap_or(self.otherwise)
    }
}

fn is_single(tried: &[Tried]) -> bool {
    tried.len() < 2
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    clippy::ref_option,
    reason = "the signature that serde asks for"
)]
fn is_recorded(recorded: &Option<bool>) -> bool {
    *recorded != Some(false)
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A call that a program in front of a host refused itself, for
/// [`Host::refused`](crate::Host::refused). Reasons are that this principal has no tool of this
/// name, that the tool must be loaded first, or that the arguments can't be converted to an input.
#[derive(Debug, Clone, Copy)]
pub struct RefusedCall<'a> {
    /// On whose behalf it was made.
    pub principal: &'a str,
    /// The name of the tool that the caller used, which may be any text. The name is stored only in
    /// a payload, never in a record or an event.
    pub name: &'a str,
    /// The tool that was meant, by its name in the host. `None` if the principal must not learn
    /// that the tool exists.
    pub tool: Option<&'a str>,
    /// The ids of the call in its caller's protocol.
    pub native: &'a Native,
    /// The error that ended it.
    pub error: &'a CallError,
}

impl RefusedCall<'_> {
    /// The stage in which a host would have ended it.
    pub(crate) fn stage(&self, is_found: bool) -> CallStage {
        match self.error.class {
            _ if !is_found => CallStage::Resolve,
            ErrorClass::PolicyBlocked | ErrorClass::PermissionDenied => CallStage::Authorise,
            _ => CallStage::Validate,
        }
    }
}

/// The target of log lines of calls, for filters of `tracing`. A call that ends logs one line of
/// level `INFO`: ids of loaded tools and drivers, codes, numbers, and a random id for the
/// principal.
pub const CALL_LOG: &str = "toolward_host::calls";

/// A listener of calls, nested calls included. [`CallListener::finished`] is called exactly once
/// for each call, whether it succeeded, failed, was refused or was cancelled.
///
/// Its methods run on the task that drives the call; for a cancelled call, while the call's future
/// is dropped. Return quickly, and do slow work elsewhere.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
/// use toolward_host::{CallFacts, CallListener, CallStage, Host};
///
/// /// Counts the calls that failed before their drivers ran.
/// #[derive(Default)]
/// struct Refused(AtomicUsize);
///
/// impl CallListener for Refused {
///     fn finished(&self, call: &CallFacts) {
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
    /// A call starts. [`CallListener::finished`] is called for each call that starts.
    fn began(&self) {}

    /// A driver of this kind is started for a call, for the first time or again.
    fn driver_started(&self, _kind: &DriverKind) {}

    /// A call has ended. [`CallFacts::tool`] of a call in which no tool was found, the subjects of
    /// [`CallFacts::violations`] and a driver's code in [`CallFacts::error`] are untrusted texts of
    /// callers and drivers. If the call [repeats](CallFacts::repeats) an earlier one, the driver is
    /// the earlier call's driver, which did not run again.
    fn finished(&self, call: &CallFacts);
}
