//! The fields of a driver of `kind: http`: `base_url`, `default_headers` and others for all of its
//! requests, and `metadata.http` for one entry of `implements`.

use serde_json::{Map, Value};

use super::url::{BaseUrl, one_place_each, read_query};
use super::{Endpoint, HttpCall, Method, status_errors, statuses};
use crate::capability::{Capability, CapabilitySet};
use crate::codes;
use crate::driver::response::OutputPlace;
use crate::driver::template::{BodyTemplate, Template, TemplatePart, TemplateReader};
use crate::header::{is_forbidden, may_precede_secret};
use crate::json::MAX_SAFE_INTEGER;
use crate::shared;
use crate::source::{FieldReader, MappingReader, PlacedValue};

/// The fields that apply to all entries of a driver.
#[derive(Default)]
pub(in crate::driver) struct HttpDefaults {
    base: Option<BaseUrl>,
    /// Whether `base_url` is written, valid or not.
    has_base: bool,
    headers: Vec<(String, Template)>,
    method: Option<Method>,
    /// The reader of all templates of the driver.
    pub(in crate::driver) reading: TemplateReader,
    /// `base_url`, `default_method` and `default_headers`, as written.
    pub(in crate::driver) written: Map<String, Value>,
    /// `streaming` and `rate_limit`, as written: no call depends on them.
    pub(in crate::driver) hints: Map<String, Value>,
}

impl HttpDefaults {
    /// Takes the fields that only drivers of `kind: http` have.
    pub(in crate::driver) fn read(fields: &mut MappingReader<'_>) -> Self {
        let mut defaults = HttpDefaults::default();
        let written = &mut defaults.written;
        if let Some(field) = take_written("base_url", fields, written) {
            defaults.has_base = true;
            defaults.base = base(&field);
        }
        if let Some(field) = take_written("default_method", fields, written) {
            defaults.method = field.word(Method::WORDS, &codes::WRONG_VALUE);
        }
        if let Some(field) = take_written("default_headers", fields, written) {
            defaults.headers = read_headers(&field, &mut defaults.reading);
        }
        let hints = &mut defaults.hints;
        if let Some(field) = take_written("streaming", fields, hints) {
            streaming(&field, true);
        }
        if let Some(field) = take_written("rate_limit", fields, hints) {
            rate_limit(&field);
        }
        defaults
    }

    /// The part of `network.egress` that the requests use: the host of `base_url`. In the form of
    /// version 0.1, without `base_url`, it is the only host in the list.
    pub(in crate::driver) fn egress(
        &mut self,
        egress: PlacedValue<CapabilitySet>,
        root: &FieldReader<'_>,
    ) -> CapabilitySet {
        let PlacedValue { value: hosts, at } = egress;
        if let Some(base) = &self.base {
            let host = &base.host;
            if !hosts.covers_one(host) {
                let message = format!(
                    "expected `network.egress` to hold the host of `base_url`, found {hosts}"
                );
                let hint = format!("write `network: {{ egress: [\"{}\"] }}`", host.scope());
                root.report
                    .add_with_hint(&codes::HTTP_EGRESS, at, message, hint);
            }
            let others = hosts.iter().filter(|one| !one.covers(host));
            let others: Vec<String> = others.map(Capability::scope).collect();
            if hosts.covers_one(host) && !others.is_empty() {
                let message = format!(
                    "expected a field that has an effect, found {} in `network.egress`: requests go to the host of `base_url`",
                    others.join(", ")
                );
                root.report
                    .add(&codes::DRIVER_FIELD_WITHOUT_EFFECT, at, message);
            }
            return CapabilitySet::from_iter([host.clone()]);
        }
        if self.has_base {
            return hosts;
        }
        let literal = |one: &Capability| one.host().is_some_and(|host| host.is_literal());
        if hosts.len() != 1 || !hosts.iter().all(literal) {
            let message = format!(
                "expected `base_url`, or exactly one host without wildcard in `network.egress`, found {hosts}"
            );
            root.report.add(&codes::HTTP_EGRESS, at, message);
        }
        self.reading.old("no `base_url`", root.at);
        hosts
    }
}

