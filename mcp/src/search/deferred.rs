//! `deferred_tool_ref` of Agent Tool: a tool that can be found, and whose schema is not loaded.

use serde::Serialize;

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
