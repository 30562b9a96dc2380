//! JSON Schema 2020-12, compiled from hostile text: no fetching, no backtracking, no loops. Not the schemas themselves.

mod absent;
mod bundle;
mod cost;
mod ecma;
mod explain;
mod inline;
mod limits;
mod marked;
mod outward;
mod patterns;
mod plain;
mod shape;
mod view;
mod walk;
mod warnings;

use std::fmt;
use std::sync::Arc;

use jsonschema::error::ValidationErrorKind as Kind;
use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::{Map, Value};

use crate::Scope;
use crate::codes;
use crate::diagnostic::Code;

pub use explain::in_words;
pub use marked::HIDDEN;
pub use shape::Shape;
pub use view::without_annotations;
pub use walk::escape;
pub use warnings::{SchemaWarning, SchemaWarningKind};

/// Texts longer than this are not quoted in messages: they would drown the message.
const MAX_QUOTED_CHARS: usize = 80;

/// Bytes that one compiled pattern may take. Matching takes time in proportion to them, and memory:
/// the engine's default of 10 MiB would be the publisher's to spend.
const MAX_PATTERN_BYTES: usize = 48 * 1024;

/// A compiled schema. Cheap to clone.
#[derive(Clone)]
pub struct Schema {
    inner: Arc<Inner>,
}

struct Inner {
    value: Value,
    /// `value` with every `schema:` reference taken in below `$defs`: stands alone.
    closed: Value,
    validator: Validator,
    /// What the patterns of `closed` are for the validator.
    translated: patterns::Translated,
    /// How deep a value may be before collecting its errors could take exponential time; `None`: any.
    explainable: Option<usize>,
    weight: usize,
    marks: view::Marks,
    /// Filled only where there are marks.
    patterns: view::Patterns,
}

/// The first way in which a value misses a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, serde::Serialize)]
#[error("{}: {message}", if instance_path.is_empty() { "the value" } else { instance_path.as_str() })]
pub struct Violation {
    /// JSON pointer into the value.
    pub instance_path: String,
    /// JSON pointer into the schema, `$ref` not followed.
    pub schema_path: String,
    /// What the schema expects and what was found. Holds no value of a sensitive field.
    pub message: String,
}

/// Why a document is not accepted as a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at {})", place(document.as_deref(), path))]
pub struct SchemaError {
    pub(crate) info: &'static Code,
    /// What was expected and what was found.
    pub message: String,
    /// JSON pointer into the document.
    pub path: String,
    /// The `schema:` id of the document that the path leads into; `None`: the schema itself.
    pub document: Option<String>,
    /// The `schema:` id that is referred to and that the scope does not have, where that is the reason.
    pub(crate) missing: Option<String>,
}

fn place(document: Option<&str>, path: &str) -> String {
    let document = document
        .map(|id| format!("schema:{id}"))
        .unwrap_or_default();
    format!("{document}#{path}")
}

impl SchemaError {
    /// Stable kebab-case code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.info.code
    }

    fn new(info: &'static Code, path: impl Into<String>, message: impl Into<String>) -> Self {
        SchemaError {
            info,
            message: message.into(),
            path: path.into(),
            document: None,
            missing: None,
        }
    }

    fn in_document(mut self, id: Option<&str>) -> Self {
        self.document = id.map(str::to_owned);
        self
    }
}

impl Schema {
    /// Compiles a schema; `scope` knows the `schema:` documents of the same bundle.
    ///
    /// # Errors
    /// The first rule broken: another dialect, a keyword misused, a reference out of the bundle, a
    /// pattern that needs backtracking, too large, too deep, or able to take exponential time.
    pub fn compile(value: &Value, scope: &dyn Scope) -> Result<Schema, SchemaError> {
        limits::check(value, None)?;
        let closed = bundle::close(value, scope)?;
        let explainable = cost::check(&closed)?;
        let weight = limits::weight(&closed);
        let (validator, translated) = build(&closed)?;
        let marks = view::Marks::of(&closed);
        let marked = marks.internal || marks.sensitive;
        let patterns = if marked {
            view::Patterns::of(&closed)
        } else {
            view::Patterns::default()
        };
        Ok(Schema {
            inner: Arc::new(Inner {
                value: value.clone(),
                closed,
                validator,
                translated,
                explainable,
                weight,
                marks,
                patterns,
            }),
        })
    }

