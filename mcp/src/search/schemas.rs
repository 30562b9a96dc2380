//! What the server's own tools take and give: their descriptions and schemas, and
//! `deferred_tool_ref` of Agent Tool, a tool that can be found and whose schema is not loaded.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use rmcp::model::JsonObject;
use serde::Serialize;

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

/// The schema of what a tool of the server takes (`search`, `load`, `call`), or gives (`found`, `loaded`).
pub(super) fn schema(name: &str) -> Arc<JsonObject> {
    static ALL: LazyLock<HashMap<String, Arc<JsonObject>>> = LazyLock::new(|| {
        // A test reads it, too.
        serde_json::from_str(include_str!("schemas.json")).unwrap_or_default()
    });
    ALL.get(name).cloned().unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schemas_state_the_limits() {
        let properties = |name: &str| schema(name)["properties"].clone();
        assert_eq!(properties("search")["names"]["maxItems"], MAX_NAMES);
        assert_eq!(properties("search")["limit"]["maximum"], MAX_MATCHES);
        for name in ["load", "call", "found", "loaded"] {
            assert!(properties(name).is_object(), "{name}");
        }
    }
}
