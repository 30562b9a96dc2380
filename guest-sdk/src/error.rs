//! How a call fails: a code, a message, and whether the host may retry.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt::Display;
use core::time::Duration;

use serde::Serialize;

use crate::bindings::toolward::driver::types::ToolError;

/// The longest chain of `source()` that becomes a cause.
const MAX_SOURCES: usize = 16;

/// A failed call. Any `std::error::Error` is converted with `?`, with the code `upstream_error` and
/// its sources as cause; [`Code`] gives another code.
///
/// ```
/// use toolward_guest::{Code, Error};
///
/// fn parse(text: &str) -> Result<u32, Error> {
///     if text.is_empty() {
///         return Err(Error::new("input_invalid", "expected a number, found nothing"));
///     }
///     let number: u32 = text.parse().code("text:not_a_number")?;
///     Ok(number)
/// }
///
/// assert_eq!(parse("").unwrap_err().code(), "input_invalid");
/// assert_eq!(parse("x").unwrap_err().code(), "text:not_a_number");
/// ```
///
/// This type does not implement `std::error::Error`, since the conversion from all such errors
/// would then include this type.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    code: Cow<'static, str>,
    message: String,
    retryable: bool,
    retry_after: Option<Duration>,
    cause: Option<serde_json::Value>,
}

impl Error {
    /// Creates an error. `code` is one of AIP-14's (`input_invalid`, `not_found`, `rate_limited`,
    /// `upstream_error`, …) or the tool's own, as `domain:code`. The host marks the code as the
    /// driver's, so it can't be confused with a code of the host.
    pub fn new(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Error {
            code: code.into(),
            message: message.into(),
            retryable: false,
            retry_after: None,
            cause: None,
        }
    }

    /// Notes that the same call may succeed later. The contract's `retry` decides whether the call
    /// is retried.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }

    /// Makes the error retryable after this many milliseconds.
    #[must_use]
    pub fn retry_after_ms(self, milliseconds: u64) -> Self {
        self.retry_after(Duration::from_millis(milliseconds))
    }

    /// Makes the error retryable after this time.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self.retryable()
    }

    /// Adds the cause of the error, as JSON. A value that has no JSON form is left out.
    #[must_use]
    pub fn cause(mut self, cause: &impl Serialize) -> Self {
        self.cause = serde_json::to_value(cause).ok();
        self
    }

    /// The code.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.retryable
    }

    #[doc(hidden)]
    pub fn unknown_tool(found: &str, known: &[&str]) -> Self {
        Error::new(
            "not_found",
            format!("this driver implements {}, not {found}", known.join(", ")),
        )
    }

    pub(crate) fn from_raw(raw: ToolError) -> Self {
        Error {
            code: raw.code.into(),
            message: raw.message,
            retryable: raw.retryable,
            retry_after: raw.retry_after_ms.map(Duration::from_millis),
            cause: raw.cause.and_then(|text| serde_json::from_str(&text).ok()),
        }
    }
}

impl<E: core::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        let mut sources = Vec::new();
        let mut next = error.source();
        while let Some(source) = next.filter(|_| sources.len() < MAX_SOURCES) {
            sources.push(serde_json::Value::from(source.to_string()));
            next = source.source();
        }
        Error {
            cause: (!sources.is_empty()).then(|| sources.into()),
            ..Error::new("upstream_error", error.to_string())
        }
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        ToolError {
            code: error.code.into_owned(),
            message: error.message,
            retryable: error.retryable,
            retry_after_ms: error
                .retry_after
                .map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            cause: error.cause.map(|cause| cause.to_string()),
        }
    }
}

/// Gives any error another code, before it is returned with `?`.
pub trait Code<T> {
    /// Keeps a value. Converts an error, or a missing value, to an [`Error`] with this code.
    ///
    /// # Errors
    /// The converted error, with the text of the original error.
    fn code(self, code: &'static str) -> Result<T, Error>;
}

impl<T, E: Display> Code<T> for Result<T, E> {
    fn code(self, code: &'static str) -> Result<T, Error> {
        self.map_err(|error| Error::new(code, error.to_string()))
    }
}

impl<T> Code<T> for Option<T> {
    fn code(self, code: &'static str) -> Result<T, Error> {
        self.ok_or_else(|| Error::new(code, "expected a value, found none"))
    }
}
