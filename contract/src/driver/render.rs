//! Fills an input into the request of a declarative driver. Pure: the host adds the authority and the secrets.
//!
//! Each position is encoded for what it is, so that no input changes the request's structure: not
//! its host, not how many path segments or parameters it has, not where a header ends.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;

use serde_json::Value;
use toolward_report::codes;

use super::http::{Endpoint, HttpCall, Method};
use super::template::{Body, Part, Template};

/// Bytes of path and query: servers are asked to take 8000 (RFC 9110, section 4.1).
const MAX_URL_BYTES: usize = 8 << 10;
/// Bytes of all header values together, secrets left out. A template may repeat an input as often
/// as it likes: without a limit, 64 KiB of front matter turn 1 MiB of input into gigabytes.
const MAX_HEADER_BYTES: usize = 32 << 10;

/// A request with the input filled in, without authority and without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rendered {
    /// The method.
    pub method: Method,
    /// Path and query: ASCII, begins with one `/`, at most 8 KiB.
    pub path_and_query: String,
    /// Names (lower case, each once) and values; with `content-type` if there is a body.
    pub headers: Vec<(String, Vec<HeaderPiece>)>,
    /// The secrets that the host places by policy alone: see [`HttpCall::secrets_by_policy`].
    pub secrets_by_policy: Vec<String>,
    /// The JSON text of the body.
    pub body: Option<Vec<u8>>,
}

/// A piece of a header's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeaderPiece {
    /// Printable ASCII.
    Text(String),
    /// The secret with this slug: put in last, by the host.
    Secret(String),
}

codes! {
    /// Which rule an input broke.
    pub enum RenderErrorKind {
        InputMissing = "http-input-missing", "a placeholder has no value";
        InputType = "http-input-type", "a list, an object or null where text is needed";
        InputUnfit = "http-input-unfit", "the text would not stay in its position";
        TooLarge = "http-request-too-large", "the request would become too large";
    }
}

/// Why an input makes no request. Names the input and its position, never its value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RenderError {
    kind: RenderErrorKind,
    message: String,
}

impl RenderError {
    /// Which rule was broken.
    #[must_use]
    pub fn kind(&self) -> RenderErrorKind {
        self.kind
    }

    /// Stable kebab-case code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    fn missing(path: &[String], position: &str) -> RenderError {
        RenderError {
            kind: RenderErrorKind::InputMissing,
            message: format!(
                "expected the input `{}` for {position}, found none",
                path.join(".")
            ),
        }
    }

    fn unfit(path: &[String], position: &str, expected: &str) -> RenderError {
        RenderError {
            kind: RenderErrorKind::InputUnfit,
            message: format!(
                "expected the input `{}` to have {expected} for {position}, found something else",
                path.join(".")
            ),
        }
    }

    fn too_large(position: &str, limit: usize) -> RenderError {
        RenderError {
            kind: RenderErrorKind::TooLarge,
            message: format!("expected at most {limit} bytes in {position}, found more"),
        }
    }
}

impl HttpCall {
    /// The request that an input makes. `input` is what the driver receives, `mapping` applied;
    /// `body_bytes` is how long the body may be.
    ///
    /// # Errors
    /// An input that a placeholder needs is missing, has no text, or would not stay in its
    /// position; or the request would become too large.
    pub fn render(&self, input: &Value, body_bytes: usize) -> Result<Rendered, RenderError> {
        let path_and_query = url(&self.endpoint, input)?;
        let mut headers = headers(&self.headers, input)?;
        let body = match &self.body {
            Some(body) => {
                let mut text = Limited::new(body_bytes);
                write(body, input, &mut text)?;
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
            headers,
            secrets_by_policy: self.secrets_by_policy.clone(),
            body,
        })
    }

    /// The slugs of all secrets that the request needs.
    #[must_use]
    pub fn secrets(&self) -> BTreeSet<&str> {
        let placed = self.headers.iter().flat_map(|(_, value)| value.secrets());
        let by_policy = self.secrets_by_policy.iter().map(String::as_str);
        placed.chain(by_policy).collect()
    }

