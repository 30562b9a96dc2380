//! `headers` and `default_headers`: which names a driver may set, and where a secret stands in a value.

use crate::codes;
use crate::diagnostic::Report;
use crate::driver::template::{Part, Reading, Template};
use crate::header::{is_forbidden, may_precede_secret};
use crate::source::Field;

/// Headers of a driver, and of one of its entries. Each entry has those of the driver too.
const MAX_HEADERS: usize = 32;

/// Headers that hold credentials, which come out of a secret only.
const CREDENTIALS: &[&str] = &["authorization", "cookie"];

pub(super) fn read(
    field: &Field<'_>,
    reading: &mut Reading,
    report: &mut Report<'_>,
) -> Vec<(String, Template)> {
    let mut headers: Vec<(String, Template)> = Vec::new();
    for (index, (key, member)) in report
        .read(field.members())
        .unwrap_or_default()
        .into_iter()
        .enumerate()
    {
        if index == MAX_HEADERS {
            let message = format!("expected at most {MAX_HEADERS} headers in `{}`", field.name);
            report.add(&codes::HTTP_HEADER_INVALID, member.key_at, message);
            break;
        }
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
        if let Some(slug) = misplaced(&name, &template) {
            let message = format!(
                "expected `{}` to be a secret, alone or after a scheme and a space (in a cookie, a name and `=`), found `{slug}` elsewhere",
                member.name
            );
            report.add(&codes::HTTP_SECRET_POSITION, member.at, message);
            continue;
        }
        headers.push((name, template));
    }
    headers
}

/// A secret that does not stand alone, or behind literal text that the host sends before one.
fn misplaced<'t>(header: &str, template: &'t Template) -> Option<&'t str> {
    let slug = template.secrets().next()?;
    let fits = match template.parts.as_slice() {
        [Part::Secret(_)] => true,
        [Part::Literal(before), Part::Secret(_)] => may_precede_secret(header, before.as_bytes()),
        _ => false,
    };
    (!fits).then_some(slug)
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
