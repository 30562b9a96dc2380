//! Converts the request of a `rest-api` transport to a driver of `kind: http`.
//!
//! AML's `endpoint`, `METHOD /path/{name}?key={name}`, becomes the driver's request line. Only
//! AML's `{name}` becomes a placeholder; any other brace or `$` is refused.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use toolward_contract::capability::{Capability, Class};
use toolward_contract::driver::Method;

use super::{Note, Refused};
use crate::aml::{Behaviour, Credentials, Definition, Transport};
use crate::import::document::line;
use crate::records::references::{filled, object};

/// The time limit of a request if a definition states none.
const TIMEOUT_MS: u64 = 5000;
/// The most bytes of a message or a hint in `errors`.
const MAX_TEXT: usize = 500;

/// A request that the host can make.
pub(super) struct Request {
    pub(super) method: Method,
    /// `host` or `host:port`.
    pub(super) host: String,
    pub(super) base_url: String,
    /// `metadata.http` of the driver's entry.
    pub(super) http: Value,
    /// The name of the secret that the request needs.
    pub(super) secret: Option<String>,
    /// The header in which the secret is sent.
    pub(super) header: Option<String>,
}

impl Request {
    /// Returns the request of a definition; `None` if a person carries out the tool's calls. If the
    /// definition has no request, or this host can't make the request, adds a note with the reason
    /// and returns `None`.
    pub(super) fn of(
        definition: &Definition,
        tool: &str,
        notes: &mut Vec<Note>,
    ) -> Result<Option<Self>, Refused> {
        if definition.behaviour == Behaviour::Human {
            return Ok(None);
        }
        let Some(transport) = &definition.transport else {
            notes.push(Note::Function);
            return Ok(None);
        };
        if let Some(reason) = unsupported(transport) {
            notes.push(reason);
            return Ok(None);
        }
        let host = host(&transport.base_url)?;
        let wrong = |what: &str| Refused::Request(what.to_owned());
        let mut read = Line::parse(&transport.endpoint).map_err(wrong)?;
        let unplaced = unplaced(&definition.input, &read);
        let has_body = matches!(read.method, Method::Post | Method::Put | Method::Patch);
        if !unplaced.is_empty() && !has_body {
            for name in &unplaced {
                if !is_name(name) {
                    return Err(Refused::Request(format!(
                        "the input {:?} can't be named in a query",
                        line(name)
                    )));
                }
                let value = format!("${{input.{name}}}");
                if read.query.insert(name.clone(), value.into()).is_some() {
                    return Err(wrong("an input has the name of a parameter that is there"));
                }
            }
            notes.push(Note::InQuery(unplaced.join(", "), read.method.as_str()));
        }
        let secret = secret(&transport.credentials, tool, notes);
        let header = secret.as_ref().map(|(_, usual, _)| {
            let header = transport.credentials.header.as_deref();
            header.unwrap_or(usual).to_owned()
        });
        let headers = header.as_ref().zip(secret.as_ref());
        let errors = errors(definition, notes);
        let http = object! {
            endpoint = read.path;
            method = read.method.as_str();
            headers ? headers.map(|(header, (slug, _, before))| {
                json!({ header: format!("{before}${{secrets.{slug}}}") })
            });
            query_template ? filled(read.query.into());
            errors ? filled(errors.into());
            retry_statuses ? transport.on_status.as_ref().map(|listed| retried(listed, notes));
            timeout_ms = timeout_of(transport);
        };
        Ok(Some(Self {
            method: read.method,
            host,
            base_url: transport.base_url.clone(),
            http,
            secret: secret.map(|(slug, ..)| slug),
            header,
        }))
    }
}

/// Returns why this host can't make the request of a transport.
fn unsupported(transport: &Transport) -> Option<Note> {
    Some(match (&*transport.kind, &*transport.credentials.scheme) {
        ("rest-api", "iam-role") => Note::IamRole,
        ("rest-api", "oauth2") => Note::Oauth2,
        ("rest-api", _) => return None,
        ("lambda", _) => Note::Lambda,
        ("mcp", _) => Note::Mcp,
        ("message-queue", _) => Note::MessageQueue,
        ("database", _) => Note::Database,
        _ => Note::Grpc,
    })
}

