//! Schemas as MCP carries them: of objects. What is no object stands in one, under
//! one fixed name, and is taken out of it again on the way to the driver.

use std::sync::Arc;

use rmcp::model::JsonObject;
use serde_json::{Map, Value, json};
use toolward_bundle::text::{visible, visible_line};
use toolward_contract::schema::Schema;
use toolward_host::{CallError, ErrorClass, ErrorCode};

/// Where an input stands that is no object.
const INPUT: &str = "input";
/// Where an output stands that is no object.
const RESULT: &str = "result";

/// Characters of one title or description within a schema.
const PROSE: usize = 2000;
/// Characters of a path in an error.
const PATH: usize = 200;

/// A schema that describes an object, whatever the contract's describes.
pub(super) struct Carried {
    pub(super) schema: Arc<JsonObject>,
    /// Whether the contract's value stands inside it.
    pub(super) wrapped: bool,
}

/// What arguments a client sends. They are always an object: a schema that lets
/// objects pass among others is narrowed to them.
pub(super) fn of_input(schema: &Schema) -> Carried {
    let Some(mut keywords) = object(outward_view(schema, "")) else {
        return wrapped(schema, INPUT);
    };
    let takes_objects = match keywords.get("type") {
        None => true,
        Some(Value::Array(types)) => types.iter().any(|name| name == "object"),
        Some(name) => name == "object",
    };
    if !takes_objects {
        return wrapped(schema, INPUT);
    }
    if keywords.get("type").is_none_or(|name| name != "object") {
        keywords.insert("type".to_owned(), json!("object"));
    }
    plain(keywords)
}

/// What structured content a client gets. An output that can be anything but an
/// object stands in one, always, so that it is found in one place.
pub(super) fn of_output(schema: &Schema) -> Carried {
    match object(outward_view(schema, "")) {
        Some(keywords) if keywords.get("type").is_some_and(|name| name == "object") => {
            plain(keywords)
        }
        _ => wrapped(schema, RESULT),
    }
}

/// The contract's input in a client's arguments. Where it is wrapped and does not
/// stand alone under its name, the arguments are left as they are: the schema
/// refuses them, and says what it wants.
pub(super) fn input(
    schema: &Schema,
    wrapped: bool,
    mut arguments: JsonObject,
) -> Result<Value, CallError> {
    let input = match arguments.len() {
        1 if wrapped => arguments.remove(INPUT),
        _ => None,
    };
    let input = input.unwrap_or(Value::Object(arguments));
    match schema.internal_paths(&input).first() {
        None => Ok(input),
        Some(path) => Err(CallError::new(
            ErrorCode::INPUT_INVALID,
            ErrorClass::SchemaValidationFailed,
            format!(
                "expected no field `{}`, which callers do not set",
                visible_line(path, PATH)
            ),
        )
        .with_hint("leave it out: the schema that was listed does not have it")),
    }
}

/// An output without what no model may see.
pub(super) fn outward(schema: &Schema, mut output: Value) -> Value {
    if !schema.has_internal() {
        return output;
    }
    for path in schema.internal_paths(&output) {
        remove(&mut output, &path);
    }
    output
}

fn remove(value: &mut Value, pointer: &str) {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        *value = Value::Null;
        return;
    };
    match value.pointer_mut(parent) {
        Some(Value::Object(members)) => {
            members.remove(&name.replace("~1", "/").replace("~0", "~"));
        }
        // A place in a list is kept: its neighbours have theirs.
        Some(Value::Array(items)) => {
            let item = name.parse().ok().and_then(|at: usize| items.get_mut(at));
            if let Some(item) = item {
                *item = Value::Null;
            }
        }
        _ => {}
    }
}

fn plain(keywords: Map<String, Value>) -> Carried {
    Carried {
        schema: Arc::new(keywords),
        wrapped: false,
    }
}

fn wrapped(schema: &Schema, name: &str) -> Carried {
    let inner = outward_view(schema, &format!("/properties/{name}"));
    let mut keywords = Map::new();
    keywords.insert("type".to_owned(), json!("object"));
    keywords.insert("properties".to_owned(), json!({ name: inner }));
    keywords.insert("required".to_owned(), json!([name]));
    keywords.insert("additionalProperties".to_owned(), json!(false));
    Carried {
        schema: Arc::new(keywords),
        wrapped: true,
    }
}

fn object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(keywords) => Some(keywords),
        Value::Bool(true) => Some(Map::new()),
        _ => None,
    }
}

fn outward_view(schema: &Schema, at: &str) -> Value {
    schema.outward_view(at, &|text| visible(text, PROSE))
}
