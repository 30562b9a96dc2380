//! The error of a call: what happened, who caused it, and the next step.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use toolward_contract::json::JsonError;
use toolward_policy::LimitName;

use super::{ErrorClass, ErrorCode};
use crate::exceeded::Exceeded;
use crate::violations::{EndsCall, Violation};

/// Who reported an error, or gave an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// This host.
    Host,
    /// The driver. Its text is untrusted.
    Driver,
    /// A person, who answered a driver of `kind: form`.
    Person,
}

/// Why a call has no output.
///
/// Match on the code or the class, not on the message:
///
/// ```
/// use toolward_sandbox::result::{CallError, ErrorClass, ErrorCode, Origin};
///
/// fn explain(error: &CallError) -> String {
///     match error {
///         CallError { code, .. } if *code == ErrorCode::TIMEOUT => "too long".to_owned(),
///         CallError { class: ErrorClass::RateLimited, retry_after, .. } => {
///             format!("busy, retry after {retry_after:?}")
///         }
///         CallError { origin: Origin::Driver, .. } => format!("the tool says: {error}"),
///         _ => format!("{error} ({})", error.hint.as_deref().unwrap_or_default()),
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{code}: {message}")]
#[non_exhaustive]
pub struct CallError {
    /// The stable code.
    pub code: ErrorCode,
    /// The class of Agent Tool 0.2.0.
    pub class: ErrorClass,
    /// What happened. The driver's text if `origin` is the driver.
    pub message: String,
    /// Whether the same call may work later.
    pub retryable: bool,
    /// How long to wait before a retry.
    #[serde(
        rename = "retry_after_ms",
        serialize_with = "to_milliseconds",
        deserialize_with = "from_milliseconds",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub retry_after: Option<Duration>,
    /// Who reported the error.
    pub origin: Origin,
    /// The limit that was hit, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Exceeded>,
    /// The cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Value>,
    /// The next step, for the caller or the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

#[expect(clippy::ref_option, reason = "the signature that serde asks for")]
fn to_milliseconds<S: Serializer>(value: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    value.map(milliseconds).serialize(to)
}

fn from_milliseconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    Ok(Option::deserialize(from)?.map(Duration::from_millis))
}

/// The longest error message, in bytes. A message is bounded because it may quote a caller or a
/// driver.
const MAX_MESSAGE_BYTES: usize = 4096;

impl CallError {
    /// An error of this host or of a server in front of it: not retryable, without a hint. The
    /// message is truncated at 4 KiB.
    pub fn new(code: ErrorCode, class: ErrorClass, message: impl Into<String>) -> Self {
        let mut message = message.into();
        message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
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

    /// Like [`Self::new`], with the class of the code.
    pub fn of(code: ErrorCode, message: impl Into<String>) -> Self {
        let class = ErrorClass::of_code(code.as_str());
        Self::new(code, class, message)
    }

    /// The error for input that is not valid JSON within the limits. Used by the host, and by a
    /// server in front of it that parses inputs.
    pub fn malformed_input(error: &JsonError) -> Self {
        Self::of(
            ErrorCode::INPUT_INVALID,
            format!("the input is not the JSON that is allowed: {error}"),
        )
        .with_cause(json!({ "rule": error.code() }))
        .with_hint(match error.code() {
            "json-too-large" => "send less, or raise the host's limit `input_bytes`",
            _ => "send one JSON document, with each key once and whole numbers within ±(2^53-1)",
        })
    }

    /// The error for a granted secret that has no value.
    pub fn no_credential(slug: &str) -> Self {
        Self::of(
            ErrorCode::AUTH_REQUIRED,
            format!("the secret `{slug}` is granted and has no value"),
        )
        .with_hint(ErrorCode::AUTH_REQUIRED.ask_the_operator("give the secret a value"))
    }

    /// The error for a nested call that is not granted.
    pub fn not_granted(tool: &str) -> Self {
        Self::new(
            ErrorCode::UNAUTHORISED,
            ErrorClass::CapabilityGap,
            format!("no grant to call the tool `{tool}`"),
        )
    }

    /// Whether the policy, or a person who was asked because of it, denied the call. Codes of a
    /// driver's own errors do not count.
    pub fn is_denial(&self) -> bool {
        self.origin == Origin::Host
            && (self.code == ErrorCode::APPROVAL_DENIED
                || self.code == ErrorCode::UNAUTHORISED
                || self.code == ErrorCode::ADDRESS_NOT_GRANTED
                || matches!(
                    self.class,
                    ErrorClass::CapabilityGap | ErrorClass::PermissionDenied
                ))
    }

    /// The same error with the codes of tools.json, if the call went through an attachment. There,
    /// missing grants and secrets without a value have the same code.
    pub fn of_attachment(self, is_attachment: bool) -> Self {
        let is_gap = matches!(
            self.class,
            ErrorClass::CapabilityGap | ErrorClass::CredentialMissing
        );
        if !(is_attachment && is_gap && self.origin == Origin::Host) {
            return self;
        }
        Self {
            code: ErrorCode::CAP_DENIED,
            class: ErrorClass::CapabilityGap,
            ..self
        }
    }

    /// The error of a call that policy ended at its first violation.
    pub fn violated(violation: &Violation) -> Self {
        Self::new(
            ErrorCode::SANDBOX_VIOLATION,
            ErrorClass::SandboxViolation,
            format!("the driver tried what it was not granted: {violation}"),
        )
        .with_hint(
            "report this to the driver's publisher; the policy's `on_violation` ends such calls",
        )
    }

    /// An internal error of this host.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::of(ErrorCode::INTERNAL, message)
    }

