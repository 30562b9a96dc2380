//! `tool_input_contract` and `tool_output_contract`: what a tool takes and gives, as a
//! model sees it and as the host checks it.

use serde_json::{Value, json};
use toolward_contract::driver::DriverKind;
use toolward_contract::schema::Schema;
use toolward_contract::tool::Tool;
use toolward_host::{DriverFacts, ToolFacts};
use toolward_support::text::{visible, visible_line};

use crate::records::object::{object, record};
use crate::records::references::serving;

/// Characters of one title or description within a schema.
const MAX_PROSE_CHARS: usize = 2000;
/// Characters of an example's name.
const MAX_NAME_CHARS: usize = 200;

/// The dialect of every contract (AIP-14).
const DIALECT: &str = "json-schema-2020-12";

/// What a tool takes. The host refuses what the schema does not allow, and passes the rest to the driver unchanged.
pub(crate) fn input_contract(contract: &Tool) -> Value {
    let schema = &contract.inputs;
    let examples = contract.examples.iter().map(|example| {
        json!({
            "name": visible_line(&example.name, MAX_NAME_CHARS),
            "input": schema.outward_value(example.input.clone()),
        })
    });
    let is_object = schema
        .closed()
        .get("type")
        .is_some_and(|name| name == "object");
    record! {
        model_input_schema = model_view(schema);
        runtime_input_schema = schema.closed();
        strict = true;
        argument_mode = if is_object { "object" } else { "value" };
        validation = DIALECT;
        sensitive_fields = schema.sensitive_fields();
        internal_only_fields = schema.internal_fields();
        mutation_policy = "none";
        examples = examples.collect::<Vec<_>>();
    }
}

/// What a tool gives: a result is whole, or the call ends with `result_too_large`.
pub(crate) fn output_contract(info: &ToolFacts) -> Value {
    let schema = &info.contract.outputs;
    let driver = serving(info);
    let requested = |driver: &DriverFacts| driver.declaration.limits.output_bytes;
    let content_types: &[&str] = match driver.map(|driver| &driver.declaration.kind) {
        Some(DriverKind::Component) => &[
            "structured",
            "text",
            "image",
            "audio",
            "resource_link",
            "resource",
        ],
        _ => &["structured"],
    };
    record! {
        output_schema = model_view(schema);
        content_types = content_types;
        media_mode = "base64";
        result_size_policy = object! {
            on_exceed = "fail";
            requested_bytes ? driver.and_then(requested);
        };
        sensitive_fields = schema.sensitive_fields();
        internal_only_fields = schema.internal_fields();
    }
}

/// What a model may see of a schema, its author's prose made safe.
pub(crate) fn model_view(schema: &Schema) -> Value {
    schema.outward_view("", &|text| visible(text, MAX_PROSE_CHARS))
}
