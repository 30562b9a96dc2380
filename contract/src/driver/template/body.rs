//! A JSON body with placeholders.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Part, Slot, SlotSource, Template};
use crate::codes;
use crate::diagnostic::Code;

/// A JSON body with placeholders.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// A value without placeholders.
    Literal(Value),
    /// A text. If it is one placeholder and nothing else, the value is put in with its type.
    Text(Template),
    /// A list.
    List(Vec<Body>),
    /// An object, in order.
    Object(Vec<(String, Body)>),
}

/// Why a value is no body template.
pub(crate) struct BodyProblem {
    pub(crate) code: &'static Code,
    pub(crate) message: String,
    /// The JSON pointer of the text.
    pub(crate) pointer: String,
}

impl Body {
    /// The whole input, as it is.
    pub(crate) fn whole() -> Body {
        Body::Text(Template {
            parts: vec![Part::Value(Slot::new(SlotSource::Input, Vec::new()))],
        })
    }

    /// Reads a body template; keys are literal.
    ///
    /// # Errors
    /// What is wrong, for people, with the JSON pointer of the text.
    pub fn parse(value: &Value) -> Result<Body, (String, String)> {
        Body::read(value).map_err(|problem| (problem.message, problem.pointer))
    }

    pub(crate) fn read(value: &Value) -> Result<Body, BodyProblem> {
        Body::at(value, "")
    }

    fn at(value: &Value, pointer: &str) -> Result<Body, BodyProblem> {
        let fail = |code, message| BodyProblem {
            code,
            message,
            pointer: pointer.to_owned(),
        };
        Ok(match value {
            Value::String(text) => {
                let template = Template::parse(text)
                    .map_err(|message| fail(&codes::HTTP_TEMPLATE_INVALID, message))?;
                if let Some(slug) = template.secrets().next() {
                    let message = format!(
                        "expected secrets in headers or query parameters, found `{slug}` in the body"
                    );
                    return Err(fail(&codes::HTTP_SECRET_POSITION, message));
                }
                Body::Text(template)
            }
            Value::Array(items) => {
                let read = items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| Body::at(item, &format!("{pointer}/{index}")));
                Body::List(read.collect::<Result<_, _>>()?)
            }
            Value::Object(members) => {
                let read = members.iter().map(|(key, value)| {
                    let inner = format!("{pointer}/{}", crate::schema::escape(key));
                    Body::at(value, &inner).map(|body| (key.clone(), body))
                });
                Body::Object(read.collect::<Result<_, _>>()?)
            }
            other => Body::Literal(other.clone()),
        })
    }

    /// Whether one of its placeholders is the whole input.
    pub(crate) fn has_whole_input(&self) -> bool {
        let whole = |part: &Part| matches!(part, Part::Value(slot) if slot.source == SlotSource::Input && slot.path.is_empty());
        match self {
            Body::Literal(_) => false,
            Body::Text(template) => template.parts.iter().any(whole),
            Body::List(items) => items.iter().any(Body::has_whole_input),
            Body::Object(members) => members.iter().any(|(_, body)| body.has_whole_input()),
        }
    }

    /// Adds the names that it uses of a source: the first of each path.
    pub(crate) fn names<'b>(&'b self, source: SlotSource, names: &mut BTreeSet<&'b str>) {
        match self {
            Body::Literal(_) => {}
            Body::Text(template) => names.extend(template.names(source)),
            Body::List(items) => items.iter().for_each(|item| item.names(source, names)),
            Body::Object(members) => {
                members
                    .iter()
                    .for_each(|(_, body)| body.names(source, names));
            }
        }
    }
}