    /// What compiling and keeping it costs, in units of one small keyword: its values, and its
    /// patterns many times over. For a budget over all schemas of a bundle.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.inner.weight
    }

    /// Checks a value. The value must have been held to [`crate::json::Limits`] before.
    ///
    /// # Errors
    /// The first violation.
    pub fn validate(&self, instance: &Value) -> Result<(), Violation> {
        if self.inner.validator.is_valid(instance) {
            return Ok(());
        }
        if let Some(violation) = self.unexplained(instance) {
            return Err(violation);
        }
        match self.inner.validator.validate(instance) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.violation(&error, instance)),
        }
    }

    /// All violations, at most `max`; empty for a valid value.
    #[must_use]
    pub fn violations(&self, instance: &Value, max: usize) -> Vec<Violation> {
        if let Some(violation) = self.unexplained(instance) {
            return if self.inner.validator.is_valid(instance) {
                Vec::new()
            } else {
                vec![violation]
            };
        }
        let errors = self.inner.validator.iter_errors(instance).take(max);
        errors
            .map(|error| self.violation(&error, instance))
            .collect()
    }

    /// The document as written.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.inner.value
    }

    /// The document with every `schema:` reference taken in below `$defs`: it stands alone.
    #[must_use]
    pub fn closed(&self) -> &Value {
        &self.inner.closed
    }

    /// The properties that a caller may set, each with its type, as one line; `None` where the schema names none.
    #[must_use]
    pub fn takes(&self) -> Option<String> {
        explain::takes(&self.model_view())
    }

    /// What a model may see: [`Schema::closed`] without the properties marked `x-internal`.
    #[must_use]
    pub fn model_view(&self) -> Value {
        view::without_internal(&self.inner.closed)
    }

    /// [`Schema::model_view`] for a protocol that shows it to a model: titles,
    /// descriptions and comments as `show` gives them, and references moved below the JSON pointer
    /// `at`, where the schema is to stand inside another one; empty: it stands alone.
    #[must_use]
    pub fn outward_view(&self, at: &str, show: &dyn Fn(&str) -> String) -> Value {
        outward::view(&self.inner.closed, at, show)
    }

    /// [`Schema::outward_view`] with each reference replaced by what it refers to, since many clients follow none. A
    /// recursive reference stays, and so do all if the view would be much larger.
    #[must_use]
    pub fn inlined_view(&self, at: &str, show: &dyn Fn(&str) -> String) -> Value {
        outward::inlined(&self.inner.closed, at, show)
    }

    /// [`Schema::inlined_view`] as one plain object: a composition at the root (`oneOf`, `if`, …), which APIs of models
    /// refuse, is merged. It has the properties of all branches, and requires what all require. `None` if the schema
    /// accepts no object.
    ///
    /// ```
    /// use serde_json::json;
    /// use toolward_contract::NoScope;
    /// use toolward_contract::schema::Schema;
    ///
    /// let schema = json!({ "oneOf": [
    ///     { "properties": { "id": { "type": "integer" }, "all": { "const": false } }, "required": ["all", "id"] },
    ///     { "properties": { "all": { "const": true } }, "required": ["all"] },
    /// ] });
    /// let schema = Schema::compile(&schema, &NoScope)?;
    /// let plain = schema.plain_view(&str::to_owned);
    /// assert_eq!(plain.map(serde_json::Value::Object), Some(json!({
    ///     "type": "object",
    ///     "properties": { "id": { "type": "integer" }, "all": { "enum": [false, true] } },
    ///     "required": ["all"],
    /// })));
    /// # Ok::<(), toolward_contract::schema::SchemaError>(())
    /// ```
    #[must_use]
    pub fn plain_view(&self, show: &dyn Fn(&str) -> String) -> Option<Map<String, Value>> {
        outward::plain(&self.inner.closed, show)
    }

    /// The property names that the schema shows.
    #[must_use]
    pub fn shape(&self) -> Shape {
        Shape::of(&self.inner.closed)
    }

    /// The violation without details, where finding them could take exponential time.
    fn unexplained(&self, instance: &Value) -> Option<Violation> {
        let deepest = self.inner.explainable?;
        depth_over(instance, deepest).then(|| Violation {
            instance_path: String::new(),
            schema_path: String::new(),
            message: format!("misses the schema; below {deepest} levels no place is given, because the schema refers to itself in several ways"),
        })
    }

    fn violation(&self, error: &jsonschema::ValidationError<'_>, instance: &Value) -> Violation {
        let instance_path = error.instance_path().to_string();
        let schema_path = self
            .inner
            .translated
            .original_path(&error.schema_path().to_string());
        let long = error.instance().is_string()
            || error.instance().is_array()
            || error.instance().is_object();
        let long = long && error.instance().to_string().len() > MAX_QUOTED_CHARS;
        let secret = self.has_sensitive()
            && self
                .sensitive_paths(instance)
                .iter()
                .any(|path| overlaps(path, &instance_path));
        let mut message = if long || secret {
            error.masked().to_string()
        } else {
            error.to_string()
        };
        if let Kind::Pattern { pattern } = error.kind()
            && let Some(original) = self.inner.translated.original(pattern)
        {
            message = message.replace(pattern.as_str(), original);
        }
        if let Kind::AdditionalProperties { unexpected } = error.kind()
            && let Some(instead) = explain::instead(&self.model_view(), &schema_path, unexpected)
        {
            message.push_str(&format!("; {instead}"));
        }
        Violation {
            instance_path,
            schema_path,
            message,
        }
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.inner.value).finish()
    }
}

impl PartialEq for Schema {
    /// Equal documents, all that they refer to included.
    fn eq(&self, other: &Schema) -> bool {
        self.inner.closed == other.inner.closed
    }
}

/// Whether one of two JSON pointers leads into what the other points at.
fn overlaps(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    long.strip_prefix(short)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn depth_over(value: &Value, limit: usize) -> bool {
    let mut inside: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => return false,
    };
    match limit.checked_sub(1) {
        None => true,
        Some(limit) => inside.any(|value| depth_over(value, limit)),
    }
}

fn build(closed: &Value) -> Result<(Validator, patterns::Translated), SchemaError> {
    let (translated, document) = patterns::translate(closed)?;
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
    // It holds the schema to the meta-schema first, and does not say which of both is missed.
    if let Err(error) = jsonschema::draft202012::meta::validate(closed) {
        let path = error.instance_path().to_string();
        let message = meta_message(&path, &error);
        return Err(SchemaError::new(&codes::SCHEMA_INVALID, path, message));
    }
    let path = translated.original_path(&error.instance_path().to_string());
    Err(match error.kind() {
        Kind::Format { format } if format == "regex" => {
            let found = error.instance().as_str().unwrap_or_default();
            let message = patterns::refusal(found, &translated);
            SchemaError::new(&codes::SCHEMA_PATTERN, path, message)
        }
        Kind::Referencing(_) => SchemaError::new(&codes::SCHEMA_REF, path, error.to_string()),
        _ => SchemaError::new(&codes::SCHEMA_INVALID, path, error.to_string()),
    })
}

/// What the meta-schema expects, with the usual slips of older drafts in plain words.
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
