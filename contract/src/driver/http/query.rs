//! `query_template`: parameters by their names, as text. Encoded here, so that no name or value is read as two.

use super::endpoint::Endpoint;
use crate::codes;
use crate::diagnostic::Report;
use crate::driver::template::{Part, Reading, Template};
use crate::percent::{percent_decoded, percent_encoded};
use crate::source::Field;

/// Adds the parameters to those of the endpoint.
pub(super) fn read(
    field: &Field<'_>,
    endpoint: &mut Endpoint,
    reading: &mut Reading,
    report: &mut Report<'_>,
) {
    for (key, member) in report.read(field.members()).unwrap_or_default() {
        let Some(value) = report.read(member.text()) else {
            continue;
        };
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
            report.add(&codes::HTTP_QUERY_INVALID, member.key_at, message);
            continue;
        }
        let Some(template) = reading.template(value, &member, report) else {
            continue;
        };
        if let Some(slug) = template.secrets().next()
            && !(template.parts.len() == 1 && name == key)
        {
            let message = format!(
                "expected a secret as the whole value of a parameter with a plain name, found `{slug}` in `{}`",
                member.name
            );
            report.add(&codes::HTTP_SECRET_POSITION, member.at, message);
            continue;
        }
        endpoint.query.push((name, in_url(template)));
    }
}

/// The literal text as it stands in a URL.
fn in_url(template: Template) -> Template {
    if template.parts.is_empty() {
        // A parameter without `=` is a name alone.
        return Template {
            parts: vec![Part::Literal(String::new())],
        };
    }
    let parts = template.parts.into_iter().map(|part| match part {
        Part::Literal(text) => Part::Literal(percent_encoded(text.as_bytes()).to_string()),
        other => other,
    });
    Template {
        parts: parts.collect(),
    }
}

/// Each secret has one place in a request: reports those with more.
pub(super) fn one_place_each(
    endpoint: &Endpoint,
    headers: &[(String, Template)],
    field: &Field<'_>,
    report: &mut Report<'_>,
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
            report.add(&codes::HTTP_SECRET_POSITION, field.at, message);
        }
        seen.push(slug);
    }
}
