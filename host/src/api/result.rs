//! How a call ends: the terminal result, its metadata, and the envelope that
//! callers see (AIP-14 "Errors").

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::Value;
pub use toolward_sandbox::result::*;

use crate::api::facts::CallFacts;
use crate::elicitation::Asked;

/// The result of an operation that may end a call.
pub(crate) type Result<T, E = CallError> = std::result::Result<T, E>;

/// The error of a call that lacks a grant, or something that its grant needs.
pub(crate) fn unauthorised(class: ErrorClass, message: impl Into<String>) -> CallError {
    CallError::new(ErrorCode::UNAUTHORISED, class, message)
}

/// The error of arguments that match their schema, but can't be taken.
pub(crate) fn invalid_arguments(message: impl Into<String>) -> CallError {
    let class = ErrorClass::InvalidArguments;
    CallError::new(ErrorCode::INPUT_INVALID, class, message)
}

/// The terminal result of one call. Every call ends with one, denial and
/// timeout included.
///
/// ```
/// use toolward_host::{CallFacts, Output, Reply, Violation};
///
/// fn show(reply: &Reply) {
///     if let Ok(Output { structured, .. }) = &reply.result {
///         println!("{structured}");
///     }
///     let CallFacts { tool, milliseconds, fuel, violations, .. } = &reply.metadata;
///     println!("{tool}: {milliseconds} ms, {fuel} units of fuel");
///     for Violation { kind, subject } in violations {
///         println!("tried {kind:?} {subject:?}");
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Reply {
    /// The output, or the error.
    pub result: Result<Output, CallError>,
    /// The facts of the call: `meta` of the envelope.
    pub metadata: CallFacts,
    /// The logs and the captured output of the driver, which are untrusted text.
    pub captured: Captured,
    /// The questions of the driver, if it asks. `result` is then an error with the code
    /// [`ErrorCode::INPUT_REQUIRED`].
    pub asked: Option<Box<Asked>>,
}

impl Reply {
    /// The envelope as a value; [`Reply`] itself serialises to the same JSON, without a copy of the
    /// output.
    pub fn envelope(&self) -> Value {
        serde_json::to_value(self).unwrap_or(Value::Null)
    }
}

/// The envelope: `{"ok": true, "value": …, "meta": …}` or `{"ok": false, "error": …, "meta": …}`.
/// Content blocks, if any, are under `content`.
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
