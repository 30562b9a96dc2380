//! Log records to the host: structured, limited per call (1000 records by default), and redacted.
//! They are not written to standard output.
//!
//! Outside a component (in a driver's own tests), records are discarded.

use alloc::string::String;

use serde::Serialize;

use crate::bindings::toolward::driver::log as wit;

/// The level of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For tracing single steps.
    Trace,
    /// For debugging.
    Debug,
    /// For following what happens.
    Info,
    /// Something is unusual, but the call continues.
    Warn,
    /// Something failed.
    Error,
}

/// Writes a record without fields.
pub fn write(level: Level, message: &str) {
    send(level, message, None);
}

/// Writes a record with fields; `fields` is a struct or map. Fields without a JSON form are left
/// out.
///
/// ```
/// use toolward_guest::log::{self, Level};
/// log::write_with(Level::Info, "row skipped", &serde_json::json!({"row": 7}));
/// ```
pub fn write_with(level: Level, message: &str, fields: &impl Serialize) {
    send(level, message, serde_json::to_string(fields).ok());
}

/// Writes a record of level [`Level::Debug`].
pub fn debug(message: &str) {
    write(Level::Debug, message);
}

/// Writes a record of level [`Level::Info`].
pub fn info(message: &str) {
    write(Level::Info, message);
}

/// Writes a record of level [`Level::Warn`].
pub fn warn(message: &str) {
    write(Level::Warn, message);
}

/// Writes a record of level [`Level::Error`].
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
