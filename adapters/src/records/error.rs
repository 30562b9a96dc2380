//! `tool_error`: why a call has no result, and what can be done about it.

use serde::Serialize;
use serde_json::Value;
use toolward_host::{CallError, ErrorClass, ErrorCode, Hit, Origin};
use toolward_support::text::visible;

use crate::records::declaration::line;
use crate::records::ended_call::EndedCall;
use crate::records::references::milliseconds;
use crate::records::version::SchemaVersion;

/// Characters of a message or a hint.
const MAX_MESSAGE_CHARS: usize = 4096;

/// What can make the same call succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Recoverability {
    /// Calling again, after `retry_after` where that is given.
    Retry,
    /// Another tool or other arguments.
    ChangeArguments,
    /// Another policy, which is the operator's.
    ChangePolicy,
    /// Something that has to be set up: a credential, a driver, a directory.
    Setup,
    /// Nothing that is known.
    None,
}

impl Recoverability {
    /// That of an error. The one table.
    #[must_use]
    pub fn of(error: &CallError) -> Self {
        // A call that asks goes on with answers.
        if error.retryable || error.code == ErrorCode::INPUT_REQUIRED {
            return Self::Retry;
        }
        match error.class {
            ErrorClass::UnknownTool
            | ErrorClass::InvalidArguments
            | ErrorClass::SchemaValidationFailed
            | ErrorClass::SchemaNotLoaded
            | ErrorClass::ResultTooLarge => Self::ChangeArguments,
            // A driver's is about somebody else's policy.
            ErrorClass::PermissionDenied if error.origin == Origin::Driver => Self::None,
            ErrorClass::PermissionDenied
            | ErrorClass::PolicyBlocked
            | ErrorClass::CapabilityGap
            | ErrorClass::SandboxViolation => Self::ChangePolicy,
            ErrorClass::SetupRequired | ErrorClass::CredentialMissing => Self::Setup,
            ErrorClass::DependencyUnavailable if error.origin == Origin::Host => Self::Setup,
            // The answer is still to come.
            ErrorClass::ApprovalRejected if error.code == ErrorCode::APPROVAL_PENDING => {
                Self::Retry
            }
            _ => Self::None,
        }
    }
}

/// Why a call has no result.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolError {
    /// The version of Agent Tool.
    pub schema_version: SchemaVersion,
    /// The invocation's id.
    pub invocation_id: String,
    /// The stable code.
    pub error_code: ErrorCode,
    /// The class.
    pub error_class: ErrorClass,
    /// What happened. The driver's text if `origin` says so.
    pub message: String,
    /// What can make the same call succeed.
    pub recoverability: Recoverability,
    /// How long to wait before a retry, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// Who reported it.
    pub origin: Origin,
    /// The limit that was hit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Hit>,
    /// Details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<Value>,
    /// What to do next, for the person who runs the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The rules that decided.
    pub policy_refs: Vec<String>,
    /// The rows of the ledger that have the call, as `ledger:ORIGIN/SEQ`.
    pub evidence_refs: Vec<String>,
}

impl ToolError {
    pub(crate) fn of(call: &EndedCall<'_>, error: &CallError, policy_refs: Vec<String>) -> Self {
        Self {
            schema_version: SchemaVersion,
            invocation_id: call.reply.metadata.invocation.clone(),
            error_code: error.code.clone(),
            error_class: error.class,
            message: prose(&error.message),
            recoverability: Recoverability::of(error),
            retry_after: error.retry_after.map(milliseconds),
            origin: error.origin,
            limit: error.limit,
            cause: error.cause.as_ref().map(shown),
            hint: error.hint.as_deref().map(prose),
            policy_refs,
            evidence_refs: call.evidence(),
        }
    }
}

/// Text of several lines, safe to show.
pub(crate) fn prose(text: &str) -> String {
    visible(text, MAX_MESSAGE_CHARS)
}

/// A value with all texts in it safe to show, its names too.
fn shown(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(prose(text)),
        Value::Array(items) => items.iter().map(shown).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| (line(name), shown(member)))
            .collect(),
        other => other.clone(),
    }
}

/// An error as a model reads it.
pub(crate) fn text_of(error: &CallError) -> String {
    let mut text = format!("{}: {}", error.code, prose(&error.message));
    if let Some(hint) = &error.hint {
        text.push_str("\nnext: ");
        text.push_str(&prose(hint));
    }
    text
}
