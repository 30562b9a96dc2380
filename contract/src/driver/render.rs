//! Fills the values of a call into the request of a declarative driver (`kind: http`). This module
//! has no side effects; the host adds the authority and the secrets.
//!
//! Each value is encoded for its position, so that no value changes the structure of the request:
//! the host, the number of path segments and parameters, or the end of a header. A value is never
//! read as a template.

mod url;

use std::borrow::Cow;
use std::io;

use serde_json::Value;
use toolward_support::report::codes;

use super::http::{HttpCall, Method};
use super::template::{BodyTemplate, SlotSource, Template, TemplatePart, TemplateSlot};
use crate::json::kind_name;

/// A request with the values filled in, without authority and without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rendered {
    /// The method.
    pub method: Method,
    /// Path and query: ASCII, starts with one `/`, at most 8 KiB.
    pub path_and_query: String,
    /// The query parameters whose value is a secret: the name, encoded as in the URL, and the
    /// secret's slug. `path_and_query` omits them.
    pub query_secrets: Vec<(String, String)>,
    /// Names (lower case, each once) and values; with `content-type` if the request has a body.
    pub headers: Vec<(String, Vec<HeaderPiece>)>,
    /// See [`HttpCall::idempotency_key_header`].
    pub idempotency_key_header: Option<String>,
    /// The secrets that the host places by policy: see [`HttpCall::secrets_by_policy`].
    pub secrets_by_policy: Vec<String>,
    /// The JSON text of the body.
    pub body: Option<Vec<u8>>,
}

/// A piece of a header's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderPiece {
    /// Printable ASCII.
    Text(String),
    /// The secret with this slug, which the host fills in last.
    Secret(String),
}

codes! {
    /// Which rule a value broke.
    pub enum RenderErrorKind {
        InputMissing = "http-input-missing", "a placeholder has no value";
        InputType = "http-input-type", "a list, an object or null where text is needed";
        InputUnfit = "http-input-unfit", "the text has characters or a form that its place in the request forbids";
        TooLarge = "http-request-too-large", "the request would become too large";
    }
}

/// The error for values from which no request can be made. It has the value's name and position,
/// but never the value itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RenderError {
    kind: RenderErrorKind,
    message: String,
}

impl RenderError {
    /// The broken rule.
    pub fn kind(&self) -> RenderErrorKind {
        self.kind
    }

    /// Stable kebab-case code.
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    fn new(kind: RenderErrorKind, message: String) -> Self {
        Self { kind, message }
    }

    fn of(kind: RenderErrorKind, slot: &TemplateSlot, position: &str, expected: &str) -> Self {
        let (source, path) = (slot.source.as_str(), slot.path.join("."));
        let message = format!("expected the {source} `{path}` {expected} for {position}");
        Self::new(kind, message)
    }

    fn missing(slot: &TemplateSlot, position: &str) -> Self {
        Self::of(RenderErrorKind::InputMissing, slot, position, "to be there")
    }

    fn unfit(slot: &TemplateSlot, position: &str, expected: &str) -> Self {
        let expected = format!("to have {expected}");
        Self::of(RenderErrorKind::InputUnfit, slot, position, &expected)
    }

    fn too_large(position: &str, limit: usize) -> Self {
        let message = format!("expected at most {limit} bytes in {position}, found more");
        Self::new(RenderErrorKind::TooLarge, message)
    }

    /// The error for a secret where none is allowed. A parsed template has no such secret; this is
    /// for a template that was built in code.
    fn misplaced(slug: &str) -> Self {
        let message =
            format!("expected secrets only in headers and as parameters, found `{slug}` elsewhere");
        Self::new(RenderErrorKind::InputUnfit, message)
    }
}

