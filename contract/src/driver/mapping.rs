//! `mapping`: converts the contract's input to the driver's by renaming and a closed set of
//! transforms, without expressions.

use serde_json::{Map, Number, Value};

use crate::codes;
use crate::source::{Content, FieldReader, nearest};

/// The inputs that a driver receives under new names or transformed. Inputs that are not mentioned
/// pass unchanged; a mentioned input passes only as the mapping states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputMapping {
    entries: Vec<(String, MappedInput)>,
}

/// The source of a driver's field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedInput {
    /// The contract's input.
    pub from: String,
    /// The transform of its value.
    pub transform: Option<Transform>,
    /// The name of a transform that hosts don't know, such as one that the driver's entry file
    /// defines. The driver does not serve calls that give the input.
    pub unknown_transform: Option<String>,
}

/// The named transforms. Each fails on a value for which it is not defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transform {
    /// Removes white space at both ends of a text.
    Trim,
    /// Text in lower case.
    Lowercase,
    /// Text in upper case.
    Uppercase,
    /// A number or boolean as text; text unchanged.
    ToString,
    /// Text as a number; a number unchanged.
    ToNumber,
    /// A value as JSON text.
    ToJson,
    /// JSON text as a value.
    FromJson,
    /// A list of texts, joined by commas.
    JoinCommas,
    /// Text, split at commas, parts trimmed; empty text is an empty list.
    SplitCommas,
    /// A value as a list of that one value.
    Wrap,
}

/// The error for an input that can't be mapped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the input `{from}` to be {expected} for the transform {transform}")]
pub struct MappingError {
    from: String,
    transform: &'static str,
    expected: &'static str,
}

impl Transform {
    const ALL: &[(&str, Transform, &str)] = &[
        ("trim", Transform::Trim, "text"),
        ("lowercase", Transform::Lowercase, "text"),
        ("uppercase", Transform::Uppercase, "text"),
        (
            "to_string",
            Transform::ToString,
            "text, a number or a boolean",
        ),
        ("to_number", Transform::ToNumber, "a number or its text"),
        ("to_json", Transform::ToJson, "a value"),
        ("from_json", Transform::FromJson, "JSON text"),
        ("join_commas", Transform::JoinCommas, "a list of texts"),
        ("split_commas", Transform::SplitCommas, "text"),
        ("wrap", Transform::Wrap, "a value"),
    ];

    /// Reads the name of a transform.
    pub fn parse(name: &str) -> Option<Transform> {
        let found = Transform::ALL.iter().find(|(known, ..)| *known == name);
        found.map(|(_, transform, _)| *transform)
    }

    /// Its name in DRIVER.md.
    pub fn name(self) -> &'static str {
        self.describe().0
    }

    fn describe(self) -> (&'static str, &'static str) {
        let found = Transform::ALL
            .iter()
            .find(|(_, transform, _)| *transform == self);
        found.map_or(("", ""), |(name, _, expected)| (*name, *expected))
    }

    /// The value after the transform; `None` for a value for which the transform is not defined.
    pub fn apply(self, value: &Value) -> Option<Value> {
        let text = value.as_str();
        Some(match self {
            Transform::Trim => text?.trim().into(),
            Transform::Lowercase => text?.to_lowercase().into(),
            Transform::Uppercase => text?.to_uppercase().into(),
            Transform::ToString => match value {
                Value::String(text) => text.clone().into(),
                Value::Number(_) | Value::Bool(_) => value.to_string().into(),
                _ => return None,
            },
            Transform::ToNumber => match value {
                Value::Number(_) => value.clone(),
                _ => Value::Number(serde_json::from_str::<Number>(text?.trim()).ok()?),
            },
            Transform::ToJson => value.to_string().into(),
            Transform::FromJson => {
                crate::json::parse(text?.as_bytes(), &crate::json::Limits::default()).ok()?
            }
            Transform::JoinCommas => {
                let parts: Option<Vec<&str>> =
                    value.as_array()?.iter().map(Value::as_str).collect();
                parts?.join(",").into()
            }
            Transform::SplitCommas => {
                let parts = text?.split(',').map(str::trim).filter(|_| text != Some(""));
                Value::Array(parts.map(Value::from).collect())
            }
            Transform::Wrap => Value::Array(vec![value.clone()]),
        })
    }
}

