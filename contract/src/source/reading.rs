//! Fields as values or diagnostics: every problem of a document is reported, and the rest is read.

use serde_json::{Map, Value};
use toolward_fields::{Kind, Problem, nearest};

use super::{Content, Field, Fields, Node};
use crate::codes;
use crate::diagnostic::{Code, Position, Report, missing};

impl Report<'_> {
    /// What was read, or a diagnostic on why it could not be.
    pub(crate) fn read<T>(&mut self, read: Result<T, Problem<'_, Position>>) -> Option<T> {
        read.map_err(|problem| self.refuse(&problem)).ok()
    }

    /// The texts of a list, each with its place; items that are not text are reported and left out.
    pub(crate) fn texts<'n>(&mut self, field: &Field<'n>) -> Vec<(&'n str, Position)> {
        let items = self.read(field.items()).unwrap_or_default();
        let read = items.iter().filter_map(|item| {
            let text = self.read(item.text())?;
            Some((text, item.at))
        });
        read.collect()
    }

    /// [`Report::texts`] without their places; none if the field isn't there.
    pub(crate) fn strings(&mut self, field: Option<Field<'_>>) -> Vec<String> {
        let texts = field.map(|field| self.texts(&field)).unwrap_or_default();
        texts.into_iter().map(|(text, _)| text.to_owned()).collect()
    }

    /// A finite number that is not negative.
    pub(crate) fn amount(&mut self, field: &Field<'_>) -> Option<f64> {
        let Content::Number(number) = &field.content else {
            self.wrong_type(&field.name, "a number", field, None);
            return None;
        };
        let found = number.as_f64();
        let found = found.filter(|value| value.is_finite() && *value >= 0.0);
        if found.is_none() {
            let name = &field.name;
            let message = format!("expected `{name}` to be zero or more, found {number}");
            self.add(&codes::WRONG_VALUE, field.at, message);
        }
        found
    }

    /// The fields of a mapping, if it is there.
    pub(crate) fn fields<'n>(&mut self, field: Option<Field<'n>>) -> Option<Fields<'n>> {
        field.and_then(|field| self.read(Fields::of(&field)))
    }

    /// The fields of a mapping in a foreign JSON format, whose writers have `null` for what is absent.
    pub(crate) fn foreign<'n>(&mut self, field: &Field<'n>) -> Option<Fields<'n>> {
        self.read(Fields::of(field)).map(Fields::null_is_absent)
    }

    /// A mapping of the author's, as written; an empty one if it isn't there.
    pub(crate) fn mapping(&mut self, field: Option<&Field<'_>>) -> Map<String, Value> {
        let read = field.and_then(|field| self.read(field.members()).and(Some(field.to_value())));
        match read {
            Some(Value::Object(mapping)) => mapping,
            _ => Map::new(),
        }
    }

    /// Reports every field that was not taken.
    pub(crate) fn unknown(&mut self, fields: Fields<'_>) {
        for problem in fields.unknown() {
            self.refuse(&problem);
        }
    }

    /// [`Report::add`], with a hint if there is one.
    pub(crate) fn add_hinted(
        &mut self,
        code: &Code,
        at: Position,
        message: String,
        hint: Option<String>,
    ) {
        match hint {
            Some(hint) => self.add_with_hint(code, at, message, hint),
            None => self.add(code, at, message),
        }
    }

    fn refuse(&mut self, problem: &Problem<'_, Position>) {
        match problem {
            Problem::Missing { name, at, .. } => {
                self.add(&codes::MISSING_FIELD, *at, missing(name))
            }
            Problem::Unknown {
                key,
                name,
                at,
                known,
                absent,
                within,
            } => {
                let near = nearest(key, known.iter().map(String::as_str));
                if let Some(near) = near {
                    let meant = match within.as_str() {
                        "" => near.to_owned(),
                        within => format!("{within}.{near}"),
                    };
                    if absent.contains(&meant) {
                        self.misspelt(meant);
                    }
                }
                self.add_hinted(
                    &codes::UNKNOWN_FIELD,
                    *at,
                    format!("expected a field of the format, found `{name}`"),
                    near.map(|near| format!("did you mean `{near}`?")),
                );
            }
            Problem::Type {
                name,
                expected,
                found,
            } => {
                let hint = match (expected, &found.content) {
                    (Kind::Text, Content::Number(number)) => {
                        Some(format!("quote it: \"{number}\""))
                    }
                    (Kind::Bool, _) => Some("write true or false".to_owned()),
                    _ => None,
                };
                self.wrong_type(name, &expected.to_string(), found, hint);
            }
            Problem::Integer { name, range, found } => match &found.content {
                Content::Number(number) => {
                    let (from, to) = (range.start(), range.end());
                    let message = format!(
                        "expected `{name}` to be an integer from {from} to {to}, found {number}"
                    );
                    self.add(&codes::WRONG_VALUE, found.at, message);
                }
                _ => self.wrong_type(name, "an integer", found, None),
            },
        }
    }

    fn wrong_type(&mut self, name: &str, expected: &str, found: &Node, hint: Option<String>) {
        let what = match name {
            "" => "the document".to_owned(),
            name => format!("`{name}`"),
        };
        let message = format!("expected {what} to be {expected}, found {}", found.kind());
        self.add_hinted(&codes::WRONG_TYPE, found.at, message, hint);
    }
}
