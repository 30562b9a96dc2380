//! Text and JSON with placeholders: `${input.NAME}`, `${context.NAME}`, `${secrets.NAME}`. This
//! module parses templates; `render` fills them in.

mod placeholder;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::capability::{Capability, Class};
use crate::codes;
use crate::diagnostic::{Code, FileReport, Position};
use crate::source::{Content, FieldReader, Node};

/// How many placeholders a text may have. Each takes many times the memory of its text, and each
/// entry of a driver has a copy of the driver's headers.
const MAX_PLACEHOLDERS: usize = 32;

/// A text with placeholders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// Literal text and placeholders in order; there are never two literals in a row.
    pub parts: Vec<TemplatePart>,
}

/// A piece of a [`Template`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePart {
    /// Text that stays unchanged.
    Literal(String),
    /// A value of the call.
    Value(TemplateSlot),
    /// `${secrets.NAME}`, only in header values and query parameters. It is filled in last.
    Secret(String),
}

/// A placeholder for a value of the call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TemplateSlot {
    /// The source of the value.
    pub source: SlotSource,
    /// The path to the value; empty for the whole source.
    pub path: Vec<String>,
    /// `| default('…')`: a text, a number or a boolean that replaces a missing value or null.
    pub default: Option<Value>,
    /// `| json`: the value's JSON text.
    pub json: bool,
}

/// The source of a [`TemplateSlot`]'s value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotSource {
    /// `${input.a.b}`: the input, after `mapping`.
    Input,
    /// `${context.a.b}`: the context of the call.
    Context,
}

impl SlotSource {
    /// The word in a placeholder.
    pub fn as_str(self) -> &'static str {
        match self {
            SlotSource::Input => "input",
            SlotSource::Context => "context",
        }
    }
}

impl TemplateSlot {
    /// A placeholder for the value at a path, without default.
    pub fn new(source: SlotSource, path: Vec<String>) -> TemplateSlot {
        TemplateSlot {
            source,
            path,
            default: None,
            json: false,
        }
    }
}

impl Template {
    /// Reads a template. `$${` means the text `${`.
    ///
    /// # Errors
    /// The problem, for people: a placeholder that is not closed or not known.
    pub fn parse(text: &str) -> Result<Template, String> {
        Template::read(text).map(|(template, _)| template)
    }

    /// As [`Template::parse`]; also returns whether a secret is spelled as in version 0.1:
    /// `${secret.SLUG}`.
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
                parts.push(TemplatePart::Literal(std::mem::take(&mut literal)));
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
            parts.push(TemplatePart::Literal(literal));
        }
        Ok((Template { parts }, old))
    }

    /// The slugs of the secrets in it.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            TemplatePart::Secret(slug) => Some(slug.as_str()),
            _ => None,
        })
    }

    /// The names that the template uses from a source: the first part of each path.
    pub fn names(&self, source: SlotSource) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(move |part| match part {
            TemplatePart::Value(slot) if slot.source == source => {
                slot.path.first().map(String::as_str)
            }
            _ => None,
        })
    }
}

/// A JSON body with placeholders.
#[derive(Clone, Debug, PartialEq)]
pub enum BodyTemplate {
    /// A value without placeholders.
    Literal(Value),
    /// A text. If it is only one placeholder, the value keeps its type.
    Text(Template),
    /// A list.
    List(Vec<BodyTemplate>),
    /// An object, in order.
    Object(Vec<(String, BodyTemplate)>),
}

