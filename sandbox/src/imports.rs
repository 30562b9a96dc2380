//! The requests of a running driver to the host ([`Imports`]). The host checks each request against
//! the grant, and counts it. The second half of this module implements the imports of the driver's
//! world with these requests.

mod keyvalue;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use serde_json::Value;
use toolward_contract::json as strict;
use toolward_egress::{BoxError, Error as EgressError, Timeouts};
use toolward_state::Error as StateError;
pub use toolward_state::{BoxFuture, BucketOperation, BucketReply};
use wasmtime::Result;
use wasmtime::component::{HasData, Linker, ResourceTable};

use crate::bindings::Driver;
pub use crate::bindings::toolward::driver::progress::Update as Progress;
use crate::bindings::toolward::driver::{log, progress, secrets, tools, types};
use crate::exceeded::{DeadlinePassed, Exceeded};
use crate::invocation::ToolCall;
use crate::limiter::Limiter;
use crate::result::{CallError, LogLevel, LogRecord, Output, record_bytes};
use crate::v0_1::convert;
use crate::violations::EndsCall;

/// Bytes of memory that a progress report takes in addition to its message.
pub const PROGRESS_REPORT_BYTES: u64 = 128;

/// Answers the requests of a call's driver.
pub trait Imports: Send + Sync {
    /// Returns the placeholder that stands for a secret in HTTP requests of this call.
    fn placeholder(&self, slug: String) -> BoxFuture<'_, Result<String, SecretError>>;

    /// Returns the value of a secret.
    fn reveal(&self, slug: String) -> BoxFuture<'_, Result<Vec<u8>, SecretError>>;

    /// Stores a secret.
    fn store(&self, slug: String, value: Vec<u8>) -> BoxFuture<'_, Result<(), SecretError>>;

    /// Reads or changes a bucket.
    fn bucket(&self, request: BucketRequest) -> BoxFuture<'_, Result<BucketReply, BucketError>>;

    /// Sends a request, and waits for the head of the response.
    fn http(&self, request: HttpRequest) -> BoxFuture<'static, Result<HttpResponse, HttpError>>;

    /// Calls another tool, within the rest of the caller's budgets.
    fn call_tool(
        &self,
        call: ToolCall,
        left: CallerBudget,
    ) -> BoxFuture<'_, Result<ToolReply, EndsCall>>;

    /// Whether any tool is granted. Only then does the sandbox read the remaining fuel at each host
    /// call.
    fn has_tools(&self) -> bool;

    /// Redacts a log record, and passes it on. Returns the redacted record.
    ///
    /// # Errors
    /// The limit that the record exceeds.
    fn log(&self, message: LogMessage) -> Result<LogRecord, Exceeded>;

    /// Passes a progress report on, or drops it. Returns the bytes of memory that the host holds
    /// for it.
    fn progress(&self, progress: Progress) -> u64;

    /// Returns the bytes of memory that the host holds for HTTP requests.
    fn http_bytes(&self) -> u64;

    /// Redacts the used secrets in a text.
    fn redact(&self, text: &mut String);

    /// Redacts the used secrets in the end of a text. `is_cut` states whether the start of the text
    /// is missing.
    fn redact_end(&self, text: Vec<u8>, is_cut: bool) -> Vec<u8>;
}

/// Why a request for a secret failed.
#[derive(Debug)]
pub enum SecretError {
    /// The secret is not granted.
    Denied,
    /// The secret has no value.
    Missing,
    /// The secret could not be read or stored.
    Failed,
    /// The driver ends.
    Ends(GuestEnd),
}

/// A request to a bucket, by the bucket's name.
#[derive(Debug)]
pub struct BucketRequest {
    /// The bucket's name.
    pub bucket: String,
    /// The operation on the bucket.
    pub operation: BucketOperation,
}

/// Why a bucket operation failed.
#[derive(Debug)]
pub enum BucketError {
    /// The bucket is not granted, or only for reading.
    Denied,
    /// The operation failed. The driver gets this text.
    Failed(String),
    /// The driver ends.
    Ends(GuestEnd),
}

impl From<StateError> for BucketError {
    fn from(error: StateError) -> Self {
        match error {
            StateError::ReadOnly => Self::Denied,
            // Both occur only at the deadline, when the call is over.
            StateError::Busy | StateError::Deadline => {
                Self::Ends(GuestEnd::Deadline(DeadlinePassed))
            }
            StateError::TooLarge { .. }
            | StateError::Quota { .. }
            | StateError::NotANumber(_)
            | StateError::Unknown => Self::Failed(error.to_string()),
            // Details about the operator's disk are not shown to the driver.
            _ => {
                tracing::error!(%error, code = error.code(), "a key-value operation failed");
                Self::Failed("the host's key-value store failed".to_owned())
            }
        }
    }
}

/// Why a driver is ended at once.
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
    /// Its timeouts.
    pub timeouts: Timeouts,
}

/// The response to an [`HttpRequest`].
pub type HttpResponse = http::Response<UnsyncBoxBody<Bytes, EgressError>>;

