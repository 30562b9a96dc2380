//! `tool_result`: how a call ended, with its output.

use serde_json::{Value, json};
use toolward_host::{Block, BlockContent, Reply};

use crate::records::declaration::line;
use crate::records::ended_call::EndedCall;
use crate::records::error::text_of;
use crate::records::object::record;
use crate::records::references::timestamp;

/// How far the call got: `completed` has an output, `partial` asks and can continue with answers, `rejected` failed
/// before a driver ran, `failed` after.
fn status(reply: &Reply) -> &'static str {
    match &reply.result {
        Ok(_) => "completed",
        Err(_) if reply.asked.is_some() => "partial",
        Err(_) if reply.metadata.attempts == 0 => "rejected",
        Err(_) => "failed",
    }
}

/// The result of a call. Artifacts and pieces of results are not the host's: their lists are empty.
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
        // Left out if there is no output, `null` if it is null.
        structured_content ? reply.result.as_ref().ok().map(|output| &output.structured);
        model_facing_content = model_facing(call);
        resource_refs = content.iter().filter_map(linked).collect::<Vec<_>>();
        artifact_refs = none;
        evidence_refs = call.evidence();
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
        Ok(output) => match call.tool.map(|tool| &tool.contract.outputs) {
            Some(schema) if schema.has_internal() => {
                schema.outward_value(output.structured.clone()).to_string()
            }
            _ => output.structured.to_string(),
        },
        Err(error) => text_of(error),
    };
    json!([Block {
        content: BlockContent::Text { text },
        annotations: None,
    }])
}

fn linked(block: &Block) -> Option<Value> {
    match &block.content {
        BlockContent::ResourceLink { uri, name, .. } => {
            Some(json!({ "uri": line(uri), "name": line(name) }))
        }
        _ => None,
    }
}
