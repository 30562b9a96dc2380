//! The request of a declarative driver (`kind: http`): parsed and checked. The host makes it, under the grant.

use super::response::Response;
use super::template::{Body, Part, Template};
use crate::codes;
use crate::diagnostic::Report;
use crate::shared::word;
use crate::source::{Field, Fields};

/// One request, with placeholders.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HttpCall {
    /// Path and query on the one egress host.
    pub endpoint: Endpoint,
    /// The method; GET if not written.
    pub method: Method,
    /// Header names (lower case) and values.
    pub headers: Vec<(String, Template)>,
    /// The JSON body; `None`: no body. Without `body_template`, POST, PUT and PATCH send the input
    /// (AIP-31).
    pub body: Option<Body>,
    /// Where the output is in the response.
    pub response: Response,
    /// Secrets that the request needs and that no header places: the host puts each into the header
    /// that policy names for it. Only a transport of tools.json has any.
    pub secrets_by_policy: Vec<String>,
}

/// Path and query, split before anything is filled in, so that a value can't change the structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Path segments; each is percent-encoded after filling in.
    pub segments: Vec<Template>,
    /// Query parameters; names are literal.
    pub query: Vec<(String, Template)>,
}

/// A request method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// GET
    Get,
    /// HEAD
    Head,
    /// OPTIONS
    Options,
    /// POST
    Post,
    /// PUT
    Put,
    /// PATCH
    Patch,
    /// DELETE
    Delete,
}

impl Method {
    const ALL: &[(&str, Method)] = &[
        ("GET", Method::Get),
        ("HEAD", Method::Head),
        ("OPTIONS", Method::Options),
        ("POST", Method::Post),
        ("PUT", Method::Put),
        ("PATCH", Method::Patch),
        ("DELETE", Method::Delete),
    ];

    /// Reads a method in upper case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Method> {
        Method::ALL
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, method)| *method)
    }

    /// The method in upper case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        Method::ALL
            .iter()
            .find(|(_, method)| *method == self)
            .map_or("", |(name, _)| name)
    }

    /// Whether it only reads (RFC 9110, section 9.2.1): allowed by `requires.network` alone.
    #[must_use]
    pub fn is_safe(self) -> bool {
        matches!(self, Method::Get | Method::Head | Method::Options)
    }

    /// Whether the input is its body where nothing else is said. A body of DELETE has no meaning
    /// that servers agree about (RFC 9110, section 9.3.5).
    pub(crate) fn sends_input(self) -> bool {
        matches!(self, Method::Post | Method::Put | Method::Patch)
    }

    pub(crate) fn takes_body(self) -> bool {
        !self.is_safe()
    }
}

/// Headers that the host sets itself or that say something about the connection (RFC 9110, section
/// 7.6.1): a driver that set them could make host and upstream read two different requests.
const RESERVED: &[&str] = &[
    "host",
    "content-length",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
    "via",
    "forwarded",
];

impl HttpCall {
    pub(super) fn read(field: &Field<'_>, report: &mut Report<'_>) -> Option<HttpCall> {
        let mut fields = report.read(Fields::of(field))?;
        let endpoint = report.read(fields.required("endpoint")).and_then(|field| {
            let found = report.read(field.text())?;
            Endpoint::parse(found)
                .map_err(|message| report.add(&codes::HTTP_ENDPOINT_INVALID, field.at, message))
                .ok()
        });
        let known: Vec<&str> = Method::ALL.iter().map(|(name, _)| *name).collect();
        let method = match fields.take("method") {
            Some(field) => word(&field, &known, Method::parse, &codes::WRONG_VALUE, report),
            None => Some(Method::Get),
        };
        let headers = match fields.take("headers") {
            Some(field) => headers(&field, report),
            None => Vec::new(),
        };
        let template = fields.take("body_template");
        let input = method.filter(|method| template.is_none() && method.sends_input());
        let written = template.and_then(|field| {
            if let Some(method) = method.filter(|method| !method.takes_body()) {
                let message = format!(
                    "expected no `{}` with {}, found one",
                    field.name,
                    method.as_str()
                );
                report.add(&codes::HTTP_BODY_UNEXPECTED, field.key_at, message);
            }
            let read = Body::parse(&field.to_value());
            read.map_err(|(message, at)| {
                report.add(&codes::HTTP_TEMPLATE_INVALID, field.place(&at), message);
            })
            .ok()
        });
        let body = written.or_else(|| input.map(|_| Body::whole()));
        let response = match fields.take("response") {
            Some(field) => response(&field, report),
            None => Response::Whole,
        };
        report.unknown(fields);
        Some(HttpCall {
            endpoint: endpoint?,
            method: method?,
            headers,
            body,
            response,
            secrets_by_policy: Vec::new(),
        })
    }
}

