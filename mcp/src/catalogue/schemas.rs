//! Schemas for MCP, which only allows objects. A value that is not an object is wrapped in an
//! object under a fixed name; an input is unwrapped on the way to the driver.

use std::sync::Arc;

use rmcp::model::JsonObject;
use serde_json::{Map, Value, json};
use toolward_bundle::text::{visible, visible_line};
use toolward_contract::schema::{Schema, in_words};
use toolward_contract::tool::McpSchemas;
use toolward_host::{CallError, ErrorClass, Origin};

use crate::methods::invalid_input;

/// The member for an input that is not an object.
const INPUT_MEMBER: &str = "input";
/// The member for an output that is not an object.
const RESULT_MEMBER: &str = "result";

/// Characters of one title or description within a schema.
const MAX_PROSE_CHARS: usize = 2000;
/// Characters of a path in an error.
const MAX_PATH_CHARS: usize = 200;

/// The schema of an object, which may wrap the contract's schema.
pub(super) struct Carried {
    pub(super) schema: Arc<JsonObject>,
    /// Whether it wraps the contract's schema.
    pub(super) wrapped: bool,
}

/// Returns the schema of a client's arguments. Arguments are always an object, so a schema that
/// allows objects among other types is narrowed to objects.
pub(super) fn of_input(schema: &Schema, form: McpSchemas) -> Carried {
    let Some(object) = schema.plain_view(&prose) else {
        return wrapped(schema, form, INPUT_MEMBER);
    };
    match form {
        McpSchemas::Plain => plain(object),
        McpSchemas::Exact => {
            let mut keywords = keywords(view(schema, form, "")).unwrap_or_default();
            keywords.insert("type".to_owned(), json!("object"));
            plain(keywords)
        }
    }
}

/// Returns the schema of structured content. An output that may be something other than an object
/// is always wrapped, so that it is always in the same place. `None` if the only output is null.
pub(super) fn of_output(schema: &Schema, form: McpSchemas) -> Option<Carried> {
    let keywords = keywords(view(schema, form, ""));
    let kind = keywords.as_ref().and_then(|keywords| keywords.get("type"));
    let is = |name: &str| {
        kind.is_some_and(|kind| *kind == *name || kind.as_array().is_some_and(|all| *all == [name]))
    };
    if is("null") {
        return None;
    }
    Some(match keywords {
        Some(keywords) if keywords.get("type").is_some_and(|name| name == "object") => {
            plain(keywords)
        }
        _ => wrapped(schema, form, RESULT_MEMBER),
    })
}

/// Unwraps the contract's input from a client's arguments.
pub(super) fn input(
    schema: &Schema,
    wrapped: bool,
    mut arguments: JsonObject,
) -> Result<Value, CallError> {
    let input = match wrapped {
        false => Value::Object(arguments),
        true => {
            let count = arguments.len();
            let input = arguments.remove(INPUT_MEMBER);
            input.filter(|_| count == 1).ok_or_else(|| {
                invalid_input(
                    format!("expected the property `{INPUT_MEMBER}` and no other"),
                    format!("the whole input stands under `{INPUT_MEMBER}`"),
                )
            })?
        }
    };
    match schema.internal_paths(&input).first() {
        None => Ok(input),
        Some(path) => {
            let path = visible_line(path, MAX_PATH_CHARS);
            Err(invalid_input(
                format!("expected no field `{path}`, which callers do not set"),
                "leave it out: the schema that was listed does not have it",
            ))
        }
    }
}

/// Changes the paths of a wrapped input's violations to paths in the arguments.
pub(super) fn place_violations(error: &mut CallError) {
    if error.class != ErrorClass::SchemaValidationFailed || error.origin != Origin::Host {
        return;
    }
    let cause = error.cause.as_mut();
    let violations = cause.and_then(|cause| cause.get_mut("violations"));
    let Some(Value::Array(violations)) = violations else {
        return;
    };
    for violation in violations.iter_mut() {
        if let Some(Value::String(path)) = violation.get_mut("path") {
            path.insert_str(0, &format!("/{INPUT_MEMBER}"));
        }
    }
    let words = in_words(violations.iter().map(|violation| {
        let text = |key: &str| violation.get(key).and_then(Value::as_str);
        let (path, message) = (text("path"), text("message"));
        (path.unwrap_or_default(), message.unwrap_or_default())
    }));
    error.message = format!("the input does not match its schema: {words}");
}

