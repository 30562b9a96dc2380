//! The URL of a request: `base_url`, `endpoint` and `query_template`. They are split and encoded
//! before values are filled in, so that no value changes the structure.

use crate::capability::{Capability, Class};
use crate::codes;
use crate::diagnostic::Code;
use crate::driver::template::{Template, TemplatePart, TemplateReader};
use crate::source::FieldReader;
use crate::url_path::{has_valid_escapes, percent_decoded, percent_encoded};

/// How many bytes `base_url` may have, and how many parts its path may have. Each entry of the
/// driver has a copy of the path.
const MAX_BYTES: usize = 1024;
const MAX_SEGMENTS: usize = 16;

/// A literal https URL without query.
#[derive(Clone, Debug)]
pub(super) struct BaseUrl {
    /// `network:host[:port]`, literal.
    pub(super) host: Capability,
    /// The path segments, encoded as in the URL.
    pub(super) segments: Vec<String>,
}

impl BaseUrl {
    /// Reads `https://host[:port][/path][/]`.
    ///
    /// # Errors
    /// The expected form.
    pub(super) fn parse(text: &str) -> Result<BaseUrl, &'static str> {
        let rest = text.strip_prefix("https://").ok_or("to be an https URL")?;
        if text.len() > MAX_BYTES {
            return Err("to have at most 1024 bytes");
        }
        if text.contains("${") {
            return Err("to be literal, without placeholders");
        }
        if rest.contains(['?', '#']) {
            return Err("to have neither query nor fragment");
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err("to have no user");
        }
        let host = Capability::of(Class::Network, authority)
            .ok()
            .filter(|host| host.host().is_some_and(|host| host.is_literal()))
            .ok_or("to name one host, with or without port")?;
        let path = path.strip_suffix('/').unwrap_or(path);
        let segments: Vec<String> = match path {
            "" => Vec::new(),
            path => path.split('/').map(str::to_owned).collect(),
        };
        if segments.len() > MAX_SEGMENTS {
            return Err("to have at most 16 parts in its path");
        }
        for segment in &segments {
            if segment.is_empty() || is_dots(segment) {
                return Err("to have a path without empty, `.` and `..` parts");
            }
            if !is_url_text(segment) {
                return Err("to have other characters in its path percent-encoded");
            }
        }
        Ok(BaseUrl { host, segments })
    }
}

/// Path and query, split before anything is filled in, so that a value can't change the structure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Endpoint {
    /// Path segments, first the segments of `base_url`. Literal text is encoded as in the URL;
    /// values are percent-encoded when they are filled in.
    pub segments: Vec<Template>,
    /// Query parameters: literal names, encoded as in the URL, and values. A value is either one
    /// secret or text without secrets.
    pub query: Vec<(String, Template)>,
}

impl Endpoint {
    /// Reads `/path/${input.x}?name=${input.y}`.
    ///
    /// # Errors
    /// The problem, for people.
    pub fn parse(text: &str) -> Result<Endpoint, String> {
        Endpoint::read(text).map_err(|(_, message)| message)
    }