/// The code and the message of a problem, and the JSON pointer of the text.
type BodyRefusal = (&'static Code, String, String);

impl BodyTemplate {
    /// The whole input, unchanged.
    pub(crate) fn whole() -> BodyTemplate {
        BodyTemplate::Text(Template {
            parts: vec![TemplatePart::Value(TemplateSlot::new(
                SlotSource::Input,
                Vec::new(),
            ))],
        })
    }

    /// Reads a body template; keys are literal.
    ///
    /// # Errors
    /// The problem, for people, and the JSON pointer of the text.
    pub fn parse(value: &Value) -> Result<BodyTemplate, (String, String)> {
        BodyTemplate::read(value, "").map_err(|(_, message, pointer)| (message, pointer))
    }

    /// Reads the part of a body template at a JSON pointer.
    pub(super) fn read(value: &Value, pointer: &str) -> Result<BodyTemplate, BodyRefusal> {
        let fail = |code, message| (code, message, pointer.to_owned());
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
                BodyTemplate::Text(template)
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                let read =
                    items.map(|(at, item)| BodyTemplate::read(item, &format!("{pointer}/{at}")));
                BodyTemplate::List(read.collect::<Result<_, _>>()?)
            }
            Value::Object(members) => {
                let read = members.iter().map(|(key, value)| {
                    let inner = format!("{pointer}/{}", crate::schema::escape(key));
                    BodyTemplate::read(value, &inner).map(|body| (key.clone(), body))
                });
                BodyTemplate::Object(read.collect::<Result<_, _>>()?)
            }
            other => BodyTemplate::Literal(other.clone()),
        })
    }

    /// The texts in it.
    pub(crate) fn templates(&self) -> Vec<&Template> {
        match self {
            BodyTemplate::Literal(_) => Vec::new(),
            BodyTemplate::Text(template) => vec![template],
            BodyTemplate::List(items) => items.iter().flat_map(Self::templates).collect(),
            BodyTemplate::Object(members) => {
                let members = members.iter();
                members.flat_map(|(_, body)| body.templates()).collect()
            }
        }
    }

    /// Whether one of its placeholders is the whole input.
    pub(crate) fn has_whole_input(&self) -> bool {
        let whole = |part: &TemplatePart| match part {
            TemplatePart::Value(slot) => slot.source == SlotSource::Input && slot.path.is_empty(),
            _ => false,
        };
        let templates = self.templates().into_iter();
        templates.flat_map(|template| &template.parts).any(whole)
    }
}

/// The positions of a request's placeholders in the document: for each name, the first text that
/// uses it.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlaceholderPlaces {
    names: BTreeMap<(SlotSource, String), Position>,
}

impl PlaceholderPlaces {
    /// The placeholders below a value, in every text that is a template.
    pub(super) fn of(node: &Node) -> Self {
        let mut places = Self::default();
        places.add(node);
        places
    }

    /// The position of the first use of a name; `None` if the name is not used.
    pub(super) fn find(&self, source: SlotSource, name: &str) -> Option<Position> {
        self.names.get(&(source, name.to_owned())).copied()
    }

    fn add(&mut self, node: &Node) {
        match &node.content {
            Content::Text(text) => {
                let Ok(template) = Template::parse(text) else {
                    return;
                };
                for source in [SlotSource::Input, SlotSource::Context] {
                    for name in template.names(source) {
                        let key = (source, name.to_owned());
                        self.names.entry(key).or_insert(node.at);
                    }
                }
            }
            Content::List(items) => items.iter().for_each(|item| self.add(item)),
            Content::Mapping(entries) => entries.iter().for_each(|entry| self.add(&entry.value)),
            _ => {}
        }
    }
}

/// Reads the templates of a driver. Collects the secrets that they declare, and notes uses of
/// version 0.1's form, which AIP-31's replaces.
#[derive(Default)]
pub(in crate::driver) struct TemplateReader {
    /// The secrets in placeholders with AIP-31's spelling, `${secrets.NAME}`: such a placeholder
    /// declares its secret.
    secrets: BTreeSet<String>,
    /// The uses of the form of version 0.1. `old_at` is the position of the first.
    old: Vec<&'static str>,
    old_at: Option<Position>,
}

impl TemplateReader {
    /// Reads a template that may contain secrets.
    pub(in crate::driver) fn template(&mut self, field: &FieldReader<'_>) -> Option<Template> {
        match Template::read(field.text()?) {
            Ok((template, old)) => {
                if old {
                    self.old("`${secret.SLUG}`", field.at);
                } else {
                    self.secrets.extend(template.secrets().map(str::to_owned));
                }
                Some(template)
            }
            Err(message) => field.refuse(&codes::HTTP_TEMPLATE_INVALID, message),
        }
    }

    /// Notes a use of the form of version 0.1.
    pub(in crate::driver) fn old(&mut self, what: &'static str, at: Position) {
        if !self.old.contains(&what) {
            self.old.push(what);
        }
        self.old_at.get_or_insert(at);
    }

    /// Warns once if the form of version 0.1 is used.
    pub(in crate::driver) fn warn_of_old_form(&self, report: &FileReport<'_>) {
        let Some(at) = self.old_at else {
            return;
        };
        let message = format!(
            "expected the form of AIP-31, found {}: the next version reads that form alone",
            self.old.join(", ")
        );
        report.add(&codes::HTTP_FORMAT_OLD, at, message);
    }

    /// The secrets that placeholders declare.
    pub(in crate::driver) fn secrets(&self) -> impl Iterator<Item = Capability> {
        let slugs = self.secrets.iter();
        slugs.filter_map(|slug| Capability::of(Class::Secret, slug).ok())
    }
}