impl HttpCall {
    /// Makes the request from the values of a call. The input must have `mapping` applied already.
    /// `body_bytes` limits the length of the body.
    ///
    /// # Errors
    /// A value that a placeholder needs is missing, has no text form, or has characters or a form
    /// that its place in the request does not allow; or the request would become too large.
    pub fn render<'v>(
        &self,
        values: impl Into<Values<'v>>,
        body_bytes: usize,
    ) -> Result<Rendered, RenderError> {
        let values = values.into();
        let (path_and_query, query_secrets) = url::render(&self.endpoint, values)?;
        let mut headers = render_headers(&self.headers, values)?;
        let body = match &self.body {
            Some(body) => {
                let mut text = Limited::new(body_bytes);
                write_body(body, values, &mut text)?;
                if !headers.iter().any(|(name, _)| name == "content-type") {
                    let json = HeaderPiece::Text("application/json".to_owned());
                    headers.push(("content-type".to_owned(), vec![json]));
                }
                Some(text.bytes)
            }
            None => None,
        };
        Ok(Rendered {
            method: self.method,
            path_and_query,
            query_secrets,
            headers,
            idempotency_key_header: self.idempotency_key_header.clone(),
            secrets_by_policy: self.secrets_by_policy.clone(),
            body,
        })
    }
}

/// The values of a call.
#[derive(Clone, Copy, Debug)]
pub struct Values<'v> {
    /// The input, with `mapping` applied.
    pub input: &'v Value,
    /// The context of the call.
    pub context: &'v Value,
}

impl<'v> From<&'v Value> for Values<'v> {
    /// The values of a call without context.
    fn from(input: &'v Value) -> Self {
        let context = &Value::Null;
        Values { input, context }
    }
}

impl<'v> Values<'v> {
    /// The value of a placeholder. `None` if it has neither a value nor a default.
    fn of<'s: 'v>(self, slot: &'s TemplateSlot) -> Option<Cow<'v, Value>> {
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

    /// Whether a template is a single placeholder without a value or default.
    fn lacks(self, template: &Template) -> bool {
        matches!(template.parts.as_slice(), [TemplatePart::Value(slot)] if self.of(slot).is_none())
    }

    /// The text form of a value within other text.
    fn text(self, slot: &TemplateSlot, position: &str) -> Result<String, RenderError> {
        let value = self.of(slot);
        match value
            .ok_or_else(|| RenderError::missing(slot, position))?
            .as_ref()
        {
            Value::String(text) => Ok(text.clone()),
            value @ (Value::Number(_) | Value::Bool(_)) => Ok(value.to_string()),
            other => {
                let expected = format!(
                    "to be text, a number or a boolean and not {}",
                    kind_name(other)
                );
                let kind = RenderErrorKind::InputType;
                Err(RenderError::of(kind, slot, position, &expected))
            }
        }
    }
}

/// How many bytes all header values together may have, without secrets. A template may repeat an
/// input any number of times, so without a limit, 64 KiB of front matter could turn 1 MiB of input
/// into gigabytes.
const MAX_HEADER_BYTES: usize = 32 << 10;

fn render_headers(
    templates: &[(String, Template)],
    values: Values<'_>,
) -> Result<Vec<(String, Vec<HeaderPiece>)>, RenderError> {
    let mut left = MAX_HEADER_BYTES;
    let present = templates
        .iter()
        .filter(|(_, template)| !values.lacks(template));
    let headers = present.map(|(name, template)| {
        let value = header_value(name, template, values, &mut left)?;
        Ok((name.clone(), value))
    });
    headers.collect()
}

fn header_value(
    name: &str,
    template: &Template,
    values: Values<'_>,
    left: &mut usize,
) -> Result<Vec<HeaderPiece>, RenderError> {
    let position = format!("the header `{name}`");
    let mut pieces: Vec<HeaderPiece> = Vec::new();
    let last = template.parts.len().saturating_sub(1);
    for (index, part) in template.parts.iter().enumerate() {
        let text = match part {
            TemplatePart::Literal(text) => text.clone(),
            TemplatePart::Value(slot) => {
                let text = values.text(slot, &position)?;
                if !text.bytes().all(|b| matches!(b, b' '..=b'~')) {
                    return Err(RenderError::unfit(slot, &position, "printable ASCII only"));
                }
                // A header value has no spaces at its ends (RFC 9110, section 5.5).
                if (index == 0 && text.starts_with(' ')) || (index == last && text.ends_with(' ')) {
                    let expected = "no spaces at its ends";
                    return Err(RenderError::unfit(slot, &position, expected));
                }
                text
            }
            TemplatePart::Secret(slug) => {
                pieces.push(HeaderPiece::Secret(slug.clone()));
                continue;
            }
        };
        *left = left
            .checked_sub(text.len())
            .ok_or_else(|| RenderError::too_large("the headers", MAX_HEADER_BYTES))?;
        match pieces.last_mut() {
            Some(HeaderPiece::Text(before)) => before.push_str(&text),
            _ => pieces.push(HeaderPiece::Text(text)),
        }
    }
    Ok(pieces)
}

/// Writes a body as JSON. Keys come from the driver. A member without a value is left out.
fn write_body(
    body: &BodyTemplate,
    values: Values<'_>,
    out: &mut Limited,
) -> Result<(), RenderError> {
    match body {
        BodyTemplate::Literal(value) => out.json(value),
        BodyTemplate::Text(template) => match template.parts.as_slice() {
            [TemplatePart::Value(slot)] => match values.of(slot) {
                Some(value) => out.json(&value),
                None => Err(RenderError::missing(slot, "the body")),
            },
            parts => {
                let text = body_text(parts, values, out)?;
                out.json(&Value::String(text))
            }
        },
        BodyTemplate::List(items) => {
            out.raw(b"[")?;
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.raw(b",")?;
                }
                write_body(item, values, out)?;
            }
            out.raw(b"]")
        }
        BodyTemplate::Object(members) => {
            out.raw(b"{")?;
            let mut between: &[u8] = b"";
            for (key, member) in members {
                if matches!(member, BodyTemplate::Text(template) if values.lacks(template)) {
                    continue;
                }
                out.raw(between)?;
                between = b",";
                out.json(&Value::String(key.clone()))?;
                out.raw(b":")?;
                write_body(member, values, out)?;
            }
            out.raw(b"}")
        }
    }
}