    /// The error of a call that did not end in time.
    pub fn timed_out(allowed: Duration, took: Duration) -> Self {
        let (took, allowed) = (milliseconds(took), milliseconds(allowed));
        Self::of(
            ErrorCode::TIMEOUT,
            format!("the call did not end within {allowed} ms"),
        )
        .with_limit(Exceeded::new(LimitName::Timeout, took, allowed))
        .with_hint(
            "ask for less, or raise the contract's `timeout_ms` and the host's limit `timeout_ms`",
        )
    }

    /// The error of a result that is larger than allowed.
    pub fn too_large(used: u64, allowed: u64) -> Self {
        Self::new(
            ErrorCode::RESULT_TOO_LARGE,
            ErrorClass::ResultTooLarge,
            format!("the result is larger than the {allowed} bytes that are allowed"),
        )
        .with_limit(Exceeded::new(LimitName::Output, used, allowed))
        .with_hint("ask for less, or raise the limit `output_bytes`")
    }

    /// An error of a driver, which is always marked as the driver's.
    pub fn of_driver(code: ErrorCode, message: String, cause: Option<Value>) -> Self {
        Self {
            origin: Origin::Driver,
            cause,
            ..Self::of(code, message)
        }
    }

    /// Adds the cause.
    pub fn with_cause(mut self, cause: Value) -> Self {
        self.cause = Some(cause);
        self
    }

    /// Adds the next step, for the caller or the operator.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the limit that was hit.
    pub fn with_limit(mut self, limit: Exceeded) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Makes it retryable, after this time.
    pub fn with_retry_after(mut self, after: Duration) -> Self {
        self.retryable = true;
        self.retry_after = Some(after);
        self
    }
}

impl From<EndsCall> for CallError {
    fn from(ends: EndsCall) -> Self {
        Self::violated(&ends.0)
    }
}

pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The error if a text fits into the memory limit, but the values parsed from it do not.
pub fn too_much_memory(allowed: u64) -> CallError {
    CallError::of(
        ErrorCode::MEMORY_EXCEEDED,
        format!(
            "the result would take more of the host's memory than the {allowed} bytes that are \
             allowed (limit `memory_bytes`)"
        ),
    )
    .with_limit(Exceeded::over(LimitName::Memory, allowed))
    .with_hint(
        "ask for less, or raise `limits.memory_mib` in DRIVER.md and the host's limit \
         `memory_bytes`",
    )
}

/// Shortens the path of a part of a value to 1 KiB, since the sender chooses the keys, which may be
/// long.
pub fn shortened(mut path: String) -> String {
    path.truncate(path.floor_char_boundary(1024));
    path
}
