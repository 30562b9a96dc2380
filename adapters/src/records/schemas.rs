//! The JSON Schemas of the records, written from the tables of the specification. They
//! allow unknown fields, as it asks for.

macro_rules! schemas {
    ($($name:literal = $file:literal,)*) => {
        [$((
            $name,
            include_str!(concat!("../../schemas/", $file, ".schema.json")),
        )),*]
    };
}

/// The name of each object, and the JSON Schema of its records.
pub const SCHEMAS: [(&str, &str); 16] = schemas! {
    "deferred_tool_ref" = "deferred-tool-ref",
    "tool_declaration" = "tool-declaration",
    "tool_error" = "tool-error",
    "tool_event" = "tool-event",
    "tool_execution_profile" = "tool-execution-profile",
    "tool_external_mapping" = "tool-external-mapping",
    "tool_input_contract" = "tool-input-contract",
    "tool_interface" = "tool-interface",
    "tool_invocation" = "tool-invocation",
    "tool_namespace" = "tool-namespace",
    "tool_output_contract" = "tool-output-contract",
    "tool_permission_decision" = "tool-permission-decision",
    "tool_permission_profile" = "tool-permission-profile",
    "tool_progress" = "tool-progress",
    "tool_result" = "tool-result",
    "tool_surface" = "tool-surface",
};
