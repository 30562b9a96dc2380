//! `mapping`: how the contract's input becomes the driver's. Renaming and a closed set of transforms, no expressions.

use serde_json::{Map, Number, Value};

use crate::codes;
use crate::diagnostic::Report;
use crate::source::{Content, Fields, Node, suggestion, text};

/// What a driver receives under another name than the contract's. Inputs not mentioned pass as they
/// are; an input that is mentioned passes only under its new names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mapping {
    entries: Vec<(String, Source)>,
}

/// Where a driver's field comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The contract's input.
    pub from: String,
    /// What is done to it on the way.
    pub transform: Option<Transform>,
}

/// The named transforms. Each fails on a value that it has no meaning for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transform {
    /// Text without white space at both ends.
    Trim,
    /// Text in lower case.
    Lowercase,
    /// Text in upper case.
    Uppercase,
    /// A number or boolean as text; text as it is.
    ToString,
    /// Text as a number; a number as it is.
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

/// Why an input can't be mapped.
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
    #[must_use]
    pub fn parse(name: &str) -> Option<Transform> {
        Transform::ALL
            .iter()
            .find(|(known, ..)| *known == name)
            .map(|(_, transform, _)| *transform)
    }

    fn describe(self) -> (&'static str, &'static str) {
        let found = Transform::ALL
            .iter()
            .find(|(_, transform, _)| *transform == self);
        found.map_or(("", ""), |(name, _, expected)| (*name, *expected))
    }

    /// The value after the transform; `None` for a value that it has no meaning for.
    #[must_use]
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

impl Mapping {
    /// Whether it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The driver's fields with their sources, in the order of DRIVER.md.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.entries
            .iter()
            .map(|(name, source)| (name.as_str(), source))
    }

    /// The input as the driver receives it. Fields whose source is absent are absent.
    ///
    /// # Errors
    /// The first input that its transform has no meaning for.
    pub fn apply(&self, input: Value) -> Result<Value, MappingError> {
        let Value::Object(members) = input else {
            return Ok(input);
        };
        if self.is_empty() {
            return Ok(Value::Object(members));
        }
        let mut mapped: Map<String, Value> = Map::new();
        for (name, source) in &self.entries {
            let Some(value) = members.get(&source.from) else {
                continue;
            };
            let value = match source.transform {
                None => value.clone(),
                Some(transform) => transform.apply(value).ok_or_else(|| {
                    let (transform, expected) = transform.describe();
                    MappingError {
                        from: source.from.clone(),
                        transform,
                        expected,
                    }
                })?,
            };
            mapped.insert(name.clone(), value);
        }
        for (name, value) in members {
            let used = self
                .entries
                .iter()
                .any(|(own, source)| source.from == name || *own == name);
            if !used {
                mapped.insert(name, value);
            }
        }
        Ok(Value::Object(mapped))
    }

    pub(super) fn read(node: &Node, label: &str, report: &mut Report<'_>) -> Mapping {
        let Content::Mapping(entries) = &node.content else {
            report.add(
                &codes::MAPPING_INVALID,
                node.at,
                format!("expected `{label}` to be a mapping, found {}", node.kind()),
            );
            return Mapping::default();
        };
        let mut mapping = Mapping::default();
        for entry in entries {
            let label = format!("{label}.{}", entry.key);
            if let Some(source) = source(&entry.value, &label, report) {
                mapping.entries.push((entry.key.clone(), source));
            }
        }
        mapping
    }
}

fn source(node: &Node, label: &str, report: &mut Report<'_>) -> Option<Source> {
    match &node.content {
        Content::Text(from) if !from.is_empty() => Some(Source {
            from: from.clone(),
            transform: None,
        }),
        Content::Mapping(_) => {
            let mut fields = Fields::of(node, label, report)?;
            let from = fields
                .required("from", report)
                .and_then(|node| text(node, &fields.name("from"), report));
            let named = fields.take("transform");
            let transform =
                named.and_then(|node| transform(node, &fields.name("transform"), report));
            fields.finish(report);
            Some(Source {
                from: from?.to_owned(),
                transform,
            })
        }
        _ => {
            let message = format!(
                "expected `{label}` to be an input's name or {{from, transform}}, found {}",
                node.kind()
            );
            report.add(&codes::MAPPING_INVALID, node.at, message);
            None
        }
    }
}

fn transform(node: &Node, label: &str, report: &mut Report<'_>) -> Option<Transform> {
    let name = text(node, label, report)?;
    let transform = Transform::parse(name);
    if transform.is_none() {
        let known: Vec<&str> = Transform::ALL.iter().map(|(name, ..)| *name).collect();
        let message = format!(
            "expected `{label}` to be one of {}, found {name:?}",
            known.join(", ")
        );
        match suggestion(name, known.iter().copied()) {
            Some(near) => report.add_with_hint(
                &codes::TRANSFORM_UNKNOWN,
                node.at,
                message,
                format!("did you mean {near}?"),
            ),
            None => report.add(&codes::TRANSFORM_UNKNOWN, node.at, message),
        }
    }
    transform
}
