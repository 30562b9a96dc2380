//! The error of a call: what happened, whose fault it is, and the next step.

use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use toolward_contract::json::JsonError;

use super::{ErrorClass, ErrorCode};
use crate::sandbox::Exceeded;
use crate::sandbox::v0_1::types::ToolError;

/// Who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// This host.
    Host,
    /// The driver; its words are untrusted.
    Driver,
}

/// A limit that a call hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Hit {
    /// The limit's name.
    pub limit: &'static str,
    /// What the call used or asked for, in the limit's unit.
    pub used: u64,
    /// What it was allowed.
    pub allowed: u64,
}

impl From<Exceeded> for Hit {
    fn from(exceeded: Exceeded) -> Self {
        Self {
            limit: exceeded.limit,
            used: exceeded.used,
            allowed: exceeded.allowed,
        }
    }
}

/// Why a call has no output.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[error("{code}: {message}")]
#[non_exhaustive]
pub struct CallError {
    /// The stable code.
    pub code: ErrorCode,
    /// The class of Agent Tool 0.2.0.
    pub class: ErrorClass,
    /// What happened. Text of a driver's where `origin` says so.
    pub message: String,
    /// Whether the same call may work later.
    pub retryable: bool,
    /// How long to wait before that.
    #[serde(
        rename = "retry_after_ms",
        serialize_with = "milliseconds",
        skip_serializing_if = "Option::is_none"
    )]
    pub retry_after: Option<Duration>,
    /// Who says so.
    pub origin: Origin,
    /// The limit that was hit, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Hit>,
    /// What lies behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Value>,
    /// What to do next, for the person who runs the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

#[expect(clippy::ref_option, reason = "the signature that serde asks for")]
fn milliseconds<S: Serializer>(value: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    value
        .map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
        .serialize(serializer)
}

/// The longest error message, in bytes: it may quote what a caller or driver
/// sent.
const MESSAGE: usize = 4096;

impl CallError {
    /// An error of this host's, or of what stands before it: not retryable, without
    /// a hint. The message is cut at 4 KiB.
    #[must_use]
    pub fn new(code: ErrorCode, class: ErrorClass, message: impl Into<String>) -> Self {
        let mut message = message.into();
        message.truncate(message.floor_char_boundary(MESSAGE));
        Self {
            code,
            class,
            message,
            retryable: false,
            retry_after: None,
            origin: Origin::Host,
            limit: None,
            cause: None,
            hint: None,
        }
    }

    /// The input is not the JSON that is allowed: for a call, and for what stands before
    /// the host and has to parse the input's text itself.
    #[must_use]
    pub fn malformed_input(error: &JsonError) -> Self {
        Self::new(
            ErrorCode::INPUT_INVALID,
            ErrorClass::SchemaValidationFailed,
            format!("the input is not the JSON that is allowed: {error}"),
        )
        .with_cause(json!({ "rule": error.code() }))
        .with_hint(match error.code() {
            "json-too-large" => "send less, or raise the host's limit `input_bytes`",
            _ => "send one JSON document, with each key once and whole numbers within ±(2^53-1)",
        })
    }

    /// The same with what lies behind it.
    #[must_use]
    pub fn with_cause(mut self, cause: Value) -> Self {
        self.cause = Some(cause);
        self
    }

    /// The same with the next step.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn with_limit(mut self, limit: Hit) -> Self {
        self.limit = Some(limit);
        self
    }

    pub(crate) fn retry_after(mut self, after: Duration) -> Self {
        self.retryable = true;
        self.retry_after = Some(after);
        self
    }
}

/// The longest cause that is taken from a driver, in bytes of JSON.
const CAUSE: usize = 64 << 10;

/// An error of a driver's. Whatever it calls itself, it is marked as such.
pub(crate) fn map_driver_error(
    error: ToolError,
    json: &toolward_contract::json::Limits,
) -> CallError {
    let mut message = error.message;
    message.truncate(message.floor_char_boundary(MESSAGE));
    let (code, class) = match ErrorCode::from_driver(&error.code) {
        Some(code) => {
            let class = ErrorClass::of_driver_code(code.as_str());
            (code, class)
        }
        None => (ErrorCode::UPSTREAM_ERROR, ErrorClass::ExecutionFailed),
    };
    let cause = error.cause.map(|mut text| {
        text.truncate(text.floor_char_boundary(CAUSE));
        // What is no JSON, or no longer, is passed on as the text it is.
        toolward_contract::json::parse(text.as_bytes(), json).unwrap_or(Value::String(text))
    });
    CallError {
        code,
        class,
        message,
        retryable: error.retryable,
        retry_after: error.retry_after_ms.map(Duration::from_millis),
        origin: Origin::Driver,
        limit: None,
        cause,
        hint: None,
    }
}
