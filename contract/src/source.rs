//! Text to located values: YAML front matter and JSON, each value with its line and column. Knows no field.

mod front_matter;
mod json_nodes;
mod reading;
mod yaml;
mod yaml_advice;

pub use front_matter::MAX_BYTES;
pub(crate) use front_matter::{FrontMatter, split, split_with};
pub(crate) use json_nodes::located;
pub(crate) use toolward_fields::{Spelling, nearest};
pub(crate) use yaml::Keys;

use serde_json::Value;

use crate::diagnostic::Position;

pub(crate) type Node = toolward_fields::Node<Position>;
pub(crate) type Content = toolward_fields::Content<Position>;
pub(crate) type Entry = toolward_fields::Entry<Position>;
pub(crate) type Field<'n> = toolward_fields::Field<'n, Position>;
pub(crate) type Fields<'n> = toolward_fields::Fields<'n, Position>;

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