/// Takes a field, and adds its value to `written`.
fn take_written<'n>(
    key: &'static str,
    fields: &mut MappingReader<'n>,
    written: &mut Map<String, Value>,
) -> Option<FieldReader<'n>> {
    let field = fields.take(key)?;
    written.insert(key.to_owned(), field.to_value());
    Some(field)
}

fn base(field: &FieldReader<'_>) -> Option<BaseUrl> {
    let found = field.text()?;
    let refuse = |expected| {
        let message = format!("expected `{}` {expected}, found {found:?}", field.name);
        field.note(&codes::HTTP_BASE_URL_INVALID, message);
    };
    BaseUrl::parse(found).map_err(refuse).ok()
}

impl HttpCall {
    pub(in crate::driver) fn read(
        field: &FieldReader<'_>,
        defaults: &mut HttpDefaults,
    ) -> Option<Self> {
        field.whole(|fields| Self::read_fields(fields, field, defaults))
    }

    fn read_fields(
        fields: &mut MappingReader<'_>,
        field: &FieldReader<'_>,
        defaults: &mut HttpDefaults,
    ) -> Option<Self> {
        let mut endpoint = endpoint(fields, defaults);
        let method = match fields.take("method") {
            Some(field) => field.word(Method::WORDS, &codes::WRONG_VALUE),
            None if defaults.has_base => Some(defaults.method.unwrap_or(Method::Post)),
            None => Some(defaults.method.unwrap_or(Method::Get)),
        };
        let reading = &mut defaults.reading;
        let own = fields.or_default("headers", |field| read_headers(field, reading));
        // A header of the entry replaces the driver's header of the same name.
        let is_own = |name: &str| own.iter().any(|(other, _)| other == name);
        let mut headers = defaults.headers.clone();
        headers.retain(|(name, _)| !is_own(name));
        headers.extend(own);
        if let Some(field) = fields.take("query_template") {
            let mut nowhere = Endpoint::default();
            let endpoint = endpoint.as_mut().unwrap_or(&mut nowhere);
            read_query(&field, endpoint, reading);
        }
        if let Some(endpoint) = &endpoint {
            one_place_each(endpoint, &headers, field);
        }
        let body = body(fields, method);
        let response = OutputPlace::read(fields, reading);
        let idempotency_key_header = fields.read("idempotency_key_header", |field| {
            idempotency_key(field, &headers)
        });
        fields.or_default("streaming", |field| streaming(field, false));
        if body.is_none() {
            // A `content-type` applies only to requests with a body, so it is not sent here.
            headers.retain(|(name, _)| name != "content-type");
        }
        Some(HttpCall {
            errors: fields.or_default("errors", status_errors),
            retry_statuses: fields.take("retry_statuses").map(|field| statuses(&field)),
            timeout: shared::milliseconds(fields, "timeout_ms"),
            endpoint: endpoint?,
            method: method?,
            headers,
            body,
            response,
            idempotency_key_header,
            secrets_by_policy: Vec::new(),
        })
    }
}

fn endpoint(fields: &mut MappingReader<'_>, defaults: &mut HttpDefaults) -> Option<Endpoint> {
    let field = fields.required("endpoint")?;
    match Endpoint::read(field.text()?) {
        Ok(endpoint) => {
            if !endpoint.query.is_empty() {
                defaults.reading.old("a query in `endpoint`", field.at);
            }
            let base = defaults.base.as_ref().map(|base| base.segments.as_slice());
            Some(endpoint.below(base.unwrap_or_default()))
        }
        Err((code, message)) => field.refuse(code, message),
    }
}

/// Reads `body_template`. Without it, the body is the input, for a method that sends the input.
fn body(fields: &mut MappingReader<'_>, method: Option<Method>) -> Option<BodyTemplate> {
    let Some(field) = fields.take("body_template") else {
        let input = method.filter(|method| method.sends_input());
        return input.map(|_| BodyTemplate::whole());
    };
    if let Some(method) = method.filter(|method| method.is_safe()) {
        let (name, method) = (&field.name, method.as_str());
        let message = format!("expected no `{name}` with {method}, found one");
        field.note_at_key(&codes::HTTP_BODY_UNEXPECTED, message);
    }
    let refuse = |(code, message, pointer): (_, String, String)| {
        field.report.add(code, field.place(&pointer), message);
    };
    BodyTemplate::read(&field.to_value(), "")
        .map_err(refuse)
        .ok()
}

