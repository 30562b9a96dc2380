//! Compiles a schema for the validator, whose engine has another syntax for patterns. Clients see
//! the author's patterns.

use std::collections::HashMap;

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{Draft, PatternOptions, Validator};
use regex::{Regex, RegexBuilder};
use serde_json::Value;

use super::walk::{escape, find, for_each_child_mut, patterns, unescape};
use super::{MAX_QUOTED_CHARS, SchemaError, ecma};
use crate::codes;

/// How large one compiled pattern may be, in bytes. The time and the memory of matching are
/// proportional to its size, and publishers could use up the engine's default of 10 MiB for each
/// pattern.
const MAX_PATTERN_BYTES: usize = 48 * 1024;

/// The validator of a self-contained schema.
pub(super) fn build(closed: &Value) -> Result<(Validator, Translated), SchemaError> {
    let (translated, document) = translate(closed)?;
    let options = jsonschema::options()
        .with_draft(Draft::Draft202012)
        .should_validate_formats(true)
        .offline()
        .with_pattern_options(
            PatternOptions::regex()
                .size_limit(MAX_PATTERN_BYTES)
                .dfa_size_limit(MAX_PATTERN_BYTES),
        );
    let error = match options.build(document.as_ref().unwrap_or(closed)) {
        Ok(validator) => return Ok((validator, translated)),
        Err(error) => error,
    };
    // The builder checks the schema against the meta-schema first, but does not state whether that
    // check failed, so the check is repeated here.
    if let Err(error) = jsonschema::draft202012::meta::validate(closed) {
        let path = error.instance_path().to_string();
        let message = meta_message(&path, &error);
        return Err(SchemaError::new(&codes::SCHEMA_INVALID, path, message));
    }
    let path = translated.original_path(&error.instance_path().to_string());
    Err(match error.kind() {
        Kind::Format { format } if format == "regex" => {
            let found = error.instance().as_str().unwrap_or_default();
            let message = refusal(found, &translated);
            SchemaError::new(&codes::SCHEMA_PATTERN, path, message)
        }
        Kind::Referencing(_) => SchemaError::new(&codes::SCHEMA_REF, path, error.to_string()),
        _ => SchemaError::new(&codes::SCHEMA_INVALID, path, error.to_string()),
    })
}

/// The expectation of the meta-schema, in plain words for frequent mistakes from older drafts.
fn meta_message(path: &str, error: &jsonschema::ValidationError<'_>) -> String {
    let found = error.instance().to_string();
    let keyword = path.rsplit('/').next().unwrap_or_default();
    match keyword {
        "type" => format!(
            "expected `type` to be array, boolean, integer, null, number, object or string, or a list of them, found {found}"
        ),
        "exclusiveMinimum" | "exclusiveMaximum" => {
            format!("expected `{keyword}` to be a number, found {found} (an older draft?)")
        }
        "required" => format!(
            "expected `required` to be a list of property names beside `properties`, found {found}"
        ),
        _ if found.len() > MAX_QUOTED_CHARS => {
            format!("expected JSON Schema 2020-12: {}", error.masked())
        }
        _ => format!("expected JSON Schema 2020-12: {error}"),
    }
}

/// The translations, by [`ecma::translate`], of patterns that differ in the engine's syntax.
#[derive(Default)]
pub(super) struct Translated {
    /// The author's pattern by its translation.
    originals: HashMap<String, String>,
}

impl Translated {
    pub(super) fn original(&self, translation: &str) -> Option<&str> {
        self.originals.get(translation).map(String::as_str)
    }

    /// Converts a JSON pointer into the translated schema to a pointer into the author's schema.
    pub(super) fn original_path(&self, pointer: &str) -> String {
        if self.originals.is_empty() {
            return pointer.to_owned();
        }
        let steps = pointer.split('/').map(|step| {
            let original = self.original(&unescape(step));
            original.map_or_else(|| step.to_owned(), escape)
        });
        steps.collect::<Vec<_>>().join("/")
    }
}

/// The schema with its patterns in the engine's syntax; `None` if no pattern differs.
///
/// # Errors
/// The first pattern that is not ECMA-262, or can't be matched in linear time.
fn translate(closed: &Value) -> Result<(Translated, Option<Value>), SchemaError> {
    let mut translated = Translated::default();
    let refused = find(closed, |at, schema| {
        collect(schema, at, &mut translated).err()
    });
    refused.map_or(Ok(()), Err)?;
    if translated.originals.is_empty() {
        return Ok((translated, None));
    }
    let originals = translated.originals.iter();
    let translations = originals.map(|(translation, own)| (own.as_str(), translation.as_str()));
    let mut document = closed.clone();
    replace(&mut document, &translations.collect());
    Ok((translated, Some(document)))
}

fn collect(schema: &Value, at: &str, translated: &mut Translated) -> Result<(), SchemaError> {
    for (pattern, place) in patterns(schema, at) {
        let mut translation = ecma::translate(pattern).map_err(|found| {
            let message = format!("expected a pattern of ECMA-262 without look-around and back-references, found {found}");
            SchemaError::new(&codes::SCHEMA_PATTERN, place, message)
        })?;
        if translation == pattern {
            continue;
        }
        // Two patterns with the same translation must stay distinct, since each is a key for a
        // schema.
        let is_other = |known: &str| known != pattern;
        while translated.original(&translation).is_some_and(is_other) {
            translation.push_str("(?:)");
        }
        translated.originals.insert(translation, pattern.to_owned());
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
        let translated =
            members.map(|(pattern, inner)| (translation(&pattern).unwrap_or(pattern), inner));
        *named = translated.collect();
    }
    for_each_child_mut(schema, |child| replace(child, translations));
}

/// Compiles a pattern in the engine's syntax, with a limit on its size.
pub(super) fn compile_pattern(translation: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(translation)
        .size_limit(MAX_PATTERN_BYTES)
        .build()
}

/// The reason why the engine refuses a translated pattern.
fn refusal(translation: &str, translated: &Translated) -> String {
    let shown = translated.original(translation).unwrap_or(translation);
    match compile_pattern(translation) {
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
