//! The end of a call: `tool_result` and, if the call has no output, `tool_error` with the reason
//! and the possible next step. Also writes a reply as Amplifier's `ToolResult`.

use std::borrow::Cow;

use serde_json::{Value, json};

use toolward_contract::schema::Schema;
use toolward_host::{Block, BlockContent, CallError, ErrorClass, ErrorCode, Origin, Output, Reply};
use toolward_support::text::visible;

use super::call::EndedCall;
use super::declaration::line;
use super::references::{milliseconds, object, record, timestamp};

/// Returns how far the call got: `completed` has an output; `partial` asks and can continue with
/// answers; `rejected` failed before a driver ran; `failed` failed after that.
fn status(reply: &Reply) -> &'static str {
    match &reply.result {
        Ok(_) => "completed",
        Err(_) if reply.asked.is_some() => "partial",
        Err(_) if reply.metadata.attempts == 0 => "rejected",
        Err(_) => "failed",
    }
}

/// Returns the result of a call. The host has no artifacts and no partial results, so their lists
/// are empty.
pub(crate) fn record(call: &EndedCall<'_>, policy_refs: &[String]) -> Value {
    let reply = call.reply;
    let content = reply.result.as_ref().map(|output| &*output.content);
    let content = content.unwrap_or_default();
    let none: [String; 0] = [];
    record! {
        result_id = reference(&reply.metadata.invocation);
        invocation_id = reply.metadata.invocation;
        status = status(reply);
        is_error = reply.result.is_err();
        content = content;
        // Omitted if there is no output, and `null` if the output is null.
        structured_content ? reply.result.as_ref().ok().map(|output| &output.structured);
        model_facing_content = model_facing(call);
        resource_refs = content.iter().filter_map(linked).collect::<Vec<_>>();
        artifact_refs = none;
        evidence_refs = call.evidence;
        policy_refs = policy_refs;
        telemetry_refs = none;
        persistence_refs = none;
        redaction_state = match call.has_secrets() {
            true => "applied",
            false => "not_required",
        };
        created_at = timestamp(call.ended);
    }
}

pub(crate) fn reference(invocation: &str) -> String {
    format!("result:{invocation}")
}

fn model_facing(call: &EndedCall<'_>) -> Value {
    let text = match &call.reply.result {
        Ok(output) if !output.content.is_empty() => return json!(output.content),
        Ok(output) => outward(output, call.tool.map(|tool| &tool.contract.outputs)).to_string(),
        Err(error) => text_of(error),
    };
    json!([Block {
        content: BlockContent::Text { text },
        annotations: None,
    }])
}

/// Returns the part of an output that a model may see, without values that the tool's output schema
/// marks `x-internal`.
fn outward<'a>(output: &'a Output, outputs: Option<&Schema>) -> Cow<'a, Value> {
    match outputs {
        Some(schema) if schema.has_internal() => {
            Cow::Owned(schema.outward_value(output.structured.clone()))
        }
        _ => Cow::Borrowed(&output.structured),
    }
}

fn linked(block: &Block) -> Option<Value> {
    match &block.content {
        BlockContent::ResourceLink { uri, name, .. } => {
            Some(json!({ "uri": line(uri), "name": line(name) }))
        }
        _ => None,
    }
}

/// The most characters of a message or a hint.
const MAX_MESSAGE_CHARS: usize = 4096;

/// Returns what can make a call succeed after this error: calling again, after `retry_after` if it
/// is set; another tool or other arguments; another policy, which the operator must write; setup;
/// or nothing that is known.
fn recoverability(error: &CallError) -> &'static str {
    // If the driver asked, making the call again with answers continues it.
    if error.retryable || error.code == ErrorCode::INPUT_REQUIRED {
        return "retry";
    }
    match error.class {
        ErrorClass::UnknownTool
        | ErrorClass::InvalidArguments
        | ErrorClass::SchemaValidationFailed
        | ErrorClass::SchemaNotLoaded
        | ErrorClass::ResultTooLarge => "change_arguments",
        // A driver's error concerns a policy of another system.
        ErrorClass::PermissionDenied if error.origin == Origin::Driver => "none",
        ErrorClass::PermissionDenied
        | ErrorClass::PolicyBlocked
        | ErrorClass::CapabilityGap
        | ErrorClass::SandboxViolation => "change_policy",
        ErrorClass::SetupRequired | ErrorClass::CredentialMissing => "setup",
        ErrorClass::DependencyUnavailable if error.origin == Origin::Host => "setup",
        // The person has not answered yet.
        ErrorClass::ApprovalRejected if error.code == ErrorCode::APPROVAL_PENDING => "retry",
        _ => "none",
    }
}

/// Describes why a call has no output.
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
        evidence_refs = call.evidence;
    }
}

/// Returns text of several lines that is safe to show.
pub(crate) fn prose(text: &str) -> String {
    visible(text, MAX_MESSAGE_CHARS)
}

/// Returns a value in which all texts, including names, are safe to show.
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

/// Returns an error as text for a model.
pub(crate) fn text_of(error: &CallError) -> String {
    let mut text = format!("{}: {}", error.code, prose(&error.message));
    if let Some(hint) = &error.hint {
        text.push_str("\nnext: ");
        text.push_str(&prose(hint));
    }
    text
}

/// Returns a reply as Amplifier's `ToolResult`, which a model reads. The field `output` is the
/// value or, if this is null, the text of the content blocks.
pub fn amplifier_result(reply: &Reply, outputs: Option<&Schema>) -> Value {
    let value = reply.result.as_ref().ok();
    let error = reply.result.as_ref().err().map(|error| {
        object! {
            message = prose(&error.message);
            type = error.code;
            class = error.class;
            retryable = error.retryable;
            retry_after_ms = error.retry_after.map(milliseconds);
            hint ? error.hint.as_deref().map(prose);
        }
    });
    json!({
        "success": value.is_some(),
        "output": value.and_then(|value| value_or_text(value, outputs)),
        "error": error,
    })
}

fn value_or_text<'a>(output: &'a Output, outputs: Option<&Schema>) -> Option<Cow<'a, Value>> {
    if !output.structured.is_null() {
        return Some(outward(output, outputs));
    }
    let blocks = output.content.iter();
    let texts = blocks.filter_map(|block| match &block.content {
        BlockContent::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let texts: Vec<&str> = texts.collect();
    (!texts.is_empty()).then(|| Cow::Owned(texts.join("\n").into()))
}
