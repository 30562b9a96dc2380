//! `tool_external_mapping`: what a tool is called by in protocols that Agent Tool does
//! not replace.

use serde_json::{Value, json};

use crate::records::object::record;

/// The name of this server over MCP.
const SERVER: &str = "toolward";

/// What protocols call a tool that models call by `name`: the Model Context Protocol, as `toolward serve` speaks it,
/// and a model's interface for calls of functions, whose provider need not enforce the schema.
pub(crate) fn external_mappings(tool_id: &str, name: &str) -> [Value; 2] {
    let mcp = record! {
        tool_id = tool_id;
        protocol = "mcp";
        server_id = SERVER;
        method = "tools/call";
        tool_name = name;
    };
    let function = record! {
        tool_id = tool_id;
        protocol = "function_calling";
        function_name = name;
        strict = false;
        defer_loading = false;
    };
    [mcp, function]
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
