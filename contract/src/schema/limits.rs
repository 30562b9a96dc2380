//! What a schema document may hold at all: size, depth, dialect, references, patterns. Not its meaning.

use serde_json::Value;

use super::walk::{self, escape};
use super::{SchemaError, walk::children};
use crate::codes;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Bytes of a schema document, and of a closed one. A publisher chooses it, every host compiles it.
pub(super) const MAX_BYTES: usize = 256 * 1024;
/// Values in a schema document, and in a closed one.
pub(super) const MAX_VALUES: usize = 10_000;
pub(super) const MAX_DEPTH: usize = 64;
/// Characters of one pattern: compile time rises with length.
const MAX_PATTERN_CHARS: usize = 1024;
/// Patterns in one document.
const MAX_PATTERNS: usize = 64;
/// References by anchor in one document: each is looked for in all of it.
const MAX_ANCHORS: usize = 64;

#[derive(Default)]
struct Counts {
    patterns: usize,
    anchors: usize,
}

/// Checks one document as written; `id` is its `schema:` id if it has one.
pub(super) fn check(value: &Value, id: Option<&str>) -> Result<(), SchemaError> {
    let mut count = 0;
    check_size(value, MAX_DEPTH, &mut count).map_err(|error| error.in_document(id))?;
    if value.to_string().len() > MAX_BYTES {
        return Err(too_large().in_document(id));
    }
    let mut counts = Counts::default();
    check_keywords(value, "", true, &mut counts).map_err(|error| error.in_document(id))
}

fn too_large() -> SchemaError {
    let message = format!(
        "expected a schema of at most {} KiB and {MAX_VALUES} values, found more",
        MAX_BYTES / 1024
    );
    SchemaError::new(&codes::SCHEMA_TOO_LARGE, "", message)
}

fn check_size(value: &Value, left: usize, count: &mut usize) -> Result<(), SchemaError> {
    *count += 1;
    if *count > MAX_VALUES {
        return Err(too_large());
    }
    let Some(left) = left.checked_sub(1) else {
        let message = format!("expected a schema of at most {MAX_DEPTH} levels, found more");
        return Err(SchemaError::new(&codes::SCHEMA_TOO_DEEP, "", message));
    };
    match value {
        Value::Array(items) => items
            .iter()
            .try_for_each(|item| check_size(item, left, count)),
        Value::Object(members) => members
            .values()
            .try_for_each(|item| check_size(item, left, count)),
        _ => Ok(()),
    }
}

fn check_keywords(
    schema: &Value,
    path: &str,
    root: bool,
    counts: &mut Counts,
) -> Result<(), SchemaError> {
    let Value::Object(keywords) = schema else {
        return match schema {
            Value::Bool(_) => Ok(()),
            other => {
                let message = format!(
                    "expected a schema (an object, true or false), found {}",
                    crate::source::json_kind(other)
                );
                Err(SchemaError::new(&codes::SCHEMA_INVALID, path, message))
            }
        };
    };
    if let Some(dialect) = keywords.get("$schema")
        && dialect.as_str().map(|text| text.trim_end_matches('#')) != Some(DIALECT)
    {
        let message = format!("expected `$schema` to be {DIALECT}, found {dialect}");
        return Err(SchemaError::new(
            &codes::SCHEMA_DIALECT,
            format!("{path}/$schema"),
            message,
        ));
    }
    if keywords.contains_key("$id") && !root {
        let message = "expected `$id` only at the top of a schema, found it further down";
        return Err(SchemaError::new(
            &codes::SCHEMA_REF,
            format!("{path}/$id"),
            message,
        ));
    }
    for keyword in ["$ref", "$dynamicRef"] {
        if let Some(Value::String(target)) = keywords.get(keyword)
            && !target.starts_with('#')
            && !(target.starts_with("schema:") && keyword == "$ref")
        {
            let message = format!(
                "expected a reference into this document (`#/...`) or `schema:NAME`, found {target:?}"
            );
            return Err(SchemaError::new(
                &codes::SCHEMA_REF,
                format!("{path}/{keyword}"),
                message,
            ));
        }
    }
    for keyword in ["$ref", "$dynamicRef"] {
        let target = keywords
            .get(keyword)
            .and_then(Value::as_str)
            .and_then(|target| target.strip_prefix('#'));
        counts.anchors += usize::from(
            target.is_some_and(|target| !target.is_empty() && !target.starts_with('/')),
        );
        if counts.anchors > MAX_ANCHORS {
            let message = format!(
                "expected at most {MAX_ANCHORS} references by anchor, found more; use JSON pointers"
            );
            return Err(SchemaError::new(
                &codes::SCHEMA_REF,
                format!("{path}/{keyword}"),
                message,
            ));
        }
    }
    let own = keywords
        .get("pattern")
        .and_then(Value::as_str)
        .map(|text| (text, format!("{path}/pattern")));
    let keyed = keywords
        .get("patternProperties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let keyed = keyed.map(|(text, _)| {
        (
            text.as_str(),
            format!("{path}/patternProperties/{}", escape(text)),
        )
    });
    for (text, place) in own.into_iter().chain(keyed) {
        counts.patterns += 1;
        if text.chars().count() > MAX_PATTERN_CHARS || counts.patterns > MAX_PATTERNS {
            let message = format!(
                "expected at most {MAX_PATTERNS} patterns of {MAX_PATTERN_CHARS} characters each, found more"
            );
            return Err(SchemaError::new(&codes::SCHEMA_PATTERN, place, message));
        }
    }
    for child in children(schema) {
        check_keywords(child.schema, &child.pointer(path), false, counts)?;
    }
    Ok(())
}

/// What a pattern weighs against any other value: it is compiled to some kilobytes.
const PATTERN_WEIGHT: usize = 100;

/// The values of a schema, its patterns counted [`PATTERN_WEIGHT`] times.
pub(super) fn weight(schema: &Value) -> usize {
    let own = match schema {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| match (key.as_str(), value) {
                ("pattern", Value::String(_)) => PATTERN_WEIGHT,
                ("patternProperties", Value::Object(patterns)) => {
                    PATTERN_WEIGHT.saturating_mul(patterns.len()) + weight(value)
                }
                _ => weight(value),
            })
            .sum(),
        Value::Array(items) => items.iter().map(weight).sum(),
        _ => 0,
    };
    own + 1
}

/// Whether a document uses a keyword that is bound to the document it stands in.
pub(super) fn has_keyword(schema: &Value, names: &[&str]) -> bool {
    let here = schema
        .as_object()
        .is_some_and(|keywords| names.iter().any(|name| keywords.contains_key(*name)));
    here || walk::children(schema)
        .iter()
        .any(|child| has_keyword(child.schema, names))
}
