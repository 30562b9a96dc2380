//! Names in `required` that `properties` beside it does not have: nothing says what such a value is.

use serde_json::{Map, Value};
use toolward_bundle::codes;
use toolward_bundle::documents::Located;
use toolward_bundle::files::Files;
use toolward_bundle::index::TOOLS_JSON;
use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::index::IndexEntry;
use toolward_contract::schema::{Schema, escape};
use toolward_contract::tool::Tool;

use super::Places;

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
pub(super) fn check(tool: &Located<Tool>, files: &Files, diagnostics: &mut Vec<Diagnostic>) {
    let contract = &tool.value;
    let mut undeclared = Vec::new();
    given("/inputs", &contract.inputs, &mut undeclared);
    if let Some(context) = &contract.context_schema {
        given("/contextSchema", context, &mut undeclared);
    }
    search(contract.outputs.value(), "/outputs", &mut undeclared);
    report(&tool.path, undeclared, diagnostics, || {
        Places::of(files, &tool.path)
    });
}

/// Looks through the schemas of an entry of tools.json.
pub(super) fn check_entry(entry: &IndexEntry, pointer: &str, diagnostics: &mut Vec<Diagnostic>) {
    let mut undeclared = Vec::new();
    let input = format!("{pointer}/input_schema");
    given(&input, &entry.input_schema, &mut undeclared);
    let result = format!("{pointer}/result_schema");
    search(entry.result_schema.value(), &result, &mut undeclared);
    report(TOOLS_JSON, undeclared, diagnostics, || {
        Places::only(entry.at)
    });
}

/// Looks through a schema of what callers give. Nothing is said of a name where there are no `properties` at all.
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

fn report(
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

/// Finds the names, each with the pointer to it. The schema is no deeper than a contract's may be.
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
