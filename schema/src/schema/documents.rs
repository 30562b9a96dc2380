//! Schema documents before compilation: checks their limits (size, depth, dialect, references,
//! patterns), and includes the targets of `schema:` references, so that a document is
//! self-contained. Nothing is fetched.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::SchemaError;
use super::walk::{escape, find, for_each_child_mut, patterns, references};
use crate::SchemaScope;
use crate::codes;
use crate::json::{kind_name, parts};

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// How large a schema document may be, in bytes, also after targets are included. A publisher
/// writes the document, and every host compiles it.
const MAX_BYTES: usize = 256 * 1024;
/// How many values a schema document may have, also after targets are included.
const MAX_VALUES: usize = 10_000;
pub(super) const MAX_DEPTH: usize = 64;
/// How long a pattern may be, in characters. Compile time rises with length.
const MAX_PATTERN_CHARS: usize = 1024;
/// How many patterns a document may have.
const MAX_PATTERNS: usize = 64;
/// How many references by anchor a document may have. Each takes a search of the whole document.
const MAX_ANCHORS: usize = 64;

#[derive(Default)]
struct Counts {
    patterns: usize,
    anchors: usize,
}

/// Checks one document as written; `id` is its `schema:` id if it has one.
fn check(value: &Value, id: Option<&str>) -> Result<(), SchemaError> {
    let mut count = 0;
    check_size(value, MAX_DEPTH, &mut count).map_err(|error| error.in_document(id))?;
    if value.to_string().len() > MAX_BYTES {
        return Err(too_large().in_document(id));
    }
    let mut counts = Counts::default();
    let refused = find(value, |path, schema| {
        check_keywords(schema, path, &mut counts).err()
    });
    refused.map_or(Ok(()), |error| Err(error.in_document(id)))
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
    parts(value).try_for_each(|part| check_size(part, left, count))
}

fn check_keywords(schema: &Value, path: &str, counts: &mut Counts) -> Result<(), SchemaError> {
    let keywords = match schema {
        Value::Object(keywords) => keywords,
        Value::Bool(_) => return Ok(()),
        other => {
            let kind = kind_name(other);
            let message = format!("expected a schema (an object, true or false), found {kind}");
            return Err(SchemaError::new(&codes::SCHEMA_INVALID, path, message));
        }
    };
    let refuse = |code, keyword: &str, message: String| {
        Err(SchemaError::new(code, format!("{path}/{keyword}"), message))
    };
    if let Some(dialect) = keywords.get("$schema")
        && dialect.as_str().map(|text| text.trim_end_matches('#')) != Some(DIALECT)
    {
        let message = format!("expected `$schema` to be {DIALECT}, found {dialect}");
        return refuse(&codes::SCHEMA_DIALECT, "$schema", message);
    }
    if keywords.contains_key("$id") && !path.is_empty() {
        let message = "expected `$id` only at the top of a schema, found it further down";
        return refuse(&codes::SCHEMA_REF, "$id", message.to_owned());
    }
    for (keyword, target) in references(schema) {
        if !(target.starts_with('#') || target.starts_with("schema:") && keyword == "$ref") {
            let message = format!(
                "expected a reference into this document (`#/...`) or `schema:NAME`, found {target:?}"
            );
            return refuse(&codes::SCHEMA_REF, keyword, message);
        }
        let fragment = target.strip_prefix('#').unwrap_or_default();
        counts.anchors += usize::from(!fragment.is_empty() && !fragment.starts_with('/'));
        if counts.anchors > MAX_ANCHORS {
            let message = format!(
                "expected at most {MAX_ANCHORS} references by anchor, found more; use JSON pointers"
            );
            return refuse(&codes::SCHEMA_REF, keyword, message);
        }
    }
    for (text, place) in patterns(schema, path) {
        counts.patterns += 1;
        if text.chars().count() > MAX_PATTERN_CHARS || counts.patterns > MAX_PATTERNS {
            let message = format!(
                "expected at most {MAX_PATTERNS} patterns of {MAX_PATTERN_CHARS} characters each, found more"
            );
            return Err(SchemaError::new(&codes::SCHEMA_PATTERN, place, message));
        }
    }
    Ok(())
}

/// How many values a pattern counts as, since it is compiled to several kilobytes.
const PATTERN_WEIGHT: usize = 100;

/// The number of values of a schema; a pattern counts [`PATTERN_WEIGHT`] times.
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