/// Returns the host of a base URL, which must name exactly one. The driver's reader checks the rest
/// of the URL.
fn host(base_url: &str) -> Result<String, Refused> {
    let start = base_url.get(..7);
    if start.is_some_and(|start| start.eq_ignore_ascii_case("http://")) {
        return Err(Refused::Insecure);
    }
    if base_url.is_empty() {
        return Err(Refused::Request("`base_url` is missing".to_owned()));
    }
    let rest = base_url.strip_prefix("https://");
    let authority = rest.and_then(|rest| rest.split(['/', '?', '#']).next());
    let host = authority.and_then(|authority| Capability::of(Class::Network, authority).ok());
    let host = host.filter(|host| host.host().is_some_and(|host| host.is_literal()));
    match host {
        Some(host) => Ok(host.scope()),
        None => Err(Refused::Request(
            "`base_url` is not https:// and a host".to_owned(),
        )),
    }
}

/// Returns the inputs that are neither in the path nor in the query.
fn unplaced(input: &Value, line: &Line) -> Vec<String> {
    let properties = input.get("properties").and_then(Value::as_object);
    let names = properties.into_iter().flat_map(Map::keys);
    let unused = names.filter(|name| !line.used.contains(*name));
    unused.cloned().collect()
}

/// Returns the name of the secret that a request needs, the header in which such a secret is
/// usually sent, and the prefix of the header's value.
fn secret(
    credentials: &Credentials,
    tool: &str,
    notes: &mut Vec<Note>,
) -> Option<(String, &'static str, &'static str)> {
    let (header, before, is_said) = match credentials.scheme.as_str() {
        "bearer-token" => ("Authorization", "Bearer ", true),
        "service-account" => ("Authorization", "Bearer ", false),
        "api-key" => ("X-API-Key", "", false),
        _ => return None,
    };
    if !is_said && credentials.header.is_none() {
        notes.push(Note::HeaderAssumed(header));
    }
    let name = credentials.name.as_deref();
    let usable = |name: &&str| *name != "*" && Capability::of(Class::Secret, name).is_ok();
    let slug = name.filter(usable).unwrap_or(tool);
    Some((slug.to_owned(), header, before))
}

/// Returns the errors by status, in the form of `errors` in a driver.
fn errors(definition: &Definition, notes: &mut Vec<Note>) -> Map<String, Value> {
    let mut errors = Map::new();
    for meant in &definition.error_codes {
        let Some(status) = status(&meant.key) else {
            notes.push(Note::StatusIgnored(shortened(&meant.key, 40)));
            continue;
        };
        let text = |text: &Option<String>| text.as_ref().map(|text| shortened(text, MAX_TEXT));
        let error = object! {
            code = code(status);
            message ? text(&meant.meaning);
            hint ? text(&meant.agent_action);
        };
        errors.insert(meant.key.clone(), error);
    }
    errors
}

/// Returns the statuses in `on_status`: a reply with such a status makes the host repeat the
/// request. Adds a note for each text that is not a status.
fn retried(listed: &[String], notes: &mut Vec<Note>) -> Value {
    let each = listed.iter().filter_map(|key| {
        let status = status(key);
        if status.is_none() {
            notes.push(Note::StatusIgnored(shortened(key, 40)));
        }
        status
    });
    each.collect::<Vec<u16>>().into()
}

/// Returns the time limit of one request, without a check of the definition's value.
pub(super) fn timeout_of(transport: &Transport) -> Value {
    let given = transport.timeout_ms.clone();
    given.unwrap_or_else(|| TIMEOUT_MS.into())
}

fn status(key: &str) -> Option<u16> {
    let status = key.parse().ok();
    status.filter(|status| key.len() == 3 && (400..=599).contains(status))
}

/// Returns the code of a status: a known code, or a general one.
fn code(status: u16) -> String {
    let known = match status {
        401 => "auth_required",
        403 => "unauthorised",
        404 => "not_found",
        408 | 504 => "timeout",
        429 => "rate_limited",
        _ => return format!("aml:{status}"),
    };
    known.to_owned()
}