    /// The names of the inputs that its placeholders use.
    #[must_use]
    pub fn inputs(&self) -> BTreeSet<&str> {
        let url = self.endpoint.segments.iter();
        let url = url.chain(self.endpoint.query.iter().map(|(_, value)| value));
        let mut names: BTreeSet<&str> = url
            .chain(self.headers.iter().map(|(_, value)| value))
            .flat_map(Template::inputs)
            .collect();
        if let Some(body) = &self.body {
            body.inputs(&mut names);
        }
        names
    }
}

fn url(endpoint: &Endpoint, input: &Value) -> Result<String, RenderError> {
    let mut url = String::new();
    for template in &endpoint.segments {
        url.push('/');
        segment(template, input, &mut url)?;
    }
    let mut separator = '?';
    for (name, template) in &endpoint.query {
        if absent(template, input) {
            continue;
        }
        url.push(separator);
        url.push_str(name);
        if !template.parts.is_empty() {
            url.push('=');
        }
        for part in &template.parts {
            match part {
                Part::Literal(text) => push(&mut url, text)?,
                Part::Input(path) => {
                    encode(&text_of(input, path, "the query")?, &mut url)?;
                }
                Part::Secret(slug) => return Err(misplaced(slug)),
            }
        }
        separator = '&';
    }
    // Names and separators are the driver's own, and were not counted.
    push(&mut url, "")?;
    Ok(url)
}

/// One path segment. What an input puts in stays one, for readers that decode before they split too.
fn segment(template: &Template, input: &Value, url: &mut String) -> Result<(), RenderError> {
    const POSITION: &str = "the path";
    let mut decoded = Vec::new();
    let mut last = None;
    for part in &template.parts {
        match part {
            Part::Literal(text) => {
                decode(text, &mut decoded);
                push(url, text)?;
            }
            Part::Input(path) => {
                let text = text_of(input, path, POSITION)?;
                if text.contains(|c: char| matches!(c, '/' | '\\') || c.is_control()) {
                    let expected = "neither `/`, `\\` nor control characters";
                    return Err(RenderError::unfit(path, POSITION, expected));
                }
                decoded.extend_from_slice(text.as_bytes());
                encode(&text, url)?;
                last = Some(path);
            }
            Part::Secret(slug) => return Err(misplaced(slug)),
        }
    }
    match last {
        Some(path) if matches!(decoded.as_slice(), b"" | b"." | b"..") => Err(RenderError::unfit(
            path,
            POSITION,
            "more than nothing, `.` or `..`",
        )),
        _ => Ok(()),
    }
}

fn headers(
    templates: &[(String, Template)],
    input: &Value,
) -> Result<Vec<(String, Vec<HeaderPiece>)>, RenderError> {
    let mut left = MAX_HEADER_BYTES;
    let mut headers = Vec::with_capacity(templates.len());
    for (name, template) in templates {
        if absent(template, input) {
            continue;
        }
        let position = format!("the header `{name}`");
        let mut pieces: Vec<HeaderPiece> = Vec::new();
        for part in &template.parts {
            let text = match part {
                Part::Literal(text) => Cow::Borrowed(text.as_str()),
                Part::Input(path) => {
                    let text = text_of(input, path, &position)?;
                    if !text.bytes().all(|b| matches!(b, b' '..=b'~')) {
                        return Err(RenderError::unfit(path, &position, "printable ASCII only"));
                    }
                    text
                }
                Part::Secret(slug) => {
                    pieces.push(HeaderPiece::Secret(slug.clone()));
                    continue;
                }
            };
            left = left
                .checked_sub(text.len())
                .ok_or_else(|| RenderError::too_large("the headers", MAX_HEADER_BYTES))?;
            match pieces.last_mut() {
                Some(HeaderPiece::Text(before)) => before.push_str(&text),
                _ => pieces.push(HeaderPiece::Text(text.into_owned())),
            }
        }
        headers.push((name.clone(), pieces));
    }
    Ok(headers)
}