/// Whether a schema or one of its subschemas has one of these keywords.
pub(super) fn has_keyword(schema: &Value, names: &[&str]) -> bool {
    let has = |schema: &Value| names.iter().any(|name| schema.get(name).is_some());
    find(schema, |_, schema| has(schema).then_some(())).is_some()
}

/// How many other documents a schema may refer to, directly or indirectly.
const MAX_DOCUMENTS: usize = 64;

/// The document with all documents that it refers to included below `$defs`, each under the key
/// `schema:ID`.
pub(super) fn close(value: &Value, scope: &dyn SchemaScope) -> Result<Value, SchemaError> {
    check(value, None)?;
    let mut documents: BTreeMap<String, Value> = BTreeMap::new();
    let found = bundle_references(value).into_iter();
    let mut wanted: Vec<_> = found.map(|found| (found, None)).collect();
    while let Some(((id, path), origin)) = wanted.pop() {
        if documents.contains_key(&id) {
            continue;
        }
        let refuse = |message: String| {
            SchemaError::new(&codes::SCHEMA_REF, path.clone(), message)
                .in_document(origin.as_deref())
        };
        if !is_schema_id(&id) {
            return Err(refuse(format!(
                "expected `schema:NAME` with letters, digits, `.`, `_` and `-`, found `schema:{id}`"
            )));
        }
        if documents.len() >= MAX_DOCUMENTS {
            return Err(refuse(format!(
                "expected at most {MAX_DOCUMENTS} documents behind one schema, found more"
            )));
        }
        let Some(document) = scope.schema(&id) else {
            let message =
                format!("expected `schemas/{id}.json` in the bundle for `schema:{id}`, found none");
            return Err(SchemaError {
                missing: Some(id),
                ..refuse(message)
            });
        };
        check(&document, Some(&id))?;
        if has_keyword(&document, &["$anchor", "$dynamicAnchor", "$dynamicRef"]) {
            let message = "expected references by JSON pointer in a shared schema, found an anchor";
            return Err(SchemaError::new(&codes::SCHEMA_REF, "", message).in_document(Some(&id)));
        }
        let more = bundle_references(&document);
        wanted.extend(more.into_iter().map(|found| (found, Some(id.clone()))));
        documents.insert(id, document);
    }
    let mut closed = value.clone();
    if documents.is_empty() {
        return Ok(closed);
    }
    rewrite(&mut closed, None);
    let Value::Object(keywords) = &mut closed else {
        return Ok(closed);
    };
    let definitions = keywords.entry("$defs").or_insert_with(|| Map::new().into());
    let Value::Object(definitions) = definitions else {
        let message = "expected `$defs` to be an object";
        return Err(SchemaError::new(&codes::SCHEMA_INVALID, "/$defs", message));
    };
    for (id, mut document) in documents {
        let key = format!("schema:{id}");
        if definitions.contains_key(&key) {
            let message = format!("expected no own definition called {key:?}, found one");
            let path = format!("/$defs/{}", escape(&key));
            return Err(SchemaError::new(&codes::SCHEMA_REF, path, message));
        }
        rewrite(&mut document, Some(&id));
        // The dialect is already checked, and an inner `$id` would start a separate document, so
        // both are removed.
        if let Value::Object(keywords) = &mut document {
            keywords.shift_remove("$id");
            keywords.shift_remove("$schema");
        }
        definitions.insert(key, document);
    }
    check(&closed, None).map(|()| closed)
}

fn is_schema_id(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=128).contains(&id.len())
        && id.chars().all(plain)
        && !id.starts_with('.')
        && !id.ends_with('.')
}

/// The `schema:` ids that a document names, each with the pointer of the reference.
fn bundle_references(document: &Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    find(document, |path, schema| {
        let target = schema.get("$ref").and_then(Value::as_str)?;
        let target = target.strip_prefix("schema:")?;
        let id = target.split_once('#').map_or(target, |(id, _)| id);
        found.push((id.to_owned(), format!("{path}/$ref")));
        None::<()>
    });
    found
}

/// Converts the references of a document to references within the self-contained document.
fn rewrite(schema: &mut Value, id: Option<&str>) {
    if let Some(Value::String(target)) = schema.get_mut("$ref") {
        let (document, fragment) = match target.strip_prefix("schema:") {
            Some(other) => {
                let (other, fragment) = other.split_once('#').unwrap_or((other, ""));
                (Some(other), fragment)
            }
            None => (id, target.trim_start_matches('#')),
        };
        if let Some(document) = document {
            *target = format!("#/$defs/schema:{document}{fragment}");
        }
    }
    for_each_child_mut(schema, |child| rewrite(child, id));
}