/// Returns the start of a text as one line of at most this many bytes.
fn shortened(text: &str, bytes: usize) -> String {
    let text = line(text);
    if text.len() <= bytes {
        return text;
    }
    let end = text.floor_char_boundary(bytes.saturating_sub('…'.len_utf8()));
    let start = text.get(..end).unwrap_or_default();
    format!("{start}…")
}

/// An endpoint as a request line of a driver.
struct Line {
    pub(super) method: Method,
    /// The path, with `${input.name}` for its inputs.
    pub(super) path: String,
    /// The parameters, with `${input.name}` for their inputs.
    pub(super) query: Map<String, Value>,
    /// The inputs that the path and the query use.
    pub(super) used: BTreeSet<String>,
}

impl Line {
    /// Reads an endpoint.
    ///
    /// # Errors
    /// A description of the problem, which completes a sentence.
    pub(super) fn parse(endpoint: &str) -> Result<Self, &'static str> {
        let (method, target) = endpoint
            .split_once(' ')
            .ok_or("`endpoint` is not a method, a space and a path")?;
        let method = Method::parse(method).ok_or("`endpoint` begins with no method in capitals")?;
        let (path, query) = match target.trim_start().split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target.trim_start(), None),
        };
        let mut line = Self {
            method,
            path: String::new(),
            query: Map::new(),
            used: BTreeSet::new(),
        };
        line.path = line.respelled(path)?;
        for pair in query.into_iter().flat_map(|query| query.split('&')) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let is_encoded = |text: &str| text.contains(['%', '+']);
            if name.is_empty() || name.contains(['{', '}', '$']) || is_encoded(pair) {
                return Err("the query of `endpoint` has other things than names and values");
            }
            let value = line.respelled(value)?;
            if line.query.insert(name.to_owned(), value.into()).is_some() {
                return Err("the query of `endpoint` has a name twice");
            }
        }
        Ok(line)
    }

    /// Rewrites `{name}` as `${input.name}`.
    fn respelled(&mut self, text: &str) -> Result<String, &'static str> {
        const BRACES: &str = "`endpoint` has braces around something that is no name, or a `$`";
        let mut spelled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').ok_or(BRACES)?;
            if !is_plain(before) || !is_name(name) {
                return Err(BRACES);
            }
            spelled.extend([before, "${input.", name, "}"]);
            self.used.insert(name.to_owned());
            rest = after;
        }
        if !is_plain(rest) {
            return Err(BRACES);
        }
        spelled.push_str(rest);
        Ok(spelled)
    }
}

fn is_plain(text: &str) -> bool {
    !text.contains(['$', '{', '}'])
}

/// Whether a placeholder can name an input.
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    !name.is_empty() && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_in_braces_become_inputs() {
        let line = Line::parse("GET /parcels/{number}/x-{part}?lang={lang}&v=2").unwrap();
        assert_eq!(line.method, Method::Get);
        assert_eq!(line.path, "/parcels/${input.number}/x-${input.part}");
        assert_eq!(
            Value::Object(line.query),
            json!({ "lang": "${input.lang}", "v": "2" })
        );
        assert_eq!(
            line.used.into_iter().collect::<Vec<_>>(),
            ["lang", "number", "part"]
        );
    }

    #[test]
    fn nothing_else_becomes_a_placeholder() {
        for endpoint in [
            "",
            "GET",
            "/path",
            "get /path",
            "FETCH /path",
            "GET /${secrets.KEY}",
            "GET /${input.a}",
            "GET /$${a}",
            "GET /{secrets.KEY}",
            "GET /{a|json}",
            "GET /{}",
            "GET /{a",
            "GET /a}",
            "GET /{{a}}",
            "GET /{a b}",
            "GET /a?{b}=c",
            "GET /a?b=%7Bc%7D",
            "GET /a?b=1&b=2",
            "GET /a?",
        ] {
            assert!(Line::parse(endpoint).is_err(), "{endpoint}");
        }
    }
}
