//! `tool_error`: why a call has no result, and what can be done about it.

use serde_json::Value;
use toolward_host::{CallError, ErrorClass, ErrorCode, Origin};
use toolward_support::text::visible;

use crate::records::declaration::line;
use crate::records::ended_call::EndedCall;
use crate::records::object::record;
use crate::records::references::milliseconds;

/// Characters of a message or a hint.
const MAX_MESSAGE_CHARS: usize = 4096;

/// What can make the same call succeed: calling again, after `retry_after` if that is given; another tool or other
/// arguments; another policy, which is the operator's; something that must be set up; or nothing that is known.
fn recoverability(error: &CallError) -> &'static str {
    // A call that asks goes on with answers.
    if error.retryable || error.code == ErrorCode::INPUT_REQUIRED {
        return "retry";
    }
    match error.class {
        ErrorClass::UnknownTool
        | ErrorClass::InvalidArguments
        | ErrorClass::SchemaValidationFailed
        | ErrorClass::SchemaNotLoaded
        | ErrorClass::ResultTooLarge => "change_arguments",
        // A driver's is about somebody else's policy.
        ErrorClass::PermissionDenied if error.origin == Origin::Driver => "none",
        ErrorClass::PermissionDenied
        | ErrorClass::PolicyBlocked
        | ErrorClass::CapabilityGap
        | ErrorClass::SandboxViolation => "change_policy",
        ErrorClass::SetupRequired | ErrorClass::CredentialMissing => "setup",
        ErrorClass::DependencyUnavailable if error.origin == Origin::Host => "setup",
        // The answer is still to come.
        ErrorClass::ApprovalRejected if error.code == ErrorCode::APPROVAL_PENDING => "retry",
        _ => "none",
    }
}

/// Why a call has no result.
pub(crate) fn tool_error(call: &EndedCall<'_>, error: &CallError, policy_refs: &[String]) -> Value {
    record! {
        invocation_id = call.reply.metadata.invocation;
        error_code = error.code;
        error_class = error.class;
        message = prose(&error.message);
        recoverability = recoverability(error);
        retry_after ? error.retry_after.map(milliseconds);
        origin = error.origin;
        limit ? error.limit;
        cause ? error.cause.as_ref().map(shown);
        hint ? error.hint.as_deref().map(prose);
        policy_refs = policy_refs;
        evidence_refs = call.evidence();
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
