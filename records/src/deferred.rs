//! `deferred_tool_ref`: a tool that can be found, and whose schema is not loaded.

use serde::Serialize;

use crate::version::SchemaVersion;

/// What the holder of a reference sees of the tool's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SchemaVisibility {
    /// All that a model may see of it.
    Loaded,
    /// Nothing yet; it can be loaded.
    Deferred,
    /// Nothing: it is not for callers.
    Internal,
}

/// Whether the tool can be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LoadingState {
    /// It is loaded.
    Loaded,
    /// It can be loaded.
    Deferred,
    /// It is blocked, and can't be loaded.
    Unavailable,
}

/// A reference to a tool, enough to choose it by. The caller makes texts of publishers
/// safe to show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeferredTool {
    /// The version of Agent Tool.
    pub schema_version: SchemaVersion,
    /// The contract's id.
    pub tool_id: String,
    /// The name that it is called by.
    pub name: String,
    /// Its collision boundary.
    pub namespace: String,
    /// Its display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Words for discovery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search_hint: Option<String>,
    /// Its publisher.
    pub source: String,
    /// What its reader sees of its schema.
    pub schema_visibility: SchemaVisibility,
    /// Whether it can be loaded.
    pub loading_state: LoadingState,
    /// Why it was found, or why it is blocked.
    pub reason: String,
    /// Whose component is still to be compiled: a call waits for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_provider_or_server: Option<String>,
}
