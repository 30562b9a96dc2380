//! A request, put together step by step.

use std::time::Duration;

use serde::Serialize;

use crate::Error;

/// Longest body of a response that is read where the request says nothing else.
const DEFAULT_MAX_BYTES: usize = 4 << 20;

/// What a request is to do. `Get`, `Head` and `Options` need `requires.network`,
/// the others `mutates: network:<host>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Reads the headers alone.
    Head,
    /// Asks what can be done.
    Options,
    /// Sends something to be worked on.
    Post,
    /// Replaces.
    Put,
    /// Changes.
    Patch,
    /// Removes.
    Delete,
}

impl Method {
    /// The method as it is sent, `GET` for instance.
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
/// A response is an error only where none came: see
/// [`Response::success`](super::Response::success) for the status. Redirects are not followed, since each host needs a grant.
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
    /// A request of this method to this `https://` URL (`http://` where policy
    /// allows it). A URL that is none makes [`Request::send`] fail.
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

    /// Adds a header. The host takes no `host`, `proxy-*` or hop-by-hop headers
    /// from a driver, and `authorization` and `cookie` only where they are made of
    /// a [placeholder](crate::secrets::placeholder) or policy lets them pass.
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

    /// Sets the body to this value's JSON, and `content-type` with it.
    ///
    /// # Errors
    /// `upstream_error` where the value has no JSON form.
    pub fn json(self, value: &impl Serialize) -> Result<Self, Error> {
        let body = serde_json::to_vec(value)?;
        Ok(self.header("content-type", "application/json").body(body))
    }

    /// The longest wait for the connection, for the first byte of the answer, and
    /// between two bytes of it. The call's own deadline holds anyway.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// The longest body of a response to take, 4 MiB without it; a longer one is
    /// an error with the code `http:body_too_large`.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self.truncate = false;
        self
    }

    /// Reads this many bytes of the response's body and leaves the rest:
    /// [`Response::is_truncated`](super::Response::is_truncated) tells whether there was one.
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

    /// The URL as it was given.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The headers that were added, in order.
    pub fn headers(&self) -> &[(String, Vec<u8>)] {
        &self.headers
    }

    /// The body, empty where none was set.
    pub fn body_bytes(&self) -> &[u8] {
        &self.body
    }

    /// How the request shows up in messages: without its query, which may hold
    /// what nobody else should read.
    pub(super) fn shown(&self) -> String {
        let path = self.url.split(['?', '#']).next().unwrap_or_default();
        let shown: String = path.chars().take(200).collect();
        format!("{} {shown}", self.method.as_str())
    }
}
