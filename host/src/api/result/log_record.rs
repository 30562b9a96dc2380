//! Log records of drivers.

use serde::{Deserialize, Serialize};

/// The level of a log record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Finest detail.
    Trace,
    /// For the driver's author.
    Debug,
    /// Worth knowing.
    Info,
    /// Something is off.
    Warn,
    /// Something failed.
    Error,
}

/// One structured log record of a driver. Untrusted text: show it through
/// [`toolward_bundle::text::visible`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogRecord {
    /// The level that the driver gave.
    pub level: LogLevel,
    /// The message.
    pub message: String,
    /// A JSON object of details, as the driver wrote it; `null` without one.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub fields: serde_json::Value,
}
