//! `tool_result`: how a call ended, with its output.

use serde::Serialize;
use serde_json::Value;
use toolward_host::{Block, BlockContent, Reply};

use crate::records::declaration::line;
use crate::records::ended_call::EndedCall;
use crate::records::error::text_of;
use crate::records::references::timestamp;
use crate::records::version::SchemaVersion;

/// How far the call got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ResultStatus {
    /// It has an output.
    Completed,
    /// The driver asks, and the call can continue with answers.
    Partial,
    /// It failed before a driver ran.
    Rejected,
    /// A driver ran, and there is no output.
    Failed,
}

impl ResultStatus {
    fn of(reply: &Reply) -> Self {
        match &reply.result {
            Ok(_) => Self::Completed,
            Err(_) if reply.asked.is_some() => Self::Partial,
            Err(_) if reply.metadata.attempts == 0 => Self::Rejected,
            Err(_) => Self::Failed,
        }
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolResult<'a> {
    /// The version of Agent Tool.
    pub schema_version: SchemaVersion,
    /// Its reference.
    pub result_id: String,
    /// The invocation's id.
    pub invocation_id: String,
    /// How far the call got.
    pub status: ResultStatus,
    /// Whether there is an error instead of an output.
    pub is_error: bool,
    /// The driver's content blocks.
    pub content: &'a [Block],
    /// The output: left out where there is none, `null` where it is null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured_content: Option<&'a Value>,
    /// What a model is shown: the blocks, else the output or the error as text.
    pub model_facing_content: ModelFacing<'a>,
    /// The resources that the content links to.
    pub resource_refs: Vec<ResourceRef>,
    /// Always empty: artifacts are not the host's.
    pub artifact_refs: Vec<String>,
    /// The rows of the ledger that have the call, as `ledger:ORIGIN/SEQ`.
    pub evidence_refs: Vec<String>,
    /// The rules that decided.
    pub policy_refs: Vec<String>,
    /// Always empty: measurements stand in the invocation.
    pub telemetry_refs: Vec<String>,
    /// Always empty: a result is returned whole.
    pub persistence_refs: Vec<String>,
    /// `applied` where the driver has secrets, of which the result is free; else
    /// `not_required`.
    pub redaction_state: &'static str,
    /// When the call ended.
    pub created_at: String,
}

/// A resource that a result links to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ResourceRef {
    /// Where it is.
    pub uri: String,
    /// Its name.
    pub name: String,
}

/// What a model is shown of a result.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum ModelFacing<'a> {
    /// The driver's blocks.
    Blocks(&'a [Block]),
    /// One text.
    Text([Block; 1]),
}

impl<'a> ToolResult<'a> {
    pub(crate) fn of(call: &EndedCall<'a>, policy_refs: Vec<String>) -> Self {
        let reply = call.reply;
        let content = reply.result.as_ref().map(|output| &*output.content);
        let content = content.unwrap_or_default();
        Self {
            schema_version: SchemaVersion,
            result_id: reference(&reply.metadata.invocation),
            invocation_id: reply.metadata.invocation.clone(),
            status: ResultStatus::of(reply),
            is_error: reply.result.is_err(),
            content,
            structured_content: reply.result.as_ref().ok().map(|output| &output.structured),
            model_facing_content: model_facing(call),
            resource_refs: content.iter().filter_map(linked).collect(),
            artifact_refs: Vec::new(),
            evidence_refs: call.evidence(),
            policy_refs,
            telemetry_refs: Vec::new(),
            persistence_refs: Vec::new(),
            redaction_state: match call.has_secrets() {
                true => "applied",
                false => "not_required",
            },
            created_at: timestamp(call.ended),
        }
    }
}

pub(crate) fn reference(invocation: &str) -> String {
    format!("result:{invocation}")
}

fn model_facing<'a>(call: &EndedCall<'a>) -> ModelFacing<'a> {
    let text = match &call.reply.result {
        Ok(output) if !output.content.is_empty() => return ModelFacing::Blocks(&output.content),
        Ok(output) => match call.tool.map(|tool| &tool.contract.outputs) {
            Some(schema) if schema.has_internal() => {
                schema.outward_value(output.structured.clone()).to_string()
            }
            _ => output.structured.to_string(),
        },
        Err(error) => text_of(error),
    };
    ModelFacing::Text([Block {
        content: BlockContent::Text { text },
        annotations: None,
    }])
}

fn linked(block: &Block) -> Option<ResourceRef> {
    match &block.content {
        BlockContent::ResourceLink { uri, name, .. } => Some(ResourceRef {
            uri: line(uri),
            name: line(name),
        }),
        _ => None,
    }
}
