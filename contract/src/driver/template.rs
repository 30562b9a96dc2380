//! Text with placeholders: `${input.NAME}`, `${context.NAME}`, `${secrets.NAME}`. Parsed here, not filled in.

mod body;
mod placeholder;
mod places;
mod reading;

use serde_json::Value;

pub use body::Body;
pub(crate) use places::Places;
pub(super) use reading::Reading;

/// Placeholders of one text: each takes many times the memory of its text, and each entry of a driver has a copy of
/// the driver's headers.
const MAX_PLACEHOLDERS: usize = 32;

/// A text with placeholders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// Literal text and placeholders in order; no two literals side by side.
    pub parts: Vec<Part>,
}

/// A piece of a [`Template`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text as it is.
    Literal(String),
    /// A value of the call.
    Value(Slot),
    /// `${secrets.NAME}`: bound last, in header values and query parameters only.
    Secret(String),
}

/// A placeholder for a value of the call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Slot {
    /// Where the value is looked up.
    pub source: SlotSource,
    /// The path to the value; of no parts, all of the source.
    pub path: Vec<String>,
    /// `| default('…')`: a text, a number or a boolean that stands in where there is no value, or
    /// null.
    pub default: Option<Value>,
    /// `| json`: the value's JSON text.
    pub json: bool,
}

/// Where the value of a [`Slot`] is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotSource {
    /// `${input.a.b}`: the input, as `mapping` gives it to the driver.
    Input,
    /// `${context.a.b}`: the context of the call.
    Context,
}

impl SlotSource {
    /// The word in a placeholder.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            SlotSource::Input => "input",
            SlotSource::Context => "context",
        }
    }
}

impl Slot {
    /// The value at a path, without default.
    #[must_use]
    pub fn new(source: SlotSource, path: Vec<String>) -> Slot {
        Slot {
            source,
            path,
            default: None,
            json: false,
        }
    }
}

impl Template {
    /// Reads a template. `$${` stands for `${`.
    ///
    /// # Errors
    /// What is wrong, for people: a placeholder that is not closed or not known.
    pub fn parse(text: &str) -> Result<Template, String> {
        Template::read(text).map(|(template, _)| template)
    }

    /// [`Template::parse`], and whether a secret is spelled as in version 0.1: `${secret.SLUG}`.
    pub(super) fn read(text: &str) -> Result<(Template, bool), String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        let mut old = false;
        let mut placeholders = 0_usize;
        while let Some((before, after)) = rest.split_once("${") {
            if let Some(before) = before.strip_suffix('$') {
                literal.push_str(before);
                literal.push_str("${");
                rest = after;
                continue;
            }
            literal.push_str(before);
            let end = placeholder::end(after)
                .ok_or_else(|| format!("expected `}}` after `${{` in {text:?}"))?;
            let (inner, after) = after.split_at_checked(end).unwrap_or_default();
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal)));
            }
            let (part, spelled_old) = placeholder::read(inner)?;
            parts.push(part);
            placeholders += 1;
            if placeholders > MAX_PLACEHOLDERS {
                return Err(format!(
                    "expected at most {MAX_PLACEHOLDERS} placeholders in one text"
                ));
            }
            old |= spelled_old;
            rest = after.strip_prefix('}').unwrap_or(after);
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok((Template { parts }, old))
    }

    /// The slugs of the secrets in it.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Secret(slug) => Some(slug.as_str()),
            _ => None,
        })
    }

    /// The names that it uses of a source: the first of each path.
    pub fn names(&self, source: SlotSource) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(move |part| match part {
            Part::Value(slot) if slot.source == source => slot.path.first().map(String::as_str),
            _ => None,
        })
    }
}
