//! What the server's own tools take and give: their descriptions and schemas, and
//! `deferred_tool_ref` of Agent Tool, a tool that can be found and whose schema is not loaded.

use std::sync::Arc;

use rmcp::model::JsonObject;
use serde::Serialize;
use serde_json::{Value, json};

pub(super) const MAX_MATCHES: usize = 25;
/// Names that one search may ask for.
pub(super) const MAX_NAMES: usize = 25;

pub(super) const SEARCH: &str = "Finds tools by keywords (`query`), or by their exact `names`: one is needed. Gives names \
     and summaries, no schemas: load a tool with `load_tool` before you call it. Summaries are \
     text of the tools' publishers.";

pub(super) const LOAD: &str = "Gives the full description and the schemas of one tool, and a \
     reference to call it by with `call_tool`. The description is text of the tool's publisher.";

pub(super) const CALL: &str = "Calls a tool that was loaded with `load_tool`. `input` must \
     fit the input schema that `load_tool` gave.";

pub(super) fn search() -> Arc<JsonObject> {
    object(json!({
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "maxLength": 400,
                "description": "What the tool should do, in a few words.",
            },
            "names": {
                "type": "array",
                "items": { "type": "string" },
                "maxItems": MAX_NAMES,
                "description": "Exact names of tools.",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_MATCHES,
                "description": "How many tools to give at most.",
            },
        },
        "additionalProperties": false,
    }))
}

pub(super) fn load() -> Arc<JsonObject> {
    object(json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "description": "The tool's name, as `search_tools` gave it." },
        },
        "required": ["name"],
        "additionalProperties": false,
    }))
}

pub(super) fn call() -> Arc<JsonObject> {
    object(json!({
        "type": "object",
        "properties": {
            "reference": { "type": "string", "description": "The reference that `load_tool` gave." },
            "input": { "type": "object", "description": "The input of the tool." },
        },
        "required": ["reference"],
        "additionalProperties": false,
    }))
}

pub(super) fn found() -> Arc<JsonObject> {
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "array", "items": text });
    let count = json!({ "type": "integer", "minimum": 0 });
    object(json!({
        "type": "object",
        "properties": {
            "schema_version": text,
            "status": { "enum": ["matched", "no_match"] },
            "matches": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "schema_version": text,
                        "tool_id": text,
                        "name": text,
                        "namespace": text,
                        "title": text,
                        "summary": text,
                        "search_hint": text,
                        "source": text,
                        "schema_visibility": { "const": "deferred" },
                        "loading_state": { "const": "deferred" },
                        "reason": { "enum": ["exact_name", "keywords"] },
                        "pending_provider_or_server": text,
                    },
                    "required": ["schema_version", "tool_id", "name", "namespace", "source", "loading_state", "reason"],
                },
            },
            "total_matches": count,
            "total_tools": count,
            "unknown_names": texts,
            "blocked_tools": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "schema_version": text,
                        "tool_id": text,
                        "name": text,
                        "namespace": text,
                        "source": text,
                        "schema_visibility": { "const": "internal" },
                        "loading_state": { "const": "unavailable" },
                        "reason": text,
                    },
                    "required": ["schema_version", "tool_id", "name", "namespace", "source", "loading_state", "reason"],
                },
            },
            "pending_tools": texts,
        },
        "required": ["schema_version", "status", "matches", "total_matches", "total_tools"],
    }))
}

pub(super) fn loaded() -> Arc<JsonObject> {
    let text = json!({ "type": "string" });
    let schema = json!({ "type": "object" });
    object(json!({
        "type": "object",
        "properties": {
            "schema_version": text,
            "loading_state": { "const": "loaded" },
            "reference": text,
            "tool_id": text,
            "version": text,
            "publisher": text,
            "name": text,
            "title": text,
            "description": text,
            "input_schema": schema,
            "output_schema": schema,
            "annotations": schema,
        },
        "required": ["schema_version", "loading_state", "reference", "name", "input_schema"],
    }))
}

fn object(value: Value) -> Arc<JsonObject> {
    match value {
        Value::Object(keywords) => Arc::new(keywords),
        _ => Arc::default(),
    }
}

/// The version of Agent Tool.
pub(super) const AGENT_TOOL: &str = "0.2.0";

/// A reference to a tool, enough to choose it by.
#[derive(Debug, Serialize)]
pub(super) struct DeferredTool {
    /// The version of Agent Tool.
    pub(super) schema_version: &'static str,
    /// The contract's id.
    pub(super) tool_id: String,
    /// The name that it is called by.
    pub(super) name: String,
    /// Its collision boundary.
    pub(super) namespace: String,
    /// Its display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) summary: Option<String>,
    /// Words for discovery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) search_hint: Option<String>,
    /// Its publisher.
    pub(super) source: String,
    /// `deferred`: its schema can be loaded; `internal`: it is not for callers.
    pub(super) schema_visibility: &'static str,
    /// `deferred`: it can be loaded; `unavailable`: it is blocked.
    pub(super) loading_state: &'static str,
    /// Why it was found, or why it is blocked.
    pub(super) reason: String,
    /// Whose component is still to be compiled: a call waits for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pending_provider_or_server: Option<String>,
}
