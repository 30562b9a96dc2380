//! Text to located values: YAML front matter and JSON, each value with its line and column. Knows no field.

mod fields;
mod front_matter;
mod json_nodes;
mod node;
mod yaml;

pub(crate) use fields::{
    Fields, Spelling, boolean, integer, list, number, suggestion, text, texts,
};
pub(crate) use front_matter::split;
pub(crate) use json_nodes::located;
pub(crate) use node::{Content, Entry, Node};

use serde_json::Value;

/// The name of a JSON value's type for messages, with its article.
pub(crate) fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}
