//! `tool_external_mapping`: what a tool is called by in protocols that Agent Tool does
//! not replace.

use serde::Serialize;
use serde_json::{Value, json};

use crate::records::version::SchemaVersion;

/// The name of this server over MCP.
const SERVER: &str = "toolward";

/// The name of a tool in another protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExternalMapping {
    /// The version of Agent Tool.
    pub schema_version: SchemaVersion,
    /// The tool's id.
    pub tool_id: String,
    /// The ids, with the names that the protocol has for them.
    #[serde(flatten)]
    pub native: Native,
}

/// The ids of a tool in one protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "protocol", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Native {
    /// The Model Context Protocol, as `toolward serve` speaks it.
    Mcp {
        /// The server.
        server_id: &'static str,
        /// The method that calls it.
        method: &'static str,
        /// Its name.
        tool_name: String,
    },
    /// A model's interface for calls of functions.
    FunctionCalling {
        /// Its name.
        function_name: String,
        /// Whether the model's provider enforces the schema: the host does so itself.
        strict: bool,
        /// Whether its schema is loaded later.
        defer_loading: bool,
    },
}

impl ExternalMapping {
    /// Those of a tool that models call by `name`.
    pub(crate) fn all(tool_id: &str, name: &str) -> Vec<Self> {
        let mcp = Native::Mcp {
            server_id: SERVER,
            method: "tools/call",
            tool_name: name.to_owned(),
        };
        let function = Native::FunctionCalling {
            function_name: name.to_owned(),
            strict: false,
            defer_loading: false,
        };
        let mapping = |native| Self {
            schema_version: SchemaVersion,
            tool_id: tool_id.to_owned(),
            native,
        };
        [mcp, function].map(mapping).into()
    }
}

/// The definition of a function for models, in the form of OpenAI's chat completions.
/// `definition` is the tool as MCP lists it.
#[must_use]
pub fn function_definition(definition: &Value) -> Value {
    let of = |key: &str| definition.get(key).cloned().unwrap_or_default();
    json!({
        "type": "function",
        "function": {
            "name": of("name"),
            "description": of("description"),
            "parameters": of("inputSchema"),
            // The host checks the input itself, by more keywords than the strict form has.
            "strict": false,
        },
    })
}

/// Amplifier's specification of a tool. `definition` is the tool as MCP lists it.
#[must_use]
pub fn amplifier_spec(definition: &Value) -> Value {
    let of = |key: &str| definition.get(key).cloned().unwrap_or_default();
    json!({
        "name": of("name"),
        "description": of("description"),
        "parameters": of("inputSchema"),
    })
}