impl Endpoint {
    /// Reads `/path/${input.x}?name=${input.y}`.
    ///
    /// # Errors
    /// What is wrong, for people.
    pub fn parse(text: &str) -> Result<Endpoint, String> {
        let wrong = |what: &str| {
            format!("expected `endpoint` to be a path on the egress host {what}, found {text:?}")
        };
        let (path, query) = text
            .split_once('?')
            .map_or((text, None), |(path, query)| (path, Some(query)));
        let Some(path) = path.strip_prefix('/').filter(|rest| !rest.starts_with('/')) else {
            return Err(wrong("that starts with one `/`"));
        };
        let read = |text: &str| {
            let template = Template::parse(text)?;
            if template.secrets().next().is_some() {
                return Err(wrong("without secrets"));
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
            let dots = part.to_ascii_lowercase().replace("%2e", ".");
            if matches!(dots.as_str(), "." | "..") || (part.is_empty() && index + 1 < parts.len()) {
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
}

/// Characters that may stand in a segment or query value as they are, and percent escapes.
fn is_url_text(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$'()*+,;:@%".contains(&b);
    let escapes = text.split('%').skip(1).all(|rest| {
        rest.get(..2)
            .is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
    });
    text.bytes().all(plain) && escapes
}

fn headers(field: &Field<'_>, report: &mut Report<'_>) -> Vec<(String, Template)> {
    let mut headers: Vec<(String, Template)> = Vec::new();
    for (key, member) in report.read(field.members()).unwrap_or_default() {
        let name = key.to_ascii_lowercase();
        let Some(value) = report.read(member.text()) else {
            continue;
        };
        if let Some(expected) = header_refusal(&name, value, &headers) {
            let message = format!("expected {expected} in `{}`, found {key:?}", field.name);
            report.add(&codes::HTTP_HEADER_INVALID, member.key_at, message);
            continue;
        }
        match Template::parse(value) {
            Ok(template) => headers.push((name, template)),
            Err(message) => report.add(&codes::HTTP_TEMPLATE_INVALID, member.at, message),
        }
    }
    headers
}

/// What a header would have to be to be sent, if it can't be. `name` is in lower case.
pub(crate) fn header_refusal(
    name: &str,
    value: &str,
    others: &[(String, Template)],
) -> Option<&'static str> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(token) {
        Some("a header name")
    } else if RESERVED.contains(&name) || name.starts_with("proxy-") {
        Some("a header that a driver may set")
    } else if others.iter().any(|(other, _)| other == name) {
        Some("each header once, whatever its case")
    } else if !value.bytes().all(|b| matches!(b, b' '..=b'~')) {
        Some("printable ASCII as value")
    } else {
        None
    }
}

fn response(field: &Field<'_>, report: &mut Report<'_>) -> Response {
    let Some(mut fields) = report.read(Fields::of(field)) else {
        return Response::Whole;
    };
    let whole = fields.take("pointer");
    let parts = fields.take("outputs");
    let members = parts.as_ref().map(Field::members);
    let response = match (whole, members) {
        (Some(whole), None) => pointer(&whole, report).map(Response::Pointer),
        (None, Some(Ok(members))) => {
            let read = members
                .into_iter()
                .filter_map(|(key, member)| Some((key.to_owned(), pointer(&member, report)?)));
            Some(Response::Outputs(read.collect()))
        }
        _ => {
            let message = format!(
                "expected `{}` to have either `pointer` or a mapping `outputs`, found something else",
                field.name
            );
            report.add(&codes::WRONG_VALUE, field.at, message);
            None
        }
    };
    report.unknown(fields);
    response.unwrap_or_default()
}

fn pointer(field: &Field<'_>, report: &mut Report<'_>) -> Option<String> {
    let found = report.read(field.text())?;
    let escapes = found
        .split('~')
        .skip(1)
        .all(|rest| rest.starts_with(['0', '1']));
    if escapes && (found.is_empty() || found.starts_with('/')) {
        return Some(found.to_owned());
    }
    let name = &field.name;
    let message =
        format!("expected `{name}` to be a JSON pointer such as /data/0, found {found:?}");
    report.add(&codes::WRONG_VALUE, field.at, message);
    None
}
