//! Takes `schema:` references into the document, so that it stands alone. Fetches nothing.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::walk::{escape, for_each_child_mut};
use super::{SchemaError, limits, walk};
use crate::Scope;
use crate::codes;

/// Other documents that one schema may refer to, directly or not.
const MAX_DOCUMENTS: usize = 64;

/// The document with all that it refers to below `$defs`, under the key `schema:ID`.
pub(super) fn close(value: &Value, scope: &dyn Scope) -> Result<Value, SchemaError> {
    let mut documents: BTreeMap<String, Value> = BTreeMap::new();
    let mut wanted = references(value, "")
        .into_iter()
        .map(|found| (found, None))
        .collect::<Vec<_>>();
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
        limits::check(&document, Some(&id))?;
        if limits::has_keyword(&document, &["$anchor", "$dynamicAnchor", "$dynamicRef"]) {
            let message = "expected references by JSON pointer in a shared schema, found an anchor";
            return Err(SchemaError::new(&codes::SCHEMA_REF, "", message).in_document(Some(&id)));
        }
        let more = references(&document, "");
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
    let definitions = keywords
        .entry("$defs")
        .or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(definitions) = definitions else {
        return Err(SchemaError::new(
            &codes::SCHEMA_INVALID,
            "/$defs",
            "expected `$defs` to be an object",
        ));
    };
    for (id, mut document) in documents {
        let key = format!("schema:{id}");
        if definitions.contains_key(&key) {
            let message = format!("expected no own definition called {key:?}, found one");
            return Err(SchemaError::new(
                &codes::SCHEMA_REF,
                format!("/$defs/{}", escape(&key)),
                message,
            ));
        }
        rewrite(&mut document, Some(&id));
        // The dialect was checked; an inner `$id` would start a document of its own.
        if let Value::Object(keywords) = &mut document {
            keywords.shift_remove("$id");
            keywords.shift_remove("$schema");
        }
        definitions.insert(key, document);
    }
    limits::check(&closed, None).map(|()| closed)
}

fn is_schema_id(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=128).contains(&id.len())
        && id.chars().all(plain)
        && !id.starts_with('.')
        && !id.ends_with('.')
}

/// The `schema:` ids that a document names, each with the pointer of the reference.
fn references(schema: &Value, path: &str) -> Vec<(String, String)> {
    let target = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|target| target.strip_prefix("schema:"));
    let own = target.map(|target| {
        let id = target.split_once('#').map_or(target, |(id, _)| id);
        (id.to_owned(), format!("{path}/$ref"))
    });
    let inner = walk::children(schema)
        .into_iter()
        .flat_map(|child| references(child.schema, &child.pointer(path)));
    own.into_iter().chain(inner).collect()
}

/// Turns the references of a document into references within the closed one.
fn rewrite(schema: &mut Value, id: Option<&str>) {
    if let Some(Value::String(target)) = schema.get_mut("$ref") {
        let (document, fragment) = match target.strip_prefix("schema:") {
            Some(other) => match other.split_once('#') {
                Some((other, fragment)) => (Some(other.to_owned()), fragment.to_owned()),
                None => (Some(other.to_owned()), String::new()),
            },
            None => (
                id.map(str::to_owned),
                target.trim_start_matches('#').to_owned(),
            ),
        };
        if let Some(document) = document {
            *target = format!("#/$defs/schema:{document}{fragment}");
        }
    }
    for_each_child_mut(schema, |child| rewrite(child, id));
}
