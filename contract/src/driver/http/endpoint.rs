//! `endpoint`: a path on the driver's host. Split before anything is filled in.

use crate::codes;
use crate::diagnostic::Code;
use crate::driver::template::{Part, Template};

/// Path and query, split before anything is filled in, so that a value can't change the structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Path segments, those of `base_url` first; each is percent-encoded after filling in.
    pub segments: Vec<Template>,
    /// Query parameters: literal names, as they stand in the URL. A value is one secret, or text
    /// without.
    pub query: Vec<(String, Template)>,
}

/// The rule that an endpoint breaks, and how.
pub(super) type Refusal = (&'static Code, String);

impl Endpoint {
    /// Reads `/path/${input.x}?name=${input.y}`.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub fn parse(text: &str) -> Result<Endpoint, String> {
        Endpoint::read(text).map_err(|(_, message)| message)
    }

    pub(super) fn read(text: &str) -> Result<Endpoint, Refusal> {
        let wrong = |what: &str| {
            let message = format!(
                "expected `endpoint` to be a path on the driver's host {what}, found {text:?}"
            );
            (&codes::HTTP_ENDPOINT_INVALID, message)
        };
        let (path, query) = text
            .split_once('?')
            .map_or((text, None), |(path, query)| (path, Some(query)));
        let Some(path) = path.strip_prefix('/').filter(|rest| !rest.starts_with('/')) else {
            return Err(wrong("that starts with one `/`"));
        };
        let read = |text: &str| {
            let template = Template::parse(text)
                .map_err(|message| (&codes::HTTP_ENDPOINT_INVALID, message))?;
            if let Some(slug) = template.secrets().next() {
                let message = format!(
                    "expected secrets in headers or `query_template`, found `{slug}` in `endpoint`"
                );
                return Err((&codes::HTTP_SECRET_POSITION, message));
            }
            let literal = |part: &Part| matches!(part, Part::Literal(text) if !is_url_text(text));
            if template.parts.iter().any(literal) {
                Err(wrong("with other characters percent-encoded"))
            } else {
                Ok(template)
            }
        };
        let mut segments = Vec::new();
        let parts: Vec<&str> = path.split('/').collect();
        for (index, part) in parts.iter().enumerate() {
            if is_dots(part) || (part.is_empty() && index + 1 < parts.len()) {
                return Err(wrong("without empty, `.` and `..` parts"));
            }
            segments.push(read(part)?);
        }
        let mut parameters = Vec::new();
        for pair in query.into_iter().flat_map(|query| query.split('&')) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if name.is_empty() || !is_url_text(name) || name.contains('$') {
                return Err(wrong("with literal query names"));
            }
            parameters.push((name.to_owned(), read(value)?));
        }
        Ok(Endpoint {
            segments,
            query: parameters,
        })
    }

    /// The same path below another one, of literal segments.
    pub(super) fn below(mut self, base: &[String]) -> Endpoint {
        let base = base.iter().map(|segment| Template {
            parts: vec![Part::Literal(segment.clone())],
        });
        self.segments.splice(0..0, base);
        self
    }
}

/// Whether a path segment means another one.
pub(super) fn is_dots(segment: &str) -> bool {
    let dots = segment.to_ascii_lowercase().replace("%2e", ".");
    matches!(dots.as_str(), "." | "..")
}

/// Characters that may stand in a segment or query value as they are, and percent escapes.
pub(super) fn is_url_text(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$'()*+,;:@%".contains(&b);
    let escapes = text.split('%').skip(1).all(|rest| {
        rest.get(..2)
            .is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
    });
    text.bytes().all(plain) && escapes
}
