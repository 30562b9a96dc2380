//! `headers` and `default_headers`: which names a driver may set, and where a value may have a secret.

use crate::codes;
use crate::driver::template::{Template, TemplatePart, TemplateReader};
use crate::header::{is_forbidden, may_precede_secret};
use crate::source::FieldReader;

/// Headers of a driver, and of one of its entries, which also has all of the driver's.
const MAX_HEADERS: usize = 32;

/// Headers that hold credentials, which come out of a secret only.
const CREDENTIALS: &[&str] = &["authorization", "cookie"];

pub(super) fn read(
    field: &FieldReader<'_>,
    reading: &mut TemplateReader,
) -> Vec<(String, Template)> {
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

/// A secret that does not stand alone, or behind literal text that the host sends before one.
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

/// `idempotency_key_header`: a header that nothing else sets, in lower case.
pub(super) fn idempotency_key(
    field: &FieldReader<'_>,
    headers: &[(String, Template)],
) -> Option<String> {
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

/// What is expected of a header that can't be sent. `name` is in lower case.
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