fn body_text(
    parts: &[TemplatePart],
    values: Values<'_>,
    out: &Limited,
) -> Result<String, RenderError> {
    let mut text = String::new();
    for part in parts {
        let more = match part {
            TemplatePart::Literal(text) => Cow::Borrowed(text.as_str()),
            TemplatePart::Value(slot) => Cow::Owned(values.text(slot, "a text of the body")?),
            TemplatePart::Secret(slug) => return Err(RenderError::misplaced(slug)),
        };
        if more.len() > out.left.saturating_sub(text.len()) {
            return Err(out.refuse());
        }
        text.push_str(&more);
    }
    Ok(text)
}

/// A text of limited length.
struct Limited {
    bytes: Vec<u8>,
    left: usize,
    limit: usize,
}

impl Limited {
    fn new(limit: usize) -> Limited {
        Limited {
            bytes: Vec::new(),
            left: limit,
            limit,
        }
    }

    fn refuse(&self) -> RenderError {
        RenderError::too_large("the body", self.limit)
    }

    fn raw(&mut self, bytes: &[u8]) -> Result<(), RenderError> {
        io::Write::write_all(self, bytes).map_err(|_| self.refuse())
    }

    /// Writing a value with text keys can fail only because of its length.
    fn json(&mut self, value: &Value) -> Result<(), RenderError> {
        serde_json::to_writer(&mut *self, value).map_err(|_| self.refuse())
    }
}

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self
            .left
            .checked_sub(bytes.len())
            .ok_or(io::ErrorKind::FileTooLarge)?;
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