    pub(super) fn read(text: &str) -> Result<Endpoint, (&'static Code, String)> {
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
            let literal = |part: &TemplatePart| matches!(part, TemplatePart::Literal(text) if !is_url_text(text));
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

    /// The endpoint with literal segments before its path.
    pub(super) fn below(mut self, base: &[String]) -> Endpoint {
        let base = base.iter().map(|segment| Template {
            parts: vec![TemplatePart::Literal(segment.clone())],
        });
        self.segments.splice(0..0, base);
        self
    }
}

/// Whether a path segment is `.` or `..`, with escaped dots or without.
fn is_dots(segment: &str) -> bool {
    let dots = segment.to_ascii_lowercase().replace("%2e", ".");
    matches!(dots.as_str(), "." | "..")
}

/// Whether a text has only characters that a segment or query value may hold, and percent escapes.
fn is_url_text(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$'()*+,;:@%".contains(&b);
    text.bytes().all(plain) && has_valid_escapes(text)
}

/// Adds the parameters of `query_template` to the endpoint.
pub(super) fn read_query(
    field: &FieldReader<'_>,
    endpoint: &mut Endpoint,
    reading: &mut TemplateReader,
) {
    for (key, member) in field.members().into_iter().flatten() {
        let name = percent_encoded(key.as_bytes()).to_string();
        let known = endpoint
            .query
            .iter()
            .any(|(other, _)| percent_decoded(other.as_bytes()) == key.as_bytes());
        if key.is_empty() || key.contains("${") || known {
            let message = format!(
                "expected literal names, each once, in `{}`, found {key:?}",
                field.name
            );
            member.note_at_key(&codes::HTTP_QUERY_INVALID, message);
            continue;
        }
        let Some(template) = reading.template(&member) else {
            continue;
        };
        if let Some(slug) = template.secrets().next()
            && !(template.parts.len() == 1 && name == key)
        {
            let message = format!(
                "expected a secret as the whole value of a parameter with a plain name, found `{slug}` in `{}`",
                member.name
            );
            member.note(&codes::HTTP_SECRET_POSITION, message);
            continue;
        }
        endpoint.query.push((name, in_url(template)));
    }
}

/// The template with its literal text encoded for a URL.
fn in_url(mut template: Template) -> Template {
    for part in &mut template.parts {
        if let TemplatePart::Literal(text) = part {
            *text = percent_encoded(text.as_bytes()).to_string();
        }
    }
    if template.parts.is_empty() {
        // Without a part, the parameter would have no `=` and be only a name.
        template.parts.push(TemplatePart::Literal(String::new()));
    }
    template
}

/// Reports a secret that has more than one place in a request.
pub(super) fn one_place_each(
    endpoint: &Endpoint,
    headers: &[(String, Template)],
    field: &FieldReader<'_>,
) {
    let query = endpoint.query.iter().flat_map(|(_, value)| value.secrets());
    let in_headers = headers.iter().flat_map(|(_, value)| value.secrets());
    let mut seen: Vec<&str> = Vec::new();
    for slug in in_headers.chain(query) {
        if seen.contains(&slug) {
            let message = format!(
                "expected the secret `{slug}` in one place of `{}`, found it in two",
                field.name
            );
            field.note(&codes::HTTP_SECRET_POSITION, message);
        }
        seen.push(slug);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_a_literal_https_url() {
        for (text, host, path) in [
            ("https://a.example", "network:a.example", ""),
            ("https://a.example/", "network:a.example", ""),
            (
                "https://A.example:8443/v1/x%20y/",
                "network:a.example:8443",
                "v1 x%20y",
            ),
            ("https://[::1]:1/a", "network:[::1]:1", "a"),
        ] {
            let base = BaseUrl::parse(text).unwrap_or_else(|expected| panic!("{text}: {expected}"));
            assert_eq!(
                (base.host.to_string(), base.segments.join(" ")),
                (host.to_owned(), path.to_owned())
            );
        }
        for text in [
            "",
            "a.example",
            "http://a.example",
            "HTTPS://a.example",
            "https://",
            "https:///a",
            "https://*.example",
            "https://*",
            "https://u@a.example",
            "https://u:p@a.example",
            "https://a.example?x=1",
            "https://a.example/?",
            "https://a.example#a",
            "https://a.example/..",
            "https://a.example/a/../b",
            "https://a.example/%2e%2E/a",
            "https://a.example/./a",
            "https://a.example//a",
            "https://a.example/a//",
            "https://${input.host}",
            "https://a.example/${input.a}",
            "https://a.example/a b",
            "https://a.example\\@b.example",
            "https://a.example/a\\b",
            "https://a.example/%zz",
            "https://a.example:0",
            "https://a.example:99999",
            "https://a.example /",
            " https://a.example",
            "https://é.example\r\n",
        ] {
            assert!(BaseUrl::parse(text).is_err(), "{text}");
        }
    }
}
