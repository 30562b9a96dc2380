//! The result of a call: its output or error, and the logs and captured output of its driver.

mod code;
mod error;

use std::io;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolward_contract::json::weight::{string, value};

pub use code::{ErrorClass, ErrorCode, WorldErrorCode};
pub(crate) use error::milliseconds;
pub use error::{CallError, Origin, shortened, too_much_memory};

/// The output of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// The value, valid against the contract's `outputs`.
    pub structured: Value,
    /// The content for a model; if empty, the host shows `structured` as text.
    pub content: Vec<Block>,
}

/// The log records and the captured output of a driver's last attempt, within its limits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Captured {
    /// Its log records.
    pub logs: Vec<LogRecord>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

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
    /// A JSON object of details; `null` without details. Text that is not a JSON object is kept as
    /// a string.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub fields: serde_json::Value,
}

/// The bytes of a driver's log record and of its copy for an observer.
pub(crate) fn record_bytes(record: &LogRecord) -> u64 {
    (size_of::<LogRecord>() as u64)
        .saturating_add(string(&record.message))
        .saturating_add(value(&record.fields))
        .saturating_mul(2)
}

/// The audience of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person.
    User,
    /// The model.
    Assistant,
}

/// Hints on a block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Annotations {
    /// The audience of the block; empty for no preference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audience: Vec<Role>,
    /// From 0 (least) to 1 (most important).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<f64>,
}

/// One part of an output. Untrusted content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// What it is.
    #[serde(flatten)]
    pub content: BlockContent,
    /// Hints on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Annotations>,
}

/// The content of a block; serialised with MCP's names, binary data as base64.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum BlockContent {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// Its bytes.
        #[serde(with = "base64")]
        data: Vec<u8>,
        /// Its media type.
        mime_type: String,
    },
    /// A sound.
    Audio {
        /// Its bytes.
        #[serde(with = "base64")]
        data: Vec<u8>,
        /// Its media type.
        mime_type: String,
    },
    /// A link to a resource.
    ResourceLink {
        /// The URI of the resource.
        uri: String,
        /// Its name.
        name: String,
        /// Its title for people.
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// What it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// Its media type.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Its size in bytes.
        #[serde(skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
    },
    /// A resource carried in the output.
    Resource {
        /// Its name as a URI.
        uri: String,
        /// Its media type.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Its content.
        #[serde(flatten)]
        body: ResourceBody,
    },
}

/// The content of an embedded resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes.
    #[serde(with = "base64")]
    Blob(Vec<u8>),
}

/// A writer that collects bytes up to a limit. A write beyond the limit fails.
#[derive(Debug)]
pub struct Limited {
    /// The written bytes.
    pub bytes: Vec<u8>,
    limit: u64,
}

impl Limited {
    /// A writer of at most `limit` bytes.
    pub fn new(limit: u64) -> Self {
        let bytes = Vec::new();
        Self { bytes, limit }
    }
}

impl io::Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len().saturating_add(bytes.len()) as u64 > self.limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes as text in base64.
pub mod base64 {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize as _, Deserializer, Serializer, de};

    /// Writes bytes as text.
    pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    /// Reads bytes from text.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(from)?;
        STANDARD.decode(text).map_err(de::Error::custom)
    }
}