/// Writes a body as JSON. Keys are the driver's own; a member whose input is absent is left out.
fn write(body: &Body, input: &Value, out: &mut Limited) -> Result<(), RenderError> {
    match body {
        Body::Literal(value) => out.json(value),
        Body::Text(template) => match template.parts.as_slice() {
            [Part::Input(path)] => match lookup(input, path) {
                Some(value) => out.json(value),
                None => Err(RenderError::missing(path, "the body")),
            },
            parts => {
                let mut text = String::new();
                for part in parts {
                    let more = match part {
                        Part::Literal(text) => Cow::Borrowed(text.as_str()),
                        Part::Input(path) => text_of(input, path, "a text of the body")?,
                        Part::Secret(slug) => return Err(misplaced(slug)),
                    };
                    if more.len() > out.left.saturating_sub(text.len()) {
                        return Err(out.refuse());
                    }
                    text.push_str(&more);
                }
                out.json(&Value::String(text))
            }
        },
        Body::List(items) => {
            out.raw(b"[")?;
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.raw(b",")?;
                }
                write(item, input, out)?;
            }
            out.raw(b"]")
        }
        Body::Object(members) => {
            out.raw(b"{")?;
            let mut between: &[u8] = b"";
            for (key, member) in members {
                if matches!(member, Body::Text(template) if absent(template, input)) {
                    continue;
                }
                out.raw(between)?;
                between = b",";
                out.json(&Value::String(key.clone()))?;
                out.raw(b":")?;
                write(member, input, out)?;
            }
            out.raw(b"}")
        }
    }
}

/// Whether a template is one placeholder and nothing else, and its input is not there.
fn absent(template: &Template, input: &Value) -> bool {
    matches!(template.parts.as_slice(), [Part::Input(path)] if lookup(input, path).is_none())
}

fn lookup<'v>(input: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(input, |value, name| value.get(name))
}

/// The text of an input that stands among other text.
fn text_of<'v>(
    input: &'v Value,
    path: &[String],
    position: &str,
) -> Result<Cow<'v, str>, RenderError> {
    match lookup(input, path) {
        None => Err(RenderError::missing(path, position)),
        Some(Value::String(text)) => Ok(Cow::Borrowed(text)),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(Cow::Owned(value.to_string())),
        Some(other) => Err(RenderError {
            kind: RenderErrorKind::InputType,
            message: format!(
                "expected the input `{}` to be text, a number or a boolean for {position}, found {}",
                path.join("."),
                crate::source::json_kind(other)
            ),
        }),
    }
}

/// Reading a template leaves no such secret; this is for one that was put together otherwise.
fn misplaced(slug: &str) -> RenderError {
    RenderError {
        kind: RenderErrorKind::InputUnfit,
        message: format!("expected secrets only in headers, found `{slug}` elsewhere"),
    }
}

fn push(url: &mut String, text: &str) -> Result<(), RenderError> {
    if url.len().saturating_add(text.len()) > MAX_URL_BYTES {
        return Err(RenderError::too_large("path and query", MAX_URL_BYTES));
    }
    url.push_str(text);
    Ok(())
}

/// Percent-encodes everything but RFC 3986's unreserved characters (section 2.3).
fn encode(text: &str, url: &mut String) -> Result<(), RenderError> {
    const HEX: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F',
    ];
    for byte in text.bytes() {
        if url.len() > MAX_URL_BYTES {
            break;
        }
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            url.push(char::from(byte));
        } else {
            let digit = |half: u8| HEX.get(usize::from(half)).copied().unwrap_or_default();
            url.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    push(url, "")
}

/// Decodes percent-encoding; invalid escapes stay as they are.
fn decode(text: &str, out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        out.extend_from_slice(before.as_bytes());
        let escape = after.get(..2);
        match escape.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                out.push(b'%');
                rest = after;
            }
        }
    }
    out.extend_from_slice(rest.as_bytes());
}

/// A text that grows no further than it may.
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

    /// A value whose keys are text, as all are, can only fail to be written for its length.
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
