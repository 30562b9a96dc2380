//! Keywords and defaults in schemas that have no effect, and inputs that clients can't use directly; names
//! in `required` that `properties` next to it does not have, so that nothing describes the value.

use serde_json::{Map, Value};

use toolward_bundle::codes;
use toolward_bundle::documents::Located;
use toolward_bundle::files::Files;
use toolward_bundle::index::TOOLS_JSON;
use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::index::IndexEntry;
use toolward_contract::schema::{Schema, SchemaWarning, SchemaWarningKind, escape};
use toolward_contract::tool::{McpSchemas, Tool};

use super::Places;

/// Looks through the schemas of a contract.
pub(super) fn check(tool: &Located<Tool>, files: &Files, diagnostics: &mut Vec<Diagnostic>) {
    let contract = &tool.value;
    let mut inputs = contract.inputs.warnings();
    if contract.mcp_schemas == McpSchemas::Plain {
        inputs.extend(contract.inputs.input_warnings());
    }
    let context = contract.context_schema.as_ref();
    let schemas = [
        ("/inputs", inputs),
        ("/outputs", contract.outputs.warnings()),
        (
            "/contextSchema",
            context.map(Schema::warnings).unwrap_or_default(),
        ),
    ];
    report(&tool.path, schemas, diagnostics, || {
        Places::of(files, &tool.path)
    });
}

/// Looks through the schemas of an entry of tools.json.
pub(super) fn check_entry(entry: &IndexEntry, pointer: &str, diagnostics: &mut Vec<Diagnostic>) {
    let (input, result) = (
        format!("{pointer}/input_schema"),
        format!("{pointer}/result_schema"),
    );
    let mut inputs = entry.input_schema.warnings();
    inputs.extend(entry.input_schema.input_warnings());
    let schemas = [
        (input.as_str(), inputs),
        (result.as_str(), entry.result_schema.warnings()),
    ];
    report(TOOLS_JSON, schemas, diagnostics, || Places::only(entry.at));
}

fn report<const N: usize>(
    path: &str,
    schemas: [(&str, Vec<SchemaWarning>); N],
    diagnostics: &mut Vec<Diagnostic>,
    places: impl Fn() -> Places,
) {
    for (pointer, warnings) in schemas {
        if warnings.is_empty() {
            continue;
        }
        let places = places();
        diagnostics.extend(warnings.into_iter().map(|found| {
            let pointer = format!("{pointer}{}", found.path);
            let message = format!("at {pointer}: {}", found.message);
            let at = places.at(&pointer);
            let code = match found.kind {
                SchemaWarningKind::UnknownKeyword => &codes::SCHEMA_KEYWORD_UNKNOWN,
                SchemaWarningKind::InvalidDefault => &codes::SCHEMA_DEFAULT_INVALID,
                SchemaWarningKind::RootComposed => &codes::SCHEMA_ROOT_COMPOSED,
                SchemaWarningKind::ReferenceKept => &codes::SCHEMA_REFERENCE_KEPT,
            };
            Diagnostic::new(code, path, at, message).with_hint(found.hint)
        }));
    }
}

/// Keywords that may say elsewhere what a property is.
const ELSEWHERE: [&str; 9] = [
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "dependentSchemas",
    "if",
    "oneOf",
    "patternProperties",
    "propertyNames",
];

/// Keywords whose members are schemas.
const NAMED: [&str; 2] = ["properties", "$defs"];

/// Looks through the schemas of a contract.
pub(super) fn check_required(
    tool: &Located<Tool>,
    files: &Files,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let contract = &tool.value;
    let mut undeclared = Vec::new();
    given("/inputs", &contract.inputs, &mut undeclared);
    if let Some(context) = &contract.context_schema {
        given("/contextSchema", context, &mut undeclared);
    }
    search(contract.outputs.value(), "/outputs", &mut undeclared);
    report_undeclared(&tool.path, undeclared, diagnostics, || {
        Places::of(files, &tool.path)
    });
}

/// Looks through the schemas of an entry of tools.json.
pub(super) fn check_required_of_entry(
    entry: &IndexEntry,
    pointer: &str,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut undeclared = Vec::new();
    let input = format!("{pointer}/input_schema");
    given(&input, &entry.input_schema, &mut undeclared);
    let result = format!("{pointer}/result_schema");
    search(entry.result_schema.value(), &result, &mut undeclared);
    report_undeclared(TOOLS_JSON, undeclared, diagnostics, || {
        Places::only(entry.at)
    });
}

/// Looks through a schema of what callers give. A name without any `properties` gives no finding.
fn given(pointer: &str, schema: &Schema, found: &mut Vec<(String, String)>) {
    let value = schema.value();
    if let Some(object) = value
        .as_object()
        .filter(|one| !one.contains_key("properties"))
        && is_alone(object)
    {
        names(object, &Map::new(), pointer, found);
    }
    search(value, pointer, found);
}

fn report_undeclared(
    path: &str,
    undeclared: Vec<(String, String)>,
    diagnostics: &mut Vec<Diagnostic>,
    places: impl FnOnce() -> Places,
) {
    if undeclared.is_empty() {
        return;
    }
    let places = places();
    diagnostics.extend(undeclared.into_iter().map(|(name, pointer)| {
        let message = format!("`required` names {name:?}, which `properties` does not have");
        let at = places.at(&pointer);
        Diagnostic::new(&codes::REQUIRED_UNDECLARED, path, at, message)
            .with_hint("correct the name, or add it to `properties`")
    }));
}

/// Finds the names, each with the pointer to it. The schema is at most as deep as a contract's may be.
fn search(schema: &Value, pointer: &str, found: &mut Vec<(String, String)>) {
    let Some(object) = schema.as_object() else {
        return;
    };
    if let Some(properties) = declared(object) {
        names(object, properties, pointer, found);
    }
    for key in NAMED {
        let members = object.get(key).and_then(Value::as_object);
        for (name, inner) in members.into_iter().flatten() {
            search(inner, &format!("{pointer}/{key}/{}", escape(name)), found);
        }
    }
    if let Some(items) = object.get("items") {
        search(items, &format!("{pointer}/items"), found);
    }
}

/// Finds the names in `required` of one schema that are not among these properties.
fn names(
    object: &Map<String, Value>,
    properties: &Map<String, Value>,
    pointer: &str,
    found: &mut Vec<(String, String)>,
) {
    let required = object.get("required").and_then(Value::as_array);
    for (index, name) in required.into_iter().flatten().enumerate() {
        if let Some(name) = name.as_str().filter(|name| !properties.contains_key(*name)) {
            found.push((name.to_owned(), format!("{pointer}/required/{index}")));
        }
    }
}

/// The properties of a schema, where nothing else in it can declare more.
fn declared(object: &Map<String, Value>) -> Option<&Map<String, Value>> {
    object
        .get("properties")?
        .as_object()
        .filter(|_| is_alone(object))
}

/// Whether only `properties` of a schema can say what a property is.
fn is_alone(object: &Map<String, Value>) -> bool {
    ELSEWHERE.iter().all(|key| match object.get(*key) {
        Some(Value::Bool(false)) | None => true,
        Some(_) => false,
    })
}
