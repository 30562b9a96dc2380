//! `tool_declaration`: describes a tool, by its contract and its host. The record contains
//! `tool_input_contract` and `tool_output_contract`: the inputs as a model sees them and as the
//! host checks them, and the outputs as a model sees them. It also contains
//! `tool_external_mapping`, the tool's names in other protocols, such as MCP.

use serde_json::{Value, json};

use toolward_contract::driver::{Cost, DriverKind};
use toolward_contract::schema::Schema;
use toolward_contract::tool::Tool;
use toolward_host::{DriverFacts, ToolFacts};
use toolward_policy::Decision;
use toolward_support::text::{visible, visible_line};

use super::references;
use super::references::{object, record, serving};

/// The most characters of a line that a publisher wrote, and of a description.
pub(crate) const MAX_LINE_CHARS: usize = 300;
const MAX_DESCRIPTION_CHARS: usize = 4000;

/// The prefix of the publisher of an unsigned bundle.
const DEV: &str = "dev:";

/// A tool of a host, and its name for models.
#[derive(Debug, Clone, Copy)]
pub struct Described<'a> {
    /// The tool.
    pub info: &'a ToolFacts,
    /// Its name over MCP.
    pub name: &'a str,
}

/// Returns a tool's state. `available` can be called. `draft` can be called, but is unsigned and
/// under work. `deprecated` can be called, but its publisher has deprecated it
/// (`metadata.aml.status`). `disabled` is denied by the operator. `requires_setup` lacks a grant, a
/// driver or a context.
fn lifecycle(info: &ToolFacts) -> &'static str {
    let denied = |driver: &DriverFacts| match &driver.decision {
        Decision::Deny(denial) => !denial.denied_by.is_empty(),
        _ => false,
    };
    if info.refusal().is_none() {
        match info.publisher.starts_with(DEV) {
            true => "draft",
            false if is_deprecated(info) => "deprecated",
            false => "available",
        }
    } else if !info.drivers.is_empty() && info.drivers.iter().all(|driver| denied(driver)) {
        "disabled"
    } else {
        "requires_setup"
    }
}

/// Whether the contract was made from a definition of AML that is deprecated.
fn is_deprecated(info: &ToolFacts) -> bool {
    let aml = info.contract.metadata.get("aml");
    let status = aml.and_then(|aml| aml.get("status"));
    status.is_some_and(|status| status == "deprecated")
}

/// The declaration of a tool of a host.
pub fn tool_declaration(tool: &Described<'_>) -> Value {
    let Described { info, name } = *tool;
    let contract = &info.contract;
    let driver = serving(info);
    record! {
        tool_id = contract.id.to_string();
        version = contract.version.to_string();
        publisher = line(&info.publisher);
        namespace = line(contract.effective_namespace());
        name = name;
        aliases = lines(&contract.aliases);
        search_hint ? contract.search_hint.as_deref().map(line);
        title = line(&contract.name);
        description = visible(&contract.description, MAX_DESCRIPTION_CHARS);
        lifecycle = lifecycle(info);
        tool_kind = driver.map_or("unbound", kind);
        capability_refs = lines(contract.declaration().iter());
        input_contract = input_contract(contract);
        output_contract = output_contract(info);
        interface_ref = references::interface(info);
        execution_profile_ref ? driver.map(|driver| references::execution_profile(info, driver));
        permission_profile_ref ? driver.map(|driver| references::permission_profile(info, driver));
        external_mappings = external_mappings(contract.id.as_str(), name);
        // Claims of the tool's publisher. No decision depends on them.
        annotations = json!({
            "tags": lines(&contract.tags),
            "cost": driver.and_then(|driver| cost(info, driver)),
            "fires_events": lines(&contract.fires_events),
        });
    }
}

/// Returns the way in which calls through a driver are carried out.
pub(crate) fn kind(driver: &DriverFacts) -> &'static str {
    driver.declaration.kind.record()
}

fn cost(info: &ToolFacts, driver: &DriverFacts) -> Option<Cost> {
    let contract = &info.contract;
    let (id, version) = (contract.id.as_str(), &contract.version);
    let entry = driver.declaration.implements_tool(id, version)?;
    Some(driver.declaration.cost(contract, entry))
}

pub(crate) fn line(text: &str) -> String {
    visible_line(text, MAX_LINE_CHARS)
}

/// Returns each of these values as [`line`] shows its text.
pub(crate) fn lines<T: ToString>(values: impl IntoIterator<Item = T>) -> Vec<String> {
    let values = values.into_iter();
    values.map(|value| line(&value.to_string())).collect()
}

/// The name of this server over MCP.
const SERVER: &str = "toolward";

/// Returns the names, in two protocols, of a tool that models call by `name`: in MCP as
/// `toolward serve` implements it, and in a model's interface for function calls. `strict` is
/// false, since the model's provider may not enforce the schema.
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

/// Returns the definition of a function for models, in the form of OpenAI's chat completions.
/// `definition` is the tool as MCP lists it.
pub fn function_definition(definition: &Value) -> Value {
    let mut function = amplifier_spec(definition);
    if let Some(members) = function.as_object_mut() {
        // The host checks the input itself, with more keywords than OpenAI's strict form allows.
        members.insert("strict".to_owned(), json!(false));
    }
    json!({ "type": "function", "function": function })
}

/// Returns Amplifier's specification of a tool. `definition` is the tool as MCP lists it.
pub fn amplifier_spec(definition: &Value) -> Value {
    let of = |key: &str| definition.get(key).cloned().unwrap_or_default();
    json!({
        "name": of("name"),
        "description": of("description"),
        "parameters": of("inputSchema"),
    })
}

/// The most characters of one title or description within a schema.
const MAX_PROSE_CHARS: usize = 2000;
/// The most characters of an example's name.
const MAX_NAME_CHARS: usize = 200;

/// The dialect of the schemas in every contract, by AIP-14 (the specification of contracts).
const DIALECT: &str = "json-schema-2020-12";

/// Describes a tool's input. The host refuses input that does not match the schema, and passes
/// valid input to the driver unchanged.
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

/// Describes a tool's output. A result is whole, or the call ends with `result_too_large`.
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

/// Returns the part of a schema that a model may see. Hidden characters in its prose are escaped.
pub(crate) fn model_view(schema: &Schema) -> Value {
    schema.outward_view("", &|text| visible(text, MAX_PROSE_CHARS))
}