/// Checks `streaming`, which has no effect. In a driver it must have `transport`, in an entry it
/// may.
fn streaming(field: &FieldReader<'_>, of_driver: bool) {
    field.whole(|fields| {
        for key in ["event_field", "terminator"] {
            fields.take(key).map(|field| field.text());
        }
        let transport = match of_driver {
            true => fields.required("transport"),
            false => fields.take("transport"),
        };
        let words = [("sse", ()), ("ndjson", ()), ("chunked", ())];
        transport?.word(&words, &codes::WRONG_VALUE)
    });
}

fn rate_limit(field: &FieldReader<'_>) {
    field.whole(|fields| {
        let mut rate = |key| fields.integer(key, 1..=MAX_SAFE_INTEGER);
        Some((rate("requests_per_minute"), rate("burst")))
    });
}

/// How many headers `default_headers` may have, and how many `headers` of an entry.
const MAX_HEADERS: usize = 32;

/// Headers for credentials, in which no idempotency key is sent.
const CREDENTIALS: &[&str] = &["authorization", "cookie"];

fn read_headers(field: &FieldReader<'_>, reading: &mut TemplateReader) -> Vec<(String, Template)> {
    let mut headers: Vec<(String, Template)> = Vec::new();
    for (index, (key, member)) in field.members().into_iter().flatten().enumerate() {
        if index == MAX_HEADERS {
            let message = format!("expected at most {MAX_HEADERS} headers in `{}`", field.name);
            member.note_at_key(&codes::HTTP_HEADER_INVALID, message);
            break;
        }
        let name = key.to_ascii_lowercase();
        let Some(value) = member.text() else {
            continue;
        };
        if let Some(expected) = header_refusal(&name, value, &headers) {
            let message = format!("expected {expected} in `{}`, found {key:?}", field.name);
            member.note_at_key(&codes::HTTP_HEADER_INVALID, message);
            continue;
        }
        let Some(template) = reading.template(&member) else {
            continue;
        };
        if let Some(slug) = misplaced(&name, &template) {
            let message = format!(
                "expected `{}` to be a secret, alone or after a scheme and a space (in a cookie, a name and `=`), found `{slug}` elsewhere",
                member.name
            );
            member.note(&codes::HTTP_SECRET_POSITION, message);
            continue;
        }
        headers.push((name, template));
    }
    headers
}

/// The secret in a header's value, if it is misplaced: it must be the whole value, or follow only a
/// literal text that may precede a secret.
fn misplaced<'t>(header: &str, template: &'t Template) -> Option<&'t str> {
    let slug = template.secrets().next()?;
    let fits = match template.parts.as_slice() {
        [TemplatePart::Secret(_)] => true,
        [TemplatePart::Literal(before), TemplatePart::Secret(_)] => {
            may_precede_secret(header, before.as_bytes())
        }
        _ => false,
    };
    (!fits).then_some(slug)
}

/// Reads `idempotency_key_header`: the name, in lower case, of a header that is not set otherwise.
fn idempotency_key(field: &FieldReader<'_>, headers: &[(String, Template)]) -> Option<String> {
    let found = field.text()?;
    let name = found.to_ascii_lowercase();
    let has_own_rule = CREDENTIALS.contains(&name.as_str()) || name == "content-type";
    let own_rule = has_own_rule.then_some("a header that no other rule gives a value");
    if let Some(expected) = header_refusal(&name, "", headers).or(own_rule) {
        let message = format!("expected {expected} as `{}`, found {found:?}", field.name);
        return field.refuse(&codes::HTTP_HEADER_INVALID, message);
    }
    Some(name)
}

/// What was expected instead of this header, if it can't be sent. `name` is in lower case.
pub(crate) fn header_refusal(
    name: &str,
    value: &str,
    others: &[(String, Template)],
) -> Option<&'static str> {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if name.is_empty() || !name.bytes().all(token) {
        Some("a header name")
    } else if name == "content-length" || is_forbidden(name) {
        Some("a header that a driver may set")
    } else if others.iter().any(|(other, _)| other == name) {
        Some("each header once, whatever its case")
    } else if !value.bytes().all(|b| matches!(b, b' '..=b'~')) {
        Some("printable ASCII as value")
    } else {
        None
    }
}
