//! What records take in the host's memory, besides the values that they are made of
//! ([`toolward_contract::json::weight`]).

use std::mem::size_of;

use toolward_contract::json::weight::{string, value};

use super::LogRecord;

/// A record that a driver logged, and its copy on the way to an observer.
pub(crate) fn record(record: &LogRecord) -> u64 {
    (size_of::<LogRecord>() as u64)
        .saturating_add(string(&record.message))
        .saturating_add(value(&record.fields))
        .saturating_mul(2)
}
