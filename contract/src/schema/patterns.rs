//! The patterns of a schema for the validator, whose engine has a syntax of its own. Clients see the author's.

use std::collections::HashMap;

use regex::RegexBuilder;
use serde_json::{Map, Value};

use super::walk::{children, escape, for_each_child_mut};
use super::{MAX_PATTERN_BYTES, SchemaError, ecma};
use crate::codes;

/// What [`ecma::translate`] made of the patterns that differ in the engine's syntax.
#[derive(Default)]
pub(super) struct Translated {
    /// The author's pattern by its translation.
    originals: HashMap<String, String>,
}

impl Translated {
    pub(super) fn original(&self, translation: &str) -> Option<&str> {
        self.originals.get(translation).map(String::as_str)
    }

    /// A JSON pointer into the translated schema as one into the author's.
    pub(super) fn original_path(&self, pointer: &str) -> String {
        if self.originals.is_empty() {
            return pointer.to_owned();
        }
        let steps = pointer.split('/').map(|step| {
            let name = step.replace("~1", "/").replace("~0", "~");
            self.original(&name).map_or_else(|| step.to_owned(), escape)
        });
        steps.collect::<Vec<_>>().join("/")
    }
}

/// The schema with its patterns in the engine's syntax; no schema if none differs.
///
/// # Errors
/// The first pattern that is not ECMA-262, or can't be matched in linear time.
pub(super) fn translate(closed: &Value) -> Result<(Translated, Option<Value>), SchemaError> {
    let mut translated = Translated::default();
    collect(closed, "", &mut translated)?;
    if translated.originals.is_empty() {
        return Ok((translated, None));
    }
    let translations = translated.originals.iter();
    let translations = translations.map(|(translation, own)| (own.as_str(), translation.as_str()));
    let mut document = closed.clone();
    replace(&mut document, &translations.collect());
    Ok((translated, Some(document)))
}

fn collect(schema: &Value, at: &str, translated: &mut Translated) -> Result<(), SchemaError> {
    let own = schema.get("pattern").and_then(Value::as_str);
    let own = own.map(|pattern| (pattern, format!("{at}/pattern")));
    let named = schema.get("patternProperties").and_then(Value::as_object);
    let named = named.into_iter().flat_map(Map::keys).map(|pattern| {
        let place = format!("{at}/patternProperties/{}", escape(pattern));
        (pattern.as_str(), place)
    });
    for (pattern, place) in own.into_iter().chain(named) {
        let mut translation = ecma::translate(pattern).map_err(|found| {
            let message = format!("expected a pattern of ECMA-262 without look-around and back-references, found {found}");
            SchemaError::new(&codes::SCHEMA_PATTERN, place, message)
        })?;
        if translation == pattern {
            continue;
        }
        // Two patterns that mean the same stay two: each is the name of a schema.
        while translated
            .original(&translation)
            .is_some_and(|known| known != pattern)
        {
            translation.push_str("(?:)");
        }
        translated.originals.insert(translation, pattern.to_owned());
    }
    for child in children(schema) {
        collect(child.schema, &child.pointer(at), translated)?;
    }
    Ok(())
}

fn replace(schema: &mut Value, translations: &HashMap<&str, &str>) {
    let translation = |pattern: &str| translations.get(pattern).map(|text| (*text).to_owned());
    if let Some(Value::String(pattern)) = schema.get_mut("pattern")
        && let Some(translated) = translation(pattern)
    {
        *pattern = translated;
    }
    if let Some(Value::Object(named)) = schema.get_mut("patternProperties") {
        let members = std::mem::take(named).into_iter();
        *named = members
            .map(|(pattern, inner)| (translation(&pattern).unwrap_or(pattern), inner))
            .collect();
    }
    for_each_child_mut(schema, |child| replace(child, translations));
}

/// Why the engine refuses a pattern that was translated.
pub(super) fn refusal(translation: &str, translated: &Translated) -> String {
    let shown = translated.original(translation).unwrap_or(translation);
    let built = RegexBuilder::new(translation)
        .size_limit(MAX_PATTERN_BYTES)
        .build();
    match built {
        Err(regex::Error::CompiledTooBig(_)) => format!(
            "expected a pattern that compiles to at most {} KiB, found {shown:?}, which needs more: repeat less, or \
             shorter classes",
            MAX_PATTERN_BYTES / 1024
        ),
        _ => format!(
            "expected a pattern whose classes and repetitions this host knows, found {shown:?}"
        ),
    }
}
