//! What a running driver asks of the host: each request is one message. What answers it checks it against the grant,
//! and counts it.

use std::future::ready;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use serde_json::Value;
use toolward_contract::json as strict;
use toolward_egress::{BoxError, Error as EgressError, Timeouts};
use toolward_state::Error as StateError;
pub use toolward_state::{BoxFuture, BucketOperation, BucketReply};

pub use crate::bindings::toolward::driver::progress::Update as Progress;
use crate::exceeded::{DeadlinePassed, Exceeded};
use crate::invocation::ToolCall;
use crate::result::{CallError, LogLevel, LogRecord, Output};
use crate::violations::EndsCall;

/// Bytes that a report of progress takes in addition to its message.
pub const PROGRESS_REPORT_BYTES: u64 = 128;

/// Answers the requests of a call's driver. By default nothing is granted.
pub trait Imports: Send + Sync {
    /// What stands for a secret in requests, for this call.
    fn placeholder(&self, _slug: String) -> BoxFuture<'_, Result<String, SecretError>> {
        Box::pin(ready(Err(SecretError::Denied)))
    }

    /// The value of a secret.
    fn reveal(&self, _slug: String) -> BoxFuture<'_, Result<Vec<u8>, SecretError>> {
        Box::pin(ready(Err(SecretError::Denied)))
    }

    /// Stores a secret.
    fn store(&self, _slug: String, _value: Vec<u8>) -> BoxFuture<'_, Result<(), SecretError>> {
        Box::pin(ready(Err(SecretError::Denied)))
    }

    /// Reads or changes a bucket.
    fn bucket(&self, _request: BucketRequest) -> BoxFuture<'_, Result<BucketReply, BucketError>> {
        Box::pin(ready(Err(BucketError::Denied)))
    }

    /// Sends a request, and waits for the head of the response.
    fn http(&self, _request: HttpRequest) -> BoxFuture<'static, Result<HttpResponse, HttpError>> {
        Box::pin(ready(Err(HttpError::NoNetwork)))
    }

    /// Calls another tool, within what is left of the caller's budgets.
    fn call_tool(
        &self,
        call: ToolCall,
        _left: CallerBudget,
    ) -> BoxFuture<'_, Result<ToolReply, EndsCall>> {
        let refused = ToolReply::refused(CallError::not_granted(&call.tool));
        Box::pin(ready(Ok(refused)))
    }

    /// Whether any tool is granted: only then the sandbox measures what fuel is left at each request.
    fn has_tools(&self) -> bool {
        false
    }

    /// Passes a log record on. Returns it as it may be shown.
    ///
    /// # Errors
    /// The limit that the record exceeds.
    fn log(&self, message: LogMessage) -> Result<LogRecord, Exceeded> {
        Ok(message.into_record())
    }

    /// Passes progress on. Returns how many bytes the host holds for it.
    fn progress(&self, _progress: Progress) -> u64 {
        0
    }

    /// Bytes that the host holds for HTTP requests.
    fn http_bytes(&self) -> u64 {
        0
    }

    /// Takes the secrets that were used out of a text.
    fn redact(&self, _text: &mut String) {}

    /// Takes the secrets that were used out of the end of a text; `is_cut` if there was more before it.
    fn redact_end(&self, text: Vec<u8>, _is_cut: bool) -> Vec<u8> {
        text
    }
}

/// Why it got no secret.
#[derive(Debug)]
pub enum SecretError {
    /// It is not granted.
    Denied,
    /// It has no value.
    Missing,
    /// It could not be read or stored.
    Failed,
    /// The driver ends.
    Ends(GuestEnd),
}

/// A request to a bucket, by the bucket's name.
#[derive(Debug)]
pub struct BucketRequest {
    /// The bucket's name.
    pub bucket: String,
    /// What is done with it.
    pub operation: BucketOperation,
}

/// Why a bucket's operation has no reply.
#[derive(Debug)]
pub enum BucketError {
    /// It is not granted, or only for reading.
    Denied,
    /// The driver gets this text.
    Failed(String),
    /// The driver ends.
    Ends(GuestEnd),
}

