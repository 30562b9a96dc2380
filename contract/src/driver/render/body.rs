//! The JSON text of a body.

use std::borrow::Cow;

use serde_json::Value;

use super::limited::Limited;
use super::values::Values;
use super::{RenderError, RenderErrorKind};
use crate::driver::template::{Body, Part};

/// Writes a body as JSON. Keys are the driver's own; a member whose value is absent is left out.
pub(super) fn write(body: &Body, values: Values<'_>, out: &mut Limited) -> Result<(), RenderError> {
    match body {
        Body::Literal(value) => out.json(value),
        Body::Text(template) => match template.parts.as_slice() {
            [Part::Value(slot)] => match values.of(slot) {
                Some(value) => out.json(&value),
                None => Err(RenderError::of(
                    RenderErrorKind::InputMissing,
                    slot,
                    "the body",
                    "to be there",
                )),
            },
            parts => {
                let text = text(parts, values, out)?;
                out.json(&Value::String(text))
            }
        },
        Body::List(items) => {
            out.raw(b"[")?;
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.raw(b",")?;
                }
                write(item, values, out)?;
            }
            out.raw(b"]")
        }
        Body::Object(members) => {
            out.raw(b"{")?;
            let mut between: &[u8] = b"";
            for (key, member) in members {
                if matches!(member, Body::Text(template) if values.lacks(template)) {
                    continue;
                }
                out.raw(between)?;
                between = b",";
                out.json(&Value::String(key.clone()))?;
                out.raw(b":")?;
                write(member, values, out)?;
            }
            out.raw(b"}")
        }
    }
}

fn text(parts: &[Part], values: Values<'_>, out: &Limited) -> Result<String, RenderError> {
    let mut text = String::new();
    for part in parts {
        let more = match part {
            Part::Literal(text) => Cow::Borrowed(text.as_str()),
            Part::Value(slot) => Cow::Owned(values.text(slot, "a text of the body")?),
            Part::Secret(slug) => return Err(RenderError::misplaced(slug)),
        };
        if more.len() > out.left.saturating_sub(text.len()) {
            return Err(out.refuse());
        }
        text.push_str(&more);
    }
    Ok(text)
}
