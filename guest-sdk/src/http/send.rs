//! Sends a request through `wasi:http` and reads the response. In tests, the grants answer.

use std::time::Duration;

use wasip2::http::outgoing_handler;
use wasip2::http::types as wit;
use wasip2::io::streams::{OutputStream, StreamError};

use super::url::Url;
use super::{Method, Request, Response, failure};
use crate::{Error, testing};

/// The number of bytes that one read requests.
const CHUNK: u64 = 64 * 1024;

impl Request {
    /// Sends the request and reads the response.
    ///
    /// # Errors
    /// `input_invalid` for an invalid URL or header; `unauthorised` if the server is not declared
    /// or granted, or if drivers may not set a header; `rate_limited` at the limit of requests;
    /// `http:body_too_large`; `internal` if the host gives no answer; and `upstream_error` for all
    /// other failures. The error is retryable if the same request may succeed later.
    pub fn send(&self) -> Result<Response, Error> {
        let url = Url::parse(self.url())?;
        let mut response = if cfg!(target_family = "wasm") {
            // One byte more than the limit shows whether the body is longer.
            send(self, &url, self.max_bytes.saturating_add(1))?
        } else {
            testing::answer(self).unwrap_or_else(|| Err(failure::denied(self)))?
        };
        if response.body.len() > self.max_bytes {
            if !self.truncate {
                return Err(failure::too_large(self, self.max_bytes));
            }
            response.body.truncate(self.max_bytes);
            response.truncated = true;
        }
        Ok(response)
    }
}

/// Sends the request, and reads at most `most` bytes of the body.
fn send(request: &Request, url: &Url<'_>, most: usize) -> Result<Response, Error> {
    let outgoing = wit::OutgoingRequest::new(fields(request)?);
    let part = |name| move |()| failure::part(request, name);
    outgoing
        .set_method(&method(request.method()))
        .map_err(part("method"))?;
    let scheme = if url.secure {
        wit::Scheme::Https
    } else {
        wit::Scheme::Http
    };
    outgoing.set_scheme(Some(&scheme)).map_err(part("scheme"))?;
    outgoing
        .set_authority(Some(url.authority))
        .map_err(part("host"))?;
    outgoing
        .set_path_with_query(Some(&url.path))
        .map_err(part("path"))?;
    let body = outgoing.body().map_err(part("body"))?;

    let failed = |code: &wit::ErrorCode| failure::error(request, code);
    let pending = outgoing_handler::handle(outgoing, options(request.timeout))
        .map_err(|code| failed(&code))?;
    let sent = write(body, request.body_bytes());
    pending.subscribe().block();
    let answered = match pending.get() {
        Some(Ok(answered)) => answered,
        _ => return Err(Error::new("internal", "the host gave no answer")),
    };
    // If both failed, the response's error is the more helpful one.
    let response = answered.map_err(|code| failed(&code))?;
    sent.map_err(|code| failed(&code))?;
    read(request, &response, most)
}

fn fields(request: &Request) -> Result<wit::Fields, Error> {
    let fields = wit::Fields::new();
    let append = |name: &str, value: &[u8]| {
        let value = value.to_vec();
        fields
            .append(name, &value)
            .map_err(|error| failure::header(name, &error))
    };
    for (name, value) in request.headers() {
        append(name, value)?;
    }
    if !request.body_bytes().is_empty() {
        append(
            "content-length",
            request.body_bytes().len().to_string().as_bytes(),
        )?;
    }
    Ok(fields)
}

fn method(method: Method) -> wit::Method {
    match method {
        Method::Get => wit::Method::Get,
        Method::Head => wit::Method::Head,
        Method::Options => wit::Method::Options,
        Method::Post => wit::Method::Post,
        Method::Put => wit::Method::Put,
        Method::Patch => wit::Method::Patch,
        Method::Delete => wit::Method::Delete,
    }
}

fn options(wait: Option<Duration>) -> Option<wit::RequestOptions> {
    let wait = u64::try_from(wait?.as_nanos()).unwrap_or(u64::MAX);
    let options = wit::RequestOptions::new();
    // A host that does not support one of these options applies its own limit.
    let _ = options.set_connect_timeout(Some(wait));
    let _ = options.set_first_byte_timeout(Some(wait));
    let _ = options.set_between_bytes_timeout(Some(wait));
    Some(options)
}

fn write(body: wit::OutgoingBody, bytes: &[u8]) -> Result<(), wit::ErrorCode> {
    let stream = body
        .write()
        .map_err(|()| wit::ErrorCode::InternalError(None))?;
    let written = write_all(&stream, bytes);
    drop(stream);
    written.map_err(|error| code_of(&error))?;
    wit::OutgoingBody::finish(body, None)
}

fn write_all(stream: &OutputStream, mut bytes: &[u8]) -> Result<(), StreamError> {
    while !bytes.is_empty() {
        stream.subscribe().block();
        let room = usize::try_from(stream.check_write()?).unwrap_or(usize::MAX);
        let (now, later) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        stream.write(now)?;
        bytes = later;
    }
    stream.blocking_flush()
}

fn read(
    request: &Request,
    response: &wit::IncomingResponse,
    most: usize,
) -> Result<Response, Error> {
    let mut answer = Response::new(response.status());
    for (name, value) in response.headers().entries() {
        answer = answer.with_header(name, value);
    }
    let gone = |()| Error::new("internal", "the host gave no body");
    let body = response.consume().map_err(gone)?;
    let stream = body.stream().map_err(gone)?;
    let mut bytes = Vec::new();
    while let Some(left) = most.checked_sub(bytes.len()).filter(|left| *left > 0) {
        let wanted = u64::try_from(left).unwrap_or(u64::MAX).min(CHUNK);
        match stream.blocking_read(wanted) {
            Ok(mut chunk) => bytes.append(&mut chunk),
            Err(StreamError::Closed) => break,
            Err(error) => return Err(failure::error(request, &code_of(&error))),
        }
    }
    Ok(answer.body(bytes))
}

fn code_of(error: &StreamError) -> wit::ErrorCode {
    match error {
        StreamError::Closed => wit::ErrorCode::ConnectionTerminated,
        StreamError::LastOperationFailed(error) => wit::http_error_code(error)
            .unwrap_or_else(|| wit::ErrorCode::InternalError(Some(error.to_debug_string()))),
    }
}
