//! `errors`: what the statuses of a service mean for the tool.

use crate::codes;
use crate::diagnostic::Report;
use crate::source::{Field, Fields};
use crate::wording;

/// What one status of the service means. Words of the publisher, for the cause of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StatusError {
    /// From 400 to 599.
    pub status: u16,
    /// A code of the tool's own.
    pub code: String,
    /// What happened; at most 500 bytes, one line.
    pub message: Option<String>,
    /// Whether the call may succeed later as it is. `None`: as the status says by itself.
    pub retryable: Option<bool>,
    /// What to do; at most 500 bytes, one line.
    pub hint: Option<String>,
}

/// Bytes of a message and of a hint.
const MAX_TEXT_BYTES: usize = 500;
const MAX_CODE_BYTES: usize = 128;

pub(super) fn read(field: &Field<'_>, report: &mut Report<'_>) -> Vec<StatusError> {
    let members = report.read(field.members()).unwrap_or_default();
    let read = members.into_iter();
    read.filter_map(|(key, member)| one(key, &member, report))
        .collect()
}

/// `retry_statuses`: from 400 to 599, in any order.
pub(super) fn statuses(field: &Field<'_>, report: &mut Report<'_>) -> Vec<u16> {
    let items = report.read(field.items()).unwrap_or_default();
    let each = items.iter().filter_map(|item| {
        let status = report.read(item.integer(400..=599))?;
        u16::try_from(status).ok()
    });
    each.collect()
}

fn one(key: &str, member: &Field<'_>, report: &mut Report<'_>) -> Option<StatusError> {
    let status = key
        .parse()
        .ok()
        .filter(|status| (400..=599).contains(status));
    if status.is_none() || key.len() != 3 {
        let message = format!(
            "expected statuses from 400 to 599 as keys, found `{}`",
            member.name
        );
        report.add(&codes::HTTP_ERROR_INVALID, member.key_at, message);
        return None;
    }
    let mut fields = report.read(Fields::of(member))?;
    let code = report.read(fields.required("code"));
    let code = code.and_then(|field| code_of(&field, report));
    let message = fields.take("message");
    let message = message.and_then(|field| sentence(&field, report));
    let hint = fields.take("hint");
    let hint = hint.and_then(|field| sentence(&field, report));
    let retryable = fields.take("retryable");
    let retryable = retryable.and_then(|field| report.read(field.boolean()));
    report.unknown(fields);
    Some(StatusError {
        status: status?,
        code: code?,
        message,
        retryable,
        hint,
    })
}

/// `word` or `word:word`, as a component's errors have them.
fn code_of(field: &Field<'_>, report: &mut Report<'_>) -> Option<String> {
    let found = report.read(field.text())?;
    let (head, tail) = match found.split_once(':') {
        Some((head, tail)) => (head, Some(tail)),
        None => (found, None),
    };
    let lower = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let fits = found.len() <= MAX_CODE_BYTES
        && head.starts_with(|c: char| c.is_ascii_lowercase())
        && head.chars().all(lower)
        && head != "toolward"
        && tail.is_none_or(|tail| {
            !tail.is_empty() && tail.chars().all(|c| lower(c) || matches!(c, '.' | '-'))
        });
    if fits {
        return Some(found.to_owned());
    }
    let message = format!(
        "expected `{}` to be a code such as not_found or shop:sold-out, found {found:?}",
        field.name
    );
    report.add(&codes::HTTP_ERROR_INVALID, field.at, message);
    None
}

fn sentence(field: &Field<'_>, report: &mut Report<'_>) -> Option<String> {
    let found = report.read(field.text())?;
    if found.len() > MAX_TEXT_BYTES {
        let message = format!(
            "expected `{}` to have at most {MAX_TEXT_BYTES} bytes, found {}",
            field.name,
            found.len()
        );
        report.add(&codes::TEXT_LENGTH, field.at, message);
        return None;
    }
    wording::filled(field, false, report)
}
