//! `headers` and `default_headers`: which names a driver may set, and where a secret stands in a value.

use crate::codes;
use crate::diagnostic::Report;
use crate::driver::template::{Part, Reading, Template};
use crate::source::Field;

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

/// Headers that hold credentials, which come out of a secret only.
const CREDENTIALS: &[&str] = &["authorization", "cookie"];

pub(super) fn read(
    field: &Field<'_>,
    reading: &mut Reading,
    report: &mut Report<'_>,
) -> Vec<(String, Template)> {
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
        let Some(template) = reading.template(value, &member, report) else {
            continue;
        };
        if let Some(slug) = misplaced(&template) {
            let message = format!(
                "expected one secret at the end of `{}`, found `{slug}` elsewhere or another one",
                member.name
            );
            report.add(&codes::HTTP_SECRET_POSITION, member.at, message);
            continue;
        }
        headers.push((name, template));
    }
    headers
}

/// A secret that is not the last part of a value, or not the only one.
fn misplaced(template: &Template) -> Option<&str> {
    let (_, before) = template.parts.split_last()?;
    before.iter().find_map(|part| match part {
        Part::Secret(slug) => Some(slug.as_str()),
        _ => None,
    })
}

/// The headers of an entry: its own go before the driver's of the same name.
pub(super) fn merged(
    defaults: &[(String, Template)],
    own: Vec<(String, Template)>,
) -> Vec<(String, Template)> {
    let mut headers: Vec<(String, Template)> = defaults
        .iter()
        .filter(|(name, _)| !own.iter().any(|(other, _)| other == name))
        .cloned()
        .collect();
    headers.extend(own);
    headers
}

/// `idempotency_key_header`: a header of its own, in lower case.
pub(super) fn idempotency_key(
    field: &Field<'_>,
    headers: &[(String, Template)],
    report: &mut Report<'_>,
) -> Option<String> {
    let found = report.read(field.text())?;
    let name = found.to_ascii_lowercase();
    let refusal = match header_refusal(&name, "", headers) {
        Some(expected) => Some(expected),
        None if CREDENTIALS.contains(&name.as_str()) || name == "content-type" => {
            Some("a header that no other rule gives a value")
        }
        None => None,
    };
    if let Some(expected) = refusal {
        let message = format!("expected {expected} as `{}`, found {found:?}", field.name);
        report.add(&codes::HTTP_HEADER_INVALID, field.at, message);
        return None;
    }
    Some(name)
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
