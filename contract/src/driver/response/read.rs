//! `response_extract`, and `response` of version 0.1.

use super::{JsonPath, Response};
use crate::codes;
use crate::diagnostic::Report;
use crate::driver::template::Reading;
use crate::source::{Field, Fields};

impl Response {
    pub(in crate::driver) fn read(
        fields: &mut Fields<'_>,
        reading: &mut Reading,
        report: &mut Report<'_>,
    ) -> Response {
        let old = fields.take("response");
        let extract = fields.take("response_extract");
        if let (Some(old), Some(extract)) = (&old, &extract) {
            let message = format!(
                "expected `{}` alone, found `{}` beside it",
                extract.name, old.name
            );
            report.add(&codes::HTTP_EXTRACT_INVALID, old.key_at, message);
        }
        if let Some(field) = extract {
            return path(&field, report).unwrap_or_default();
        }
        let Some(field) = old else {
            return Response::Whole;
        };
        reading.old("`response`", field.key_at);
        response(&field, report)
    }
}

fn path(field: &Field<'_>, report: &mut Report<'_>) -> Option<Response> {
    let found = report.read(field.text())?;
    match JsonPath::parse(found) {
        Ok(path) if path.is_whole() => Some(Response::Whole),
        Ok(path) => Some(Response::Extract(path)),
        Err(expected) => {
            let message = format!("expected {expected} in `{}`, found {found:?}", field.name);
            report.add(&codes::HTTP_EXTRACT_INVALID, field.at, message);
            None
        }
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
