//! A request, which is built step by step.

use std::time::Duration;

use serde::Serialize;

use crate::Error;

/// The default for the longest response body that is read.
const DEFAULT_MAX_BYTES: usize = 4 << 20;

/// The method of a request. `Get`, `Head` and `Options` need `requires.network`, the others
/// `mutates: network:<host>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads a resource.
    Get,
    /// Reads only the headers.
    Head,
    /// Asks which methods are supported.
    Options,
    /// Sends data to be processed.
    Post,
    /// Replaces a resource.
    Put,
    /// Changes a resource.
    Patch,
    /// Removes a resource.
    Delete,
}

impl Method {
    /// The method's name, for example `GET`.
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Options => "OPTIONS",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }
}

/// One request.
///
/// ```
/// use toolward_guest::http::Request;
/// use toolward_guest::{Error, secrets};
///
/// #[derive(serde::Deserialize)]
/// struct Repository { stars: u64 }
///
/// fn stars(name: &str) -> Result<u64, Error> {
///     let repository: Repository = Request::get(format!("https://api.example.org/repos/{name}"))
///         .header("authorization", format!("Bearer {}", secrets::placeholder("api-token")?))
///         .send()?
///         .success()?
///         .json()?;
///     Ok(repository.stars)
/// }
/// # use toolward_guest::{http::Response, testing::Grants};
/// # let grants = Grants::new().secret("api-token", "t").http(|request| {
/// #     assert_eq!(request.url(), "https://api.example.org/repos/a");
/// #     Ok(Response::new(200).body(r#"{"stars": 7}"#))
/// # });
/// # assert_eq!(grants.during(|| stars("a")).unwrap(), 7);
/// # assert_eq!(stars("a").unwrap_err().code(), "unauthorised");
/// ```
///
/// A response with any status can be received. To check the status, see
/// [`Response::success`](super::Response::success). Redirects are not followed, since each host
/// needs a grant.
#[derive(Clone, Debug)]
pub struct Request {
    method: Method,
    url: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
    pub(super) timeout: Option<Duration>,
    pub(super) max_bytes: usize,
    pub(super) truncate: bool,
}

impl Request {
    /// A request of this method to this `https://` URL (`http://` if policy allows it). If the URL
    /// is not valid, [`Request::send`] fails.
    pub fn new(method: Method, url: impl Into<String>) -> Self {
        Request {
            method,
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
            timeout: None,
            max_bytes: DEFAULT_MAX_BYTES,
            truncate: false,
        }
    }

    /// A `GET` request.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new(Method::Get, url)
    }

    /// A `POST` request.
    pub fn post(url: impl Into<String>) -> Self {
        Self::new(Method::Post, url)
    }

    /// Adds a header. The host accepts no `host`, `proxy-*` or hop-by-hop headers from a driver. It
    /// accepts `authorization` and `cookie` only if they contain a
    /// [placeholder](crate::secrets::placeholder) or policy allows them.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets the body to this value's JSON, and sets `content-type`.
    ///
    /// # Errors
    /// `upstream_error` if the value has no JSON form.
    pub fn json(self, value: &impl Serialize) -> Result<Self, Error> {
        let body = serde_json::to_vec(value)?;
        Ok(self.header("content-type", "application/json").body(body))
    }

    /// Sets the longest wait for the connection, for the first byte of the response, and between
    /// two bytes of the response. The call's own deadline applies in any case.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the longest response body to accept; 4 MiB by default. A longer body is an error with
    /// the code `http:body_too_large`.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self.truncate = false;
        self
    }

    /// Reads only this many bytes of the response's body.
    /// [`Response::is_truncated`](super::Response::is_truncated) shows whether the body was longer.
    #[must_use]
    pub fn truncate(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self.truncate = true;
        self
    }

    /// The method.
    pub fn method(&self) -> Method {
        self.method
    }

    /// The URL, as given.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The headers that were added, in order.
    pub fn headers(&self) -> &[(String, Vec<u8>)] {
        &self.headers
    }

    /// The body; empty if none was set.
    pub fn body_bytes(&self) -> &[u8] {
        &self.body
    }

    /// The text for the request in messages. It omits the query, which may contain confidential
    /// data.
    pub(super) fn shown(&self) -> String {
        let path = self.url.split(['?', '#']).next().unwrap_or_default();
        let shown: String = path.chars().take(200).collect();
        format!("{} {shown}", self.method.as_str())
    }
}