fn plain(keywords: Map<String, Value>) -> Carried {
    Carried {
        schema: Arc::new(keywords),
        wrapped: false,
    }
}

fn wrapped(schema: &Schema, form: McpSchemas, name: &str) -> Carried {
    let inner = view(schema, form, &format!("/properties/{name}"));
    let object = json!({
        "type": "object",
        "properties": { name: inner },
        "required": [name],
        "additionalProperties": false,
    });
    Carried {
        schema: Arc::new(keywords(object).unwrap_or_default()),
        wrapped: true,
    }
}

fn keywords(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(keywords) => Some(keywords),
        Value::Bool(true) => Some(Map::new()),
        _ => None,
    }
}

fn view(schema: &Schema, form: McpSchemas, at: &str) -> Value {
    match form {
        McpSchemas::Plain => schema.inlined_view(at, &prose),
        McpSchemas::Exact => schema.outward_view(at, &prose),
    }
}

fn prose(text: &str) -> String {
    visible(text, MAX_PROSE_CHARS)
}

#[cfg(test)]
mod tests {
    use toolward_contract::NoScope;
    use toolward_host::ErrorCode;

    use super::*;

    fn of_input(schema: &Schema) -> Carried {
        super::of_input(schema, McpSchemas::Plain)
    }

    fn of_output(schema: &Schema) -> Option<Carried> {
        super::of_output(schema, McpSchemas::Plain)
    }

    fn schema(value: Value) -> Schema {
        Schema::compile(&value, &NoScope).unwrap()
    }

    fn arguments(value: Value) -> JsonObject {
        keywords(value).unwrap()
    }

