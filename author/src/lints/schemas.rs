//! Finds keywords and defaults in schemas that have no effect, and inputs that clients can't use
//! directly. Also finds names in `required` that are missing from the `properties` next to it, so
//! that nothing describes these values.

use serde_json::{Map, Value};

use toolward_bundle::codes;
use toolward_contract::schema::{Schema, SchemaWarningKind, escape};

use super::Subject;

/// Checks the schemas of a contract or of an entry of tools.json, each with its pointer: inputs,
/// outputs and, if it exists, context, in this order. `are_plain` states that clients get the
/// inputs in the form of `McpSchemas::Plain`.
pub(super) fn check(subject: &mut Subject<'_>, schemas: &[(&str, &Schema)], are_plain: bool) {
    let mut undeclared = Vec::new();
    for (number, (pointer, schema)) in schemas.iter().enumerate() {
        match number {
            1 => search(schema.value(), pointer, &mut undeclared),
            _ => given(pointer, schema, &mut undeclared),
        }
    }
    for (name, pointer) in undeclared {
        let message = format!("`required` names {name:?}, which `properties` does not have");
        let hint = "correct the name, or add it to `properties`";
        subject.add(&codes::REQUIRED_UNDECLARED, &pointer, message, hint);
    }
    for (number, (pointer, schema)) in schemas.iter().enumerate() {
        let mut warnings = schema.warnings();
        if are_plain && number == 0 {
            warnings.extend(schema.input_warnings());
        }
        for found in warnings {
            let code = match found.kind {
                SchemaWarningKind::UnknownKeyword => &codes::SCHEMA_KEYWORD_UNKNOWN,
                SchemaWarningKind::InvalidDefault => &codes::SCHEMA_DEFAULT_INVALID,
                SchemaWarningKind::RootComposed => &codes::SCHEMA_ROOT_COMPOSED,
                SchemaWarningKind::ReferenceKept => &codes::SCHEMA_REFERENCE_KEPT,
            };
            let pointer = format!("{pointer}{}", found.path);
            let message = format!("at {pointer}: {}", found.message);
            subject.add(code, &pointer, message, found.hint);
        }
    }
}

/// Keywords that may describe a property which `properties` does not name.
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

/// Searches a schema of values that callers give. At its root, a name in `required` is a finding
/// even if the schema has no `properties`, unless another keyword may describe the property.
fn given(pointer: &str, schema: &Schema, found: &mut Vec<(String, String)>) {
    let value = schema.value();
    if let Some(object) = value.as_object()
        && !object.contains_key("properties")
        && is_alone(object)
    {
        names(object, &Map::new(), pointer, found);
    }
    search(value, pointer, found);
}

/// Finds the names in `required` that a schema, or a schema inside it, does not declare, each with
/// its pointer. The recursion ends, since a contract's schemas are bounded in depth.
fn search(schema: &Value, pointer: &str, found: &mut Vec<(String, String)>) {
    let Some(object) = schema.as_object() else {
        return;
    };
    // If another keyword can declare more properties, nothing is known to be missing.
    if let Some(Value::Object(properties)) = object.get("properties")
        && is_alone(object)
    {
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

/// Whether only the `properties` of a schema can describe a property.
fn is_alone(object: &Map<String, Value>) -> bool {
    ELSEWHERE.iter().all(|key| match object.get(*key) {
        Some(Value::Bool(false)) | None => true,
        Some(_) => false,
    })
}
