//! `tool_input_contract` and `tool_output_contract`: what a tool takes and gives, as a
//! model sees it and as the host checks it.

use serde::Serialize;
use serde_json::Value;
use toolward_contract::driver::DriverKind;
use toolward_contract::schema::Schema;
use toolward_contract::tool::Tool;
use toolward_host::{DriverInfo, ToolInfo};
use toolward_support::text::{visible, visible_line};

use crate::records::references::serving;
use crate::records::version::SchemaVersion;

/// Characters of one title or description within a schema.
const MAX_PROSE_CHARS: usize = 2000;
/// Characters of an example's name.
const MAX_NAME_CHARS: usize = 200;

/// What a tool takes.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct InputContract {
    /// The version of Agent Tool.
    pub schema_version: SchemaVersion,
    /// What a model sees: without the fields that are for the host alone.
    pub model_input_schema: Value,
    /// What the host checks: the whole schema.
    pub runtime_input_schema: Value,
    /// Always true: what the schema does not allow is refused before anything runs.
    pub strict: bool,
    /// `object` where the input has to be one, else `value`.
    pub argument_mode: &'static str,
    /// The dialect that the host validates by.
    pub validation: &'static str,
    /// Places in the runtime schema whose values belong in no log.
    pub sensitive_fields: Vec<String>,
    /// Places in the runtime schema that no caller sets.
    pub internal_only_fields: Vec<String>,
    /// Always `none`: the host passes the input to the driver unchanged.
    pub mutation_policy: &'static str,
    /// Inputs that work.
    pub examples: Vec<Example>,
}

/// An input that works.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Example {
    /// What it shows.
    pub name: String,
    /// The input, as the schema lets a model send it.
    pub input: Value,
}

/// The dialect of every contract (AIP-14).
const DIALECT: &str = "json-schema-2020-12";

impl InputContract {
    /// That of a contract.
    #[must_use]
    pub fn of(contract: &Tool) -> Self {
        let schema = &contract.inputs;
        let examples = contract.examples.iter().map(|example| Example {
            name: visible_line(&example.name, MAX_NAME_CHARS),
            input: schema.outward_value(example.input.clone()),
        });
        Self {
            schema_version: SchemaVersion,
            model_input_schema: model_view(schema),
            runtime_input_schema: schema.closed().clone(),
            strict: true,
            argument_mode: match schema.closed().get("type") {
                Some(name) if name == "object" => "object",
                _ => "value",
            },
            validation: DIALECT,
            sensitive_fields: schema.sensitive_fields(),
            internal_only_fields: schema.internal_fields(),
            mutation_policy: "none",
            examples: examples.collect(),
        }
    }
}

/// What a tool gives.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct OutputContract {
    /// The version of Agent Tool.
    pub schema_version: SchemaVersion,
    /// What a model sees of the structured result.
    pub output_schema: Value,
    /// The kinds of content that its results may have.
    pub content_types: Vec<&'static str>,
    /// How binary content is written.
    pub media_mode: &'static str,
    /// What becomes of a result that is too large.
    pub result_size_policy: SizePolicy,
    /// Places in the schema whose values belong in no log.
    pub sensitive_fields: Vec<String>,
    /// Places in the schema that no model sees.
    pub internal_only_fields: Vec<String>,
}

/// What becomes of a result that is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SizePolicy {
    /// Always `fail`: a result is whole, or the call ends with `result_too_large`.
    pub on_exceed: &'static str,
    /// The size that the driver asks for; the host may allow less. Left out where it asks
    /// for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested_bytes: Option<u64>,
}

impl OutputContract {
    /// That of a tool of a host.
    #[must_use]
    pub fn of(info: &ToolInfo) -> Self {
        let schema = &info.contract.outputs;
        let driver = serving(info);
        let requested = |driver: &DriverInfo| driver.declaration.limits.output_bytes;
        Self {
            schema_version: SchemaVersion,
            output_schema: model_view(schema),
            content_types: match driver.map(|driver| &driver.declaration.kind) {
                Some(DriverKind::Component) => vec![
                    "structured",
                    "text",
                    "image",
                    "audio",
                    "resource_link",
                    "resource",
                ],
                _ => vec!["structured"],
            },
            media_mode: "base64",
            result_size_policy: SizePolicy {
                on_exceed: "fail",
                requested_bytes: driver.and_then(requested),
            },
            sensitive_fields: schema.sensitive_fields(),
            internal_only_fields: schema.internal_fields(),
        }
    }
}

/// What a model may see of a schema, its author's prose made safe.
pub(crate) fn model_view(schema: &Schema) -> Value {
    schema.outward_view("", &|text| visible(text, MAX_PROSE_CHARS))
}
