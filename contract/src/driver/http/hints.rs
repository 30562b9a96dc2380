//! `streaming` and `rate_limit`: read, and without effect on a call.

use crate::codes;
use crate::diagnostic::Report;
use crate::shared::word;
use crate::source::{Field, Fields};

const TRANSPORTS: &[&str] = &["sse", "ndjson", "chunked"];

/// `streaming` of a driver, where `transport` has to be there, or of an entry.
pub(super) fn streaming(field: &Field<'_>, of_driver: bool, report: &mut Report<'_>) {
    let Some(mut fields) = report.read(Fields::of(field)) else {
        return;
    };
    let transport = match of_driver {
        true => report.read(fields.required("transport")),
        false => fields.take("transport"),
    };
    if let Some(transport) = transport {
        let known = |word: &str| TRANSPORTS.contains(&word).then_some(());
        word(&transport, TRANSPORTS, known, &codes::WRONG_VALUE, report);
    }
    for key in ["event_field", "terminator"] {
        if let Some(field) = fields.take(key) {
            report.read(field.text());
        }
    }
    report.unknown(fields);
}

pub(super) fn rate_limit(field: &Field<'_>, report: &mut Report<'_>) {
    let Some(mut fields) = report.read(Fields::of(field)) else {
        return;
    };
    for key in ["requests_per_minute", "burst"] {
        if let Some(field) = fields.take(key) {
            report.read(field.integer(1..=crate::json::MAX_SAFE_INTEGER));
        }
    }
    report.unknown(fields);
}
