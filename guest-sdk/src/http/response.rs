//! What came back.

use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::Error;

/// Longest piece of a failed response's body that an error shows.
const MAX_SHOWN: usize = 512;

/// An answer, whatever its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
    pub(super) body: Vec<u8>,
    pub(super) truncated: bool,
}

impl Response {
    /// An answer of this status, for what stands in for the host in tests.
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

    /// The status code, 200 for instance.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Whether the status is one of 200 to 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The first header of this name that is text, names being equal in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .filter(|(found, _)| found.eq_ignore_ascii_case(name))
            .find_map(|(_, value)| std::str::from_utf8(value).ok())
    }

    /// All headers, in the order that they came in.
    pub fn headers(&self) -> &[(String, Vec<u8>)] {
        &self.headers
    }

    /// The body.
    pub fn bytes(&self) -> &[u8] {
        &self.body
    }

    /// The body alone.
    pub fn into_bytes(self) -> Vec<u8> {
        self.body
    }

    /// Whether [`Request::truncate`](super::Request::truncate) left a part of the body.
    pub fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// The body as text.
    ///
    /// # Errors
    /// `upstream_error` where it is not UTF-8.
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
    /// `upstream_error` where it is none.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_slice(&self.body).map_err(|error| {
            Error::new(
                "upstream_error",
                format!("the response is not the JSON expected: {error}"),
            )
        })
    }

    /// The response, where its status is one of 200 to 299.
    ///
    /// # Errors
    /// `upstream_error` with the status and the start of the body as cause,
    /// retryable for 429, 502, 503 and 504, after the time that the server asks for.
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