    fn composed() -> Schema {
        schema(json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": { "name": { "type": "string" } },
            "properties": { "name": { "$ref": "#/$defs/name" } },
            "if": { "required": ["name"] },
            "then": { "properties": { "age": { "type": "integer" } } },
        }))
    }

    #[test]
    fn exact_schemas_are_listed_unchanged() {
        let schema = composed();
        for carried in [
            super::of_input(&schema, McpSchemas::Exact),
            super::of_output(&schema, McpSchemas::Exact).unwrap(),
        ] {
            assert_eq!(Value::Object((*carried.schema).clone()), *schema.value());
            assert!(!carried.wrapped);
        }
    }

    #[test]
    fn an_input_is_listed_as_a_plain_object_and_an_output_keeps_its_composition() {
        let schema = composed();
        let input = of_input(&schema).schema;
        let output = of_output(&schema).unwrap().schema;
        let name = json!({ "type": "string" });
        assert_eq!(
            input["properties"],
            json!({ "name": name, "age": { "type": "integer" } })
        );
        assert_eq!(output["properties"], json!({ "name": name }));
        for keyword in ["if", "then"] {
            assert!(!input.contains_key(keyword), "{input:?}");
            assert!(output.contains_key(keyword), "{output:?}");
        }
    }

    #[test]
    fn an_input_whose_branches_are_no_objects_is_wrapped() {
        for form in [McpSchemas::Plain, McpSchemas::Exact] {
            let either = json!({ "anyOf": [{ "type": "string" }, { "type": "array" }] });
            let carried = super::of_input(&schema(either.clone()), form);
            assert!(carried.wrapped);
            assert_eq!(carried.schema["properties"]["input"], either);
        }
    }

    #[test]
    fn arguments_are_an_object_whatever_else_the_schema_lets_pass() {
        let of = |value| of_input(&schema(value));
        for (written, carried) in [
            (json!({}), json!({ "type": "object" })),
            (json!(true), json!({ "type": "object" })),
            (
                json!({ "type": ["object", "null"] }),
                json!({ "type": "object" }),
            ),
        ] {
            let found = of(written);
            assert_eq!(Value::Object((*found.schema).clone()), carried);
            assert!(!found.wrapped);
        }
    }

    #[test]
    fn an_input_that_is_no_object_stands_in_one_and_is_taken_out_again() {
        let schema = schema(json!({ "type": "string", "minLength": 1 }));
        let carried = of_input(&schema);
        assert!(carried.wrapped);
        let inner = &carried.schema["properties"]["input"];
        assert_eq!(inner, &json!({ "type": "string", "minLength": 1 }));
        assert_eq!(carried.schema["required"], json!(["input"]));
        let taken = input(&schema, true, arguments(json!({ "input": "x" })));
        assert_eq!(taken.unwrap(), json!("x"));
        for other in [
            json!({ "input": "x", "y": 1 }),
            json!({ "text": "x" }),
            json!({}),
        ] {
            let refused = input(&schema, true, arguments(other)).unwrap_err();
            assert!(refused.message.contains("`input`"), "{refused}");
        }
    }

    #[test]
    fn an_output_of_null_has_no_schema() {
        assert!(of_output(&schema(json!({ "type": "null" }))).is_none());
        assert!(of_output(&schema(json!({ "type": ["null"] }))).is_none());
        assert!(of_output(&schema(json!({ "type": ["null", "string"] }))).is_some());
        assert!(of_output(&schema(json!({}))).is_some());
    }

    #[test]
    fn an_output_that_may_be_no_object_stands_in_one_with_its_references() {
        let tree = json!({
            "$id": "https://a.example/tree",
            "anyOf": [{ "type": "null" }, { "type": "array", "items": { "$ref": "#" } }, { "$ref": "#/$defs/leaf" }],
            "$defs": { "leaf": { "type": "string" } },
        });
        let carried = of_output(&schema(tree)).unwrap();
        assert!(carried.wrapped);
        let closed = Value::Object((*carried.schema).clone());
        let stands = schema(closed);
        stands
            .validate(&json!({ "result": ["a", ["b", null]] }))
            .unwrap();
        stands.validate(&json!({ "result": ["a", 1] })).unwrap_err();
        stands.validate(&json!({})).unwrap_err();
    }

    #[test]
    fn text_of_a_schemas_author_is_made_visible_and_values_are_left_alone() {
        let carried = of_input(&schema(json!({
            "type": "object",
            "description": "a\u{202e}b",
            "properties": { "x": { "title": "\u{1b}[0m", "const": "a\u{202e}b" } },
        })));
        assert_eq!(carried.schema["description"], json!("a\\u{202e}b"));
        let x = &carried.schema["properties"]["x"];
        assert_eq!(x["title"], json!("\\e[0m"));
        assert_eq!(x["const"], json!("a\u{202e}b"));
    }

    #[test]
    fn an_internal_field_is_neither_shown_nor_taken_nor_given() {
        let schema = schema(json!({
            "type": "object",
            "properties": { "a": {}, "trace": { "x-internal": true } },
        }));
        let carried = of_input(&schema);
        assert_eq!(carried.schema["properties"], json!({ "a": {} }));
        let given = json!({ "a": 1, "trace": "t" });
        let refused = input(&schema, false, arguments(given.clone())).unwrap_err();
        assert_eq!(refused.code, ErrorCode::INPUT_INVALID);
        assert!(refused.message.contains("/trace"), "{refused}");
        assert_eq!(schema.outward_value(given), json!({ "a": 1 }));
    }

    #[test]
    fn a_secret_argument_goes_into_no_header() {
        let carried = of_input(&schema(json!({
            "type": "object",
            "properties": {
                "region": { "type": "string", "x-mcp-header": "Region" },
                "token": { "type": "string", "x-mcp-header": "Token", "writeOnly": true },
            },
        })));
        let properties = &carried.schema["properties"];
        assert_eq!(properties["region"]["x-mcp-header"], json!("Region"));
        assert_eq!(properties["token"].get("x-mcp-header"), None);
    }
}