/// Why a request has no response.
#[derive(Debug)]
pub enum HttpError {
    /// No host is granted.
    NoNetwork,
    /// Too many files and connections are open.
    Exceeded(Exceeded),
    /// The rules refused it, or it failed.
    Egress(EgressError),
}

/// The rest of the budgets of a driver that calls a tool.
#[derive(Debug, Clone, Copy)]
pub struct CallerBudget {
    /// Units of fuel.
    pub fuel: u64,
    /// Bytes of memory.
    pub memory_bytes: u64,
}

/// The result of a called tool, and the resources that it used.
pub struct ToolReply {
    /// Its output or error.
    pub result: Result<Output, CallError>,
    /// Units of fuel that it consumed.
    pub fuel: u64,
    /// Its peak memory, in bytes.
    pub peak_memory: u64,
}

impl ToolReply {
    /// The reply if the call was refused before anything ran.
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
    /// Converts the message to a record, with the fields as a value.
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

/// Adds each import that [`Imports`] answers.
pub(crate) fn add_to_linker<T: Send + 'static>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> View<'_>,
) -> Result<()> {
    Driver::add_to_linker::<T, Viewed>(linker, view)?;
    keyvalue::add_to_linker(linker, view)
}

/// The parts of the guest's store that imports use, borrowed for one host call.
pub(crate) struct View<'a> {
    pub(crate) imports: &'a dyn Imports,
    pub(crate) table: &'a mut ResourceTable,
    pub(crate) limiter: &'a mut Limiter,
    pub(crate) meter: &'a mut Meter,
    pub(crate) logs: &'a mut Vec<LogRecord>,
}

struct Viewed;

impl HasData for Viewed {
    type Data<'a> = View<'a>;
}

/// The fuel accounting of nested calls, which spend their caller's fuel.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    /// The fuel that the guest had left when it last called the host. Updated only if tools are
    /// granted.
    pub(crate) fuel: u64,
    /// The fuel that called tools have spent, and that is not yet subtracted from the guest's.
    pub(crate) owed: u64,
}

impl types::Host for View<'_> {}

impl progress::Host for View<'_> {
    fn report(&mut self, update: progress::Update) -> Result<()> {
        let held = self.imports.progress(update);
        self.limiter.held.keep(held);
        Ok(())
    }
}

impl log::Host for View<'_> {
    fn write(&mut self, level: log::Level, message: String, fields: Option<String>) -> Result<()> {
        let record = self.imports.log(LogMessage {
            level: match level {
                log::Level::Trace => LogLevel::Trace,
                log::Level::Debug => LogLevel::Debug,
                log::Level::Info => LogLevel::Info,
                log::Level::Warn => LogLevel::Warn,
                log::Level::Error => LogLevel::Error,
            },
            message,
            fields,
        })?;
        self.limiter.held.keep(record_bytes(&record));
        self.logs.push(record);
        Ok(())
    }
}

impl secrets::Host for View<'_> {
    async fn placeholder(&mut self, slug: String) -> Result<Result<String, secrets::SecretError>> {
        secret(self.imports.placeholder(slug).await)
    }

    async fn reveal(&mut self, slug: String) -> Result<Result<Vec<u8>, secrets::SecretError>> {
        secret(self.imports.reveal(slug).await)
    }

    async fn store(
        &mut self,
        slug: String,
        value: Vec<u8>,
    ) -> Result<Result<(), secrets::SecretError>> {
        // The value is kept until the call ends, so that it can be redacted.
        self.limiter.held.keep(value.len() as u64);
        secret(self.imports.store(slug, value).await)
    }
}

/// Converts a reply for the guest. The outer error ends the guest.
fn secret<T>(reply: Result<T, SecretError>) -> Result<Result<T, secrets::SecretError>> {
    Ok(Err(match reply {
        Ok(reply) => return Ok(Ok(reply)),
        Err(SecretError::Denied) => secrets::SecretError::Denied,
        Err(SecretError::Missing) => secrets::SecretError::Missing,
        Err(SecretError::Failed) => secrets::SecretError::Failed,
        Err(SecretError::Ends(end)) => return Err(end.into()),
    }))
}

impl tools::Host for View<'_> {
    async fn call(
        &mut self,
        request: tools::Request,
    ) -> Result<Result<types::ToolOutput, types::ToolError>> {
        let left = CallerBudget {
            fuel: self.meter.fuel,
            memory_bytes: self.limiter.memory_left(),
        };
        // The input is in memory twice: the caller's copy and the called tool's copy.
        let input = (request.input.len() as u64).saturating_mul(2);
        let _input = self.limiter.held.shared().hold(input);
        let reply = self.imports.call_tool(request, left).await?;
        self.meter.owed = self.meter.owed.saturating_add(reply.fuel);
        self.limiter.called(reply.peak_memory);
        let result = reply.result.map(convert::output_to_guest);
        Ok(result.map_err(convert::error_to_guest))
    }
}
