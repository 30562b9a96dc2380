//! JSON Schema 2020-12, compiled from hostile text: without fetching, backtracking or loops.

mod absent;
mod compile;
mod cost;
mod documents;
mod ecma;
mod inline;
mod marks;
mod plain;
mod shape;
mod view;
mod walk;
mod warnings;

use std::fmt;
use std::sync::Arc;

use jsonschema::Validator;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

use crate::SchemaScope;
use crate::diagnostic::Code;
use crate::json::parts;
use compile::{Translated, build};
use marks::{NamePatterns, SchemaMark};

pub use marks::HIDDEN;
pub use shape::{Shape, in_words};
pub use view::without_annotations;
pub use walk::escape;
pub use warnings::{SchemaWarning, SchemaWarningKind};

/// A value whose JSON text has more bytes than this is not quoted in messages, since it would hide
/// the rest of the message.
const MAX_QUOTED_CHARS: usize = 80;

/// A compiled schema. Cheap to clone.
#[derive(Clone)]
pub struct Schema {
    inner: Arc<Inner>,
}

struct Inner {
    value: Value,
    /// `value` with the target of every `schema:` reference included below `$defs`, so that it is
    /// self-contained.
    closed: Value,
    validator: Validator,
    /// The patterns of `closed`, translated for the validator.
    translated: Translated,
    /// How deep a value may be before collecting its errors could take exponential time; `None`
    /// means any depth.
    explainable: Option<usize>,
    weight: usize,
    has_internal: bool,
    has_sensitive: bool,
    /// The patterns of `closed`, for finding marked values. Empty if the schema has no marks
    /// (`x-internal`, `x-sensitive`, `writeOnly`).
    patterns: NamePatterns,
}

/// A way in which a value does not match a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, serde::Serialize)]
#[error("{}: {message}", if instance_path.is_empty() { "the value" } else { instance_path.as_str() })]
pub struct Violation {
    /// JSON pointer into the value.
    pub instance_path: String,
    /// JSON pointer into the schema, with each `$ref` as a step.
    pub schema_path: String,
    /// The expected and the found value, without values of sensitive fields.
    pub message: String,
}

/// The error for a document that is not accepted as a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at {})", place(document.as_deref(), path))]
pub struct SchemaError {
    /// The table row of its code.
    pub info: &'static Code,
    /// The expected and the found value.
    pub message: String,
    /// JSON pointer into the document.
    pub path: String,
    /// The `schema:` id of the document with the path; `None` means the schema itself.
    pub document: Option<String>,
    /// If the scope lacks a document that is referred to: its `schema:` id.
    pub missing: Option<String>,
}

fn place(document: Option<&str>, path: &str) -> String {
    let document = document
        .map(|id| format!("schema:{id}"))
        .unwrap_or_default();
    format!("{document}#{path}")
}

impl SchemaError {
    /// Stable kebab-case code.
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
    /// Compiles a schema; `scope` has the `schema:` documents of the same bundle.
    ///
    /// # Errors
    /// The first broken rule: another dialect, a misused keyword, a reference out of the bundle, a
    /// pattern that needs backtracking, or a schema that is too large, too deep, or could take
    /// exponential time.
    pub fn compile(value: &Value, scope: &dyn SchemaScope) -> Result<Schema, SchemaError> {
        let closed = documents::close(value, scope)?;
        let explainable = cost::check(&closed)?;
        let weight = documents::weight(&closed);
        let (validator, translated) = build(&closed)?;
        let has_internal = SchemaMark::Internal.is_within(&closed);
        let has_sensitive = SchemaMark::Sensitive.is_within(&closed);
        let patterns = match has_internal || has_sensitive {
            true => NamePatterns::of(&closed),
            false => NamePatterns::default(),
        };
        Ok(Schema {
            inner: Arc::new(Inner {
                value: value.clone(),
                closed,
                validator,
                translated,
                explainable,
                weight,
                has_internal,
                has_sensitive,
                patterns,
            }),
        })
    }

    /// The cost of compiling and storing the schema, in units of one small keyword: the number of
    /// its values, of which a pattern counts many times. Callers limit the sum for a bundle.
    pub fn weight(&self) -> usize {
        self.inner.weight
    }

    /// Checks a value, which must already be within [`crate::json::Limits`].
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
        let checked = self.inner.validator.validate(instance);
        checked.map_err(|error| self.violation(&error, instance))
    }

    /// All violations, at most `max`; empty for a valid value. If finding them could take
    /// exponential time, one violation without details.
    pub fn violations(&self, instance: &Value, max: usize) -> Vec<Violation> {
        if let Some(violation) = self.unexplained(instance) {
            let valid = self.inner.validator.is_valid(instance);
            return if valid { Vec::new() } else { vec![violation] };
        }
        let errors = self.inner.validator.iter_errors(instance).take(max);
        errors
            .map(|error| self.violation(&error, instance))
            .collect()
    }

    /// The document as written.
    pub fn value(&self) -> &Value {
        &self.inner.value
    }

    /// The document with the target of every `schema:` reference included below `$defs`, so that it
    /// is self-contained.
    pub fn closed(&self) -> &Value {
        &self.inner.closed
    }

    /// The property names in the schema.
    pub fn shape(&self) -> Shape {
        Shape::of(&self.inner.closed)
    }

    /// A violation without details, if finding the details could take exponential time.
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
        let found = error.instance();
        let long = (found.is_string() || found.is_array() || found.is_object())
            && found.to_string().len() > MAX_QUOTED_CHARS;
        let sensitive = self.sensitive_paths(instance);
        let secret = sensitive.iter().any(|path| overlaps(path, &instance_path));
        let mut message = match long || secret {
            true => error.masked().to_string(),
            false => error.to_string(),
        };
        if let Kind::Pattern { pattern } = error.kind()
            && let Some(original) = self.inner.translated.original(pattern)
        {
            message = message.replace(pattern.as_str(), original);
        }
        if let Kind::AdditionalProperties { unexpected } = error.kind()
            && let Some(instead) = shape::instead(&self.model_view(), &schema_path, unexpected)
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
    /// Whether the documents are equal, including all documents that they refer to.
    fn eq(&self, other: &Schema) -> bool {
        self.inner.closed == other.inner.closed
    }
}

/// Whether one of two JSON pointers is equal to the other or points to a part below it.
fn overlaps(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    long.strip_prefix(short)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn depth_over(value: &Value, limit: usize) -> bool {
    let nests = value.is_array() || value.is_object();
    match limit.checked_sub(1) {
        None => nests,
        Some(limit) => parts(value).any(|part| depth_over(part, limit)),
    }
}
