//! The values that fill placeholders.

use std::borrow::Cow;

use serde_json::Value;

use super::{RenderError, RenderErrorKind};
use crate::driver::template::{Part, Slot, SlotSource, Template};

/// The values of a call.
#[derive(Clone, Copy, Debug)]
pub struct Values<'v> {
    /// What the driver receives, `mapping` applied.
    pub input: &'v Value,
    /// The context of the call.
    pub context: &'v Value,
}

impl<'v> From<&'v Value> for Values<'v> {
    /// An input, and no context.
    fn from(input: &'v Value) -> Self {
        const NONE: &Value = &Value::Null;
        Values {
            input,
            context: NONE,
        }
    }
}

impl<'v> Values<'v> {
    /// The value of a placeholder. `None`: it is not there, and the placeholder has no default.
    pub(super) fn of<'s: 'v>(self, slot: &'s Slot) -> Option<Cow<'v, Value>> {
        let source = match slot.source {
            SlotSource::Input => self.input,
            SlotSource::Context => self.context,
        };
        let found = slot
            .path
            .iter()
            .try_fold(source, |value, name| value.get(name.as_str()));
        let value = match (found, &slot.default) {
            (None | Some(Value::Null), Some(default)) => default,
            (found, _) => found?,
        };
        Some(match slot.json {
            true => Cow::Owned(Value::String(value.to_string())),
            false => Cow::Borrowed(value),
        })
    }

    /// Whether a template is one placeholder and nothing else, and its value is not there.
    pub(super) fn lacks(self, template: &Template) -> bool {
        matches!(template.parts.as_slice(), [Part::Value(slot)] if self.of(slot).is_none())
    }

    /// The text of a value that stands among other text.
    pub(super) fn text(self, slot: &Slot, position: &str) -> Result<String, RenderError> {
        let missing =
            || RenderError::of(RenderErrorKind::InputMissing, slot, position, "to be there");
        match self.of(slot).ok_or_else(missing)?.as_ref() {
            Value::String(text) => Ok(text.clone()),
            value @ (Value::Number(_) | Value::Bool(_)) => Ok(value.to_string()),
            other => {
                let expected = format!(
                    "to be text, a number or a boolean and not {}",
                    crate::source::json_kind(other)
                );
                let kind = RenderErrorKind::InputType;
                Err(RenderError::of(kind, slot, position, &expected))
            }
        }
    }
}