impl From<StateError> for BucketError {
    fn from(error: StateError) -> Self {
        match error {
            StateError::ReadOnly => Self::Denied,
            // Both happen at the deadline only, and then the call is over.
            StateError::Busy | StateError::Deadline => {
                Self::Ends(GuestEnd::Deadline(DeadlinePassed))
            }
            StateError::TooLarge { .. }
            | StateError::Quota { .. }
            | StateError::NotANumber(_)
            | StateError::Unknown => Self::Failed(error.to_string()),
            // The driver does not learn what is wrong with the operator's disk.
            _ => {
                tracing::error!(%error, code = error.code(), "a key-value operation failed");
                Self::Failed("the host's key-value store failed".to_owned())
            }
        }
    }
}

/// What ends a driver at once.
#[derive(Debug)]
pub enum GuestEnd {
    /// Policy ends calls at a violation.
    Violation(EndsCall),
    /// A limit is exceeded.
    Exceeded(Exceeded),
    /// The call's deadline has passed.
    Deadline(DeadlinePassed),
}

impl From<EndsCall> for GuestEnd {
    fn from(ends: EndsCall) -> Self {
        Self::Violation(ends)
    }
}

impl From<GuestEnd> for wasmtime::Error {
    fn from(end: GuestEnd) -> Self {
        match end {
            GuestEnd::Violation(ends) => ends.into(),
            GuestEnd::Exceeded(exceeded) => exceeded.into(),
            GuestEnd::Deadline(passed) => passed.into(),
        }
    }
}

impl From<Exceeded> for GuestEnd {
    fn from(exceeded: Exceeded) -> Self {
        Self::Exceeded(exceeded)
    }
}

/// A request to send.
pub struct HttpRequest {
    /// The request. Its URI is absolute; `host` is not among its headers.
    pub request: http::Request<UnsyncBoxBody<Bytes, BoxError>>,
    /// The times that its parts may take.
    pub timeouts: Timeouts,
}

/// The response to an [`HttpRequest`].
pub type HttpResponse = http::Response<UnsyncBoxBody<Bytes, EgressError>>;

/// Why a request has no response.
#[derive(Debug)]
pub enum HttpError {
    /// No host is granted.
    NoNetwork,
    /// Too many files are open.
    Exceeded(Exceeded),
    /// The rules refused it, or it failed.
    Egress(EgressError),
}

/// What is left of the budgets of a driver that calls a tool.
#[derive(Debug, Clone, Copy)]
pub struct CallerBudget {
    /// Units of fuel.
    pub fuel: u64,
    /// Bytes of memory.
    pub memory_bytes: u64,
}

/// How a called tool ended, and what it took.
pub struct ToolReply {
    /// Its output, or why there is none.
    pub result: Result<Output, CallError>,
    /// Units of fuel that it consumed.
    pub fuel: u64,
    /// The most memory that it had, in bytes.
    pub peak_memory: u64,
}

impl ToolReply {
    /// An error before anything ran.
    pub fn refused(error: CallError) -> Self {
        Self {
            result: Err(error),
            fuel: 0,
            peak_memory: 0,
        }
    }
}

/// A log record of a driver.
#[derive(Debug)]
pub struct LogMessage {
    /// Its level.
    pub level: LogLevel,
    /// Its text.
    pub message: String,
    /// Its fields, as JSON text.
    pub fields: Option<String>,
}

impl LogMessage {
    /// The record, with its fields as a value.
    pub fn into_record(self) -> LogRecord {
        let limits = strict::Limits {
            bytes: 64 << 10,
            depth: 16,
            values: 1000,
        };
        LogRecord {
            level: self.level,
            message: self.message,
            fields: match self.fields {
                None => Value::Null,
                // Fields that are not a JSON object are kept as text.
                Some(text) => match strict::parse(text.as_bytes(), &limits) {
                    Ok(object @ Value::Object(_)) => object,
                    _ => Value::String(text),
                },
            },
        }
    }
}