impl MappedInput {
    fn value(&self, value: &Value) -> Result<Value, MappingError> {
        let Some(transform) = self.transform else {
            return Ok(value.clone());
        };
        let (name, expected) = transform.describe();
        transform.apply(value).ok_or_else(|| MappingError {
            from: self.from.clone(),
            transform: name,
            expected,
        })
    }
}

impl InputMapping {
    /// Whether it has no entries, so that it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The driver's fields with their sources, in the order of DRIVER.md.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &MappedInput)> {
        self.entries
            .iter()
            .map(|(name, source)| (name.as_str(), source))
    }

    /// The first given input whose transform hosts don't know, and that transform.
    pub fn lacks_transform(&self, input: &Value) -> Option<(&str, &str)> {
        self.entries.iter().find_map(|(_, source)| {
            let transform = source.unknown_transform.as_deref()?;
            input.get(&source.from)?;
            Some((source.from.as_str(), transform))
        })
    }

    /// The input as the driver receives it. A field is absent if its source is absent.
    ///
    /// # Errors
    /// The first input for which its transform is not defined.
    pub fn apply(&self, input: Value) -> Result<Value, MappingError> {
        let Value::Object(members) = input else {
            return Ok(input);
        };
        if self.is_empty() {
            return Ok(Value::Object(members));
        }
        let mut mapped: Map<String, Value> = Map::new();
        for (name, source) in &self.entries {
            if let Some(value) = members.get(&source.from) {
                mapped.insert(name.clone(), source.value(value)?);
            }
        }
        let is_mapped = |name: &str| {
            let mut entries = self.iter();
            entries.any(|(own, source)| source.from == name || own == name)
        };
        mapped.extend(members.into_iter().filter(|(name, _)| !is_mapped(name)));
        Ok(Value::Object(mapped))
    }

    pub(super) fn read(field: &FieldReader<'_>) -> InputMapping {
        let mut mapping = InputMapping::default();
        if !matches!(field.content, Content::Mapping(_)) {
            let (name, kind) = (&field.name, field.kind());
            let message = format!("expected `{name}` to be a mapping, found {kind}");
            field.note(&codes::MAPPING_INVALID, message);
            return mapping;
        }
        let members = field.members().into_iter().flatten();
        let read = members.filter_map(|(key, member)| Some((key.to_owned(), source(&member)?)));
        mapping.entries.extend(read);
        mapping
    }
}

fn source(field: &FieldReader<'_>) -> Option<MappedInput> {
    match &field.content {
        Content::Text(from) if !from.is_empty() => Some(MappedInput {
            from: from.clone(),
            transform: None,
            unknown_transform: None,
        }),
        Content::Mapping(_) => field.whole(|fields| {
            let from = fields.require("from", |field| field.text());
            let transform = fields.take("transform");
            let transform = transform.and_then(|field| Some((field.text()?, field)));
            let known = transform
                .as_ref()
                .and_then(|(name, _)| Transform::parse(name));
            let unknown = transform.filter(|_| known.is_none());
            Some(MappedInput {
                from: from?.to_owned(),
                transform: known,
                unknown_transform: unknown.map(|(name, field)| warn_of_transform(name, &field)),
            })
        }),
        _ => {
            let message = format!(
                "expected `{}` to be an input's name or {{from, transform}}, found {}",
                field.name,
                field.kind()
            );
            field.refuse(&codes::MAPPING_INVALID, message)
        }
    }
}

/// Warns of a transform that hosts don't know. No host runs the driver's entry file, which may
/// define it.
fn warn_of_transform(found: &str, field: &FieldReader<'_>) -> String {
    let known: Vec<&str> = Transform::ALL.iter().map(|(name, ..)| *name).collect();
    let message = format!(
        "expected `{}` to be one of {}, found {found:?}: calls that give this input are not for this driver",
        field.name,
        known.join(", ")
    );
    let hint = nearest(found, known).map(|near| format!("did you mean {near}?"));
    field.note_with_hint(&codes::TRANSFORM_UNKNOWN, message, hint);
    found.to_owned()
}
