//! Names in `required` that `properties` beside it does not have: nothing says what such a value is.

use serde_json::{Map, Value};
use toolward_bundle::codes;
use toolward_bundle::documents::Located;
use toolward_bundle::files::Files;
use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::schema::escape;
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

/// Looks through the inputs and outputs of a contract.
pub(super) fn check(tool: &Located<Tool>, files: &Files, diagnostics: &mut Vec<Diagnostic>) {
    let mut undeclared = Vec::new();
    for (field, schema) in [
        ("inputs", &tool.value.inputs),
        ("outputs", &tool.value.outputs),
    ] {
        search(schema.value(), &format!("/{field}"), &mut undeclared);
    }
    if undeclared.is_empty() {
        return;
    }
    let places = Places::of(files, &tool.path);
    diagnostics.extend(undeclared.into_iter().map(|(name, pointer)| {
        let message = format!("`required` names {name:?}, which `properties` does not have");
        let at = places.at(&pointer);
        Diagnostic::new(&codes::REQUIRED_UNDECLARED, &tool.path, at, message)
            .with_hint("correct the name, or add it to `properties`")
    }));
}

/// Finds the names, each with the pointer to it. The schema is no deeper than a contract's may be.
fn search(schema: &Value, pointer: &str, found: &mut Vec<(String, String)>) {
    let Some(object) = schema.as_object() else {
        return;
    };
    if let Some(properties) = declared(object) {
        let required = object.get("required").and_then(Value::as_array);
        for (index, name) in required.into_iter().flatten().enumerate() {
            if let Some(name) = name.as_str().filter(|name| !properties.contains_key(*name)) {
                found.push((name.to_owned(), format!("{pointer}/required/{index}")));
            }
        }
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

/// The properties of a schema, where nothing else in it can declare more.
fn declared(object: &Map<String, Value>) -> Option<&Map<String, Value>> {
    let open = ELSEWHERE.iter().any(|key| match object.get(*key) {
        Some(Value::Bool(false)) | None => false,
        Some(_) => true,
    });
    (!open)
        .then(|| object.get("properties")?.as_object())
        .flatten()
}
