//! Where a declarative driver's output is in the JSON response, and taking it out. Not its validation.

mod json_path;

use serde_json::{Map, Value};

use super::template::TemplateReader;
use crate::codes;
use crate::json::{self, JsonError, Limits};
use crate::source::{Content, FieldReader, MappingReader};

pub use json_path::JsonPath;

/// Where the output is in a JSON response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputPlace {
    /// The whole body.
    #[default]
    Whole,
    /// What `response_extract` selects.
    Extract(JsonPath),
    /// The part that a JSON pointer names.
    Pointer(String),
    /// An object made of parts: output name and JSON pointer.
    Outputs(Vec<(String, String)>),
}

toolward_support::report::codes! {
    /// Why a response holds no output.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum ExtractError: Error {
        /// `pointer` is a JSON pointer, or the path.
        Missing { pointer: String } = "http-response-missing",
            "the response of an HTTP request has nothing at the place of the output",
            ("expected the output at {pointer} of the response, found nothing there");
        /// The output is larger than it may be.
        Limit(error: JsonError) -> (error.code()), ("in the output: {error}");
        TooManySteps { allowed: usize } = "http-response-too-many",
            "a path into the response of an HTTP request looks at more values than a document may have",
            ("expected a path that looks at no more than {allowed} values, found one that does");
    }
}

impl OutputPlace {
    /// The output in a response's parsed body; null stands for a response without one. An output of
    /// [`OutputPlace::Outputs`] that is missing is left out: the contract decides whether it may be.
    ///
    /// # Errors
    /// Nothing where [`OutputPlace::Pointer`] or [`OutputPlace::Extract`] points, or an output beyond
    /// `limits`: several outputs may name the same part, which is therefore counted before it is
    /// copied.
    pub fn extract(&self, body: &Value, limits: &Limits) -> Result<Value, ExtractError> {
        let output = match self {
            OutputPlace::Whole => body,
            OutputPlace::Pointer(pointer) => {
                body.pointer(pointer).ok_or_else(|| ExtractError::Missing {
                    pointer: pointer.clone(),
                })?
            }
            OutputPlace::Extract(path) => return path.select(body, limits),
            OutputPlace::Outputs(parts) => return outputs(parts, body, limits),
        };
        json::check(output, limits).map_err(ExtractError::Limit)?;
        Ok(output.clone())
    }

    /// Reads `response_extract`, or `response` of version 0.1.
    pub(super) fn read(
        fields: &mut MappingReader<'_>,
        reading: &mut TemplateReader,
    ) -> OutputPlace {
        let old = fields.take("response");
        let extract = fields.take("response_extract");
        if let (Some(old), Some(extract)) = (&old, &extract) {
            let message = format!(
                "expected `{}` alone, found `{}` beside it",
                extract.name, old.name
            );
            old.note_at_key(&codes::HTTP_EXTRACT_INVALID, message);
        }
        if let Some(field) = extract {
            return path(&field).unwrap_or_default();
        }
        let Some(field) = old else {
            return OutputPlace::Whole;
        };
        reading.old("`response`", field.key_at);
        response(&field)
    }
}

fn outputs(
    parts: &[(String, String)],
    body: &Value,
    limits: &Limits,
) -> Result<Value, ExtractError> {
    let mut output = Map::new();
    let mut left = inner(limits);
    for (name, pointer) in parts {
        if let Some(part) = body.pointer(pointer) {
            output.insert(name.clone(), copied(part, &mut left)?);
        }
    }
    let output = Value::Object(output);
    json::check(&output, limits).map_err(ExtractError::Limit)?;
    Ok(output)
}

/// The limits of a value one level deeper.
fn inner(limits: &Limits) -> Limits {
    Limits {
        depth: limits.depth.saturating_sub(1),
        ..*limits
    }
}

/// A copy of a part, counted before it is made.
fn copied(part: &Value, left: &mut Limits) -> Result<Value, ExtractError> {
    let spent = json::measure(part, left).map_err(ExtractError::Limit)?;
    left.bytes = left.bytes.saturating_sub(spent.bytes);
    left.values = left.values.saturating_sub(spent.values);
    Ok(part.clone())
}

fn path(field: &FieldReader<'_>) -> Option<OutputPlace> {
    let found = field.text()?;
    match JsonPath::parse(found) {
        Ok(path) if path.is_whole() => Some(OutputPlace::Whole),
        Ok(path) => Some(OutputPlace::Extract(path)),
        Err(expected) => {
            let message = format!("expected {expected} in `{}`, found {found:?}", field.name);
            field.refuse(&codes::HTTP_EXTRACT_INVALID, message)
        }
    }
}

fn response(field: &FieldReader<'_>) -> OutputPlace {
    let Some(mut fields) = field.fields() else {
        return OutputPlace::Whole;
    };
    let (whole, parts) = (fields.take("pointer"), fields.take("outputs"));
    let is_mapping = |parts: &FieldReader<'_>| matches!(parts.content, Content::Mapping(_));
    let response = match (whole, parts) {
        (Some(whole), None) => pointer(&whole).map(OutputPlace::Pointer),
        (None, Some(parts)) if is_mapping(&parts) => {
            let members = parts.members().into_iter().flatten();
            let read = members.filter_map(|(key, part)| Some((key.to_owned(), pointer(&part)?)));
            Some(OutputPlace::Outputs(read.collect()))
        }
        _ => {
            let message = format!(
                "expected `{}` to have either `pointer` or a mapping `outputs`, found something else",
                field.name
            );
            field.refuse(&codes::WRONG_VALUE, message)
        }
    };
    fields.unknown();
    response.unwrap_or_default()
}

fn pointer(field: &FieldReader<'_>) -> Option<String> {
    field.text_as(
        &codes::WRONG_VALUE,
        "a JSON pointer such as /data/0",
        |found| {
            let mut escapes = found.split('~').skip(1);
            let fits = escapes.all(|rest| rest.starts_with(['0', '1']))
                && (found.is_empty() || found.starts_with('/'));
            fits.then(|| found.to_owned())
        },
    )
}
