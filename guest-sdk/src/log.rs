//! Log records to the host: structured, capped per call (1000 records by
//! default), redacted. Never printed: standard output is no channel of a driver.
//!
//! Outside a component (a driver's own tests) records go nowhere.

use alloc::string::String;

use serde::Serialize;

use crate::bindings::toolward::driver::log as wit;

/// How much a record matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For following a single step.
    Trace,
    /// For finding faults.
    Debug,
    /// For knowing what went on.
    Info,
    /// Something is odd, the call goes on.
    Warn,
    /// Something failed.
    Error,
}

/// A record without fields.
pub fn write(level: Level, message: &str) {
    send(level, message, None);
}

/// A record with fields; `fields` is a struct or map. Fields without a JSON
/// form are left out.
///
/// ```
/// use toolward_guest::log::{self, Level};
/// log::write_with(Level::Info, "row skipped", &serde_json::json!({"row": 7}));
/// ```
pub fn write_with(level: Level, message: &str, fields: &impl Serialize) {
    send(level, message, serde_json::to_string(fields).ok());
}

/// A record of level [`Level::Debug`].
pub fn debug(message: &str) {
    write(Level::Debug, message);
}

/// A record of level [`Level::Info`].
pub fn info(message: &str) {
    write(Level::Info, message);
}

/// A record of level [`Level::Warn`].
pub fn warn(message: &str) {
    write(Level::Warn, message);
}

/// A record of level [`Level::Error`].
pub fn error(message: &str) {
    write(Level::Error, message);
}

fn send(level: Level, message: &str, fields: Option<String>) {
    let level = match level {
        Level::Trace => wit::Level::Trace,
        Level::Debug => wit::Level::Debug,
        Level::Info => wit::Level::Info,
        Level::Warn => wit::Level::Warn,
        Level::Error => wit::Level::Error,
    };
    if cfg!(target_family = "wasm") {
        wit::write(level, message, fields.as_deref());
    }
}
