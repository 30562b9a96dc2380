//! How a call ends: the terminal result, its metadata, and the envelope that
//! callers see (AIP-14 "Errors").

mod code;
mod content;
mod error;
mod log_record;
pub(crate) mod weight;

pub use code::{ErrorClass, ErrorCode, WorldErrorCode};
pub use content::{Annotations, Block, BlockContent, ResourceBody, Role};
pub use error::{CallError, Hit, Origin};

pub use log_record::{LogLevel, LogRecord};

pub(crate) use error::{shortened, too_much_memory};

use std::sync::Arc;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::api::violations::Violation;
use crate::elicitation::Asked;
use crate::tape::Replayed;

/// The output of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// The value, valid against the contract's `outputs`.
    pub structured: Value,
    /// The content for a model; if empty, the host shows `structured` as text.
    pub content: Vec<Block>,
}

/// The terminal result of one call. Every call ends with one, denial and
/// timeout included.
///
/// ```
/// use toolward_host::{Metadata, Output, Reply, Violation};
///
/// fn show(reply: &Reply) {
///     if let Ok(Output { structured, .. }) = &reply.result {
///         println!("{structured}");
///     }
///     let Metadata { tool, milliseconds, fuel, violations, .. } = &reply.metadata;
///     println!("{tool}: {milliseconds} ms, {fuel} units of fuel");
///     for Violation { kind, subject } in violations {
///         println!("tried {kind:?} {subject:?}");
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Reply {
    /// The output, or why there is none.
    pub result: Result<Output, CallError>,
    /// What was called, and what it took.
    pub metadata: Metadata,
    /// What the driver logged and printed. Untrusted text.
    pub captured: Captured,
    /// The questions of the driver. `result` is then an error with the
    /// code [`ErrorCode::INPUT_REQUIRED`].
    pub asked: Option<Box<Asked>>,
}

/// What was called, by what, and what it took.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Metadata {
    /// The invocation's id, a UUIDv7.
    pub invocation: String,
    /// The tool as `id@version`; as in the request if none was found.
    pub tool: Arc<str>,
    /// The driver's id, once one was chosen.
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
    /// Who gave the output, where that was a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Whether the end of a call that changes something was recorded before the reply; `None` where that is not
    /// waited for. Written where it failed: the row follows later.
    #[serde(skip_serializing_if = "is_recorded")]
    pub recorded: Option<bool>,
    /// The invocation whose reply this is, where the call repeats an id ([`Request::named`](crate::Request::named)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeats: Option<String>,
    /// The recorded call whose result this is: nothing ran for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Replayed>,
    /// How often drivers were started.
    pub attempts: u32,
    /// The drivers that were tried, in order; the last one is `driver`. Written where there
    /// are several.
    #[serde(skip_serializing_if = "is_single")]
    pub tried: Vec<Tried>,
    /// Time from request to result in milliseconds, rounded to microseconds.
    pub milliseconds: f64,
    /// Fuel consumed by all attempts. Too low after a hardware trap.
    pub fuel: u64,
    /// The peak memory of an attempt, in bytes: the driver's own, what the host held
    /// for it, and that of nested calls.
    pub peak_memory: u64,
    /// What the driver tried beyond its grant: each once, the first 32.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Violation>,
    /// The number of all violations.
    #[serde(skip_serializing_if = "is_zero")]
    pub violations_total: u64,
}

/// A driver that was tried for a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Tried {
    /// Its id.
    pub driver: Arc<str>,
    /// Who published it.
    pub driver_publisher: Arc<str>,
    /// BLAKE3 of the manifest of its bundle, 64 hex digits.
    pub bundle: Arc<str>,
    /// How often it was started.
    pub attempts: u32,
    /// Why it did not serve the call; `None` where it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorCode>,
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

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde asks for"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What a driver logged and printed, within its limits, in the last attempt.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Captured {
    /// Its log records.
    pub logs: Vec<LogRecord>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Reply {
    /// The envelope as a value; [`Reply`] itself serialises to the same, without
    /// a copy of the output.
    pub fn envelope(&self) -> Value {
        serde_json::to_value(self).unwrap_or(Value::Null)
    }
}

/// The envelope: `{"ok": true, "value": …, "meta": …}` or
/// `{"ok": false, "error": …, "meta": …}`. Content blocks are under `content`
/// where there are any.
impl Serialize for Reply {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut envelope = serializer.serialize_struct("Reply", 4)?;
        envelope.serialize_field("ok", &self.result.is_ok())?;
        match &self.result {
            Ok(output) => {
                envelope.serialize_field("value", &output.structured)?;
                if !output.content.is_empty() {
                    envelope.serialize_field("content", &output.content)?;
                }
            }
            Err(error) => envelope.serialize_field("error", error)?,
        }
        envelope.serialize_field("meta", &self.metadata)?;
        envelope.end()
    }
}
