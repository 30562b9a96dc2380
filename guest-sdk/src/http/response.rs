//! The response to a request.

use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::Error;

/// The most bytes of a failed response's body that an error shows.
const MAX_SHOWN: usize = 512;

/// A response with any status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
    pub(super) body: Vec<u8>,
    pub(super) truncated: bool,
}

impl Response {
    /// Creates a response with this status, for a simulated host in tests.
    pub fn new(status: u16) -> Self {
        Response {
            status,
            headers: Vec::new(),
            body: Vec::new(),
            truncated: false,
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// The status code, for example 200.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Whether the status is in the range 200 to 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The first header with this name whose value is text. The case of names does not matter.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .filter(|(found, _)| found.eq_ignore_ascii_case(name))
            .find_map(|(_, value)| std::str::from_utf8(value).ok())
    }

    /// All headers, in the order in which they arrived.
    pub fn headers(&self) -> &[(String, Vec<u8>)] {
        &self.headers
    }

    /// The body.
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// Returns only the body.
    pub fn into_bytes(self) -> Vec<u8> {
        self.body
    }

    /// Whether [`Request::truncate`](super::Request::truncate) left a part of the body unread.
    pub fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// The body as text.
    ///
    /// # Errors
    /// `upstream_error` if it is not UTF-8.
    pub fn text(&self) -> Result<&str, Error> {
        std::str::from_utf8(&self.body).map_err(|error| {
            Error::new(
                "upstream_error",
                format!("the response is not UTF-8: {error}"),
            )
        })
    }

    /// The body's JSON as a `T`.
    ///
    /// # Errors
    /// `upstream_error` if the body is not the JSON of a `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| {
            Error::new(
                "upstream_error",
                format!("the response is not the JSON expected: {error}"),
            )
        })
    }

    /// Returns the response if its status is in the range 200 to 299.
    ///
    /// # Errors
    /// `upstream_error` with the status and the start of the body as cause. It is retryable for
    /// 429, 502, 503 and 504. For 429 and 503, the retry waits for the seconds in `retry-after`, if
    /// given.
    pub fn success(self) -> Result<Self, Error> {
        if self.is_success() {
            return Ok(self);
        }
        let shown = self.body.get(..MAX_SHOWN).unwrap_or(&self.body);
        let error = Error::new(
            "upstream_error",
            format!("the server answered with status {}", self.status),
        )
        .cause(&serde_json::json!({
            "status": self.status,
            "body": String::from_utf8_lossy(shown),
        }));
        let wait = self
            .header("retry-after")
            .and_then(|seconds| seconds.trim().parse().ok());
        Err(match (self.status, wait) {
            (429 | 503, Some(seconds)) => error.retry_after(Duration::from_secs(seconds)),
            (429 | 502 | 503 | 504, _) => error.retryable(),
            _ => error,
        })
    }
}
