//! Checks a response's head and hands it to the guest, without values.

use std::sync::Arc;

use http::header::{self, HeaderMap};
use http::{Method, Response, StatusCode};
use hyper::body::Incoming;

use crate::call_state::{CallState, Slot};
use crate::clock::Clock;
use crate::error::{Error, Limit, LimitKind, NetworkError, NetworkKind};
use crate::headers;
use crate::network::pool::Lease;
use crate::network::request_body::Fate;
use crate::network::response_body::ResponseBody;
use crate::network::response_redactor::ResponseRedactor;

/// Checks a response's head and hands it to the guest.
pub(super) fn receive(
    slot: Slot,
    clock: Clock,
    response: Response<Incoming>,
    lease: Lease,
    fate: Arc<Fate>,
    method: &Method,
) -> Result<Response<ResponseBody>, Error> {
    let (parts, incoming) = response.into_parts();
    let (status, mut headers) = (parts.status, parts.headers);
    let limits = slot.call().limits;
    if status == StatusCode::SWITCHING_PROTOCOLS {
        let kind = NetworkKind::HttpProtocol;
        return Err(NetworkError::new(kind, "the server changes protocols unasked").into());
    }
    check_framing(&mut headers)?;
    let bytes = headers::size(&headers).saturating_add(16);
    if bytes > limits.header_bytes {
        return Err(Limit {
            kind: LimitKind::ResponseHeadBytes,
            used: bytes,
            allowed: limits.header_bytes,
        }
        .into());
    }
    slot.call().meter.bytes(bytes)?;
    let bodiless = *method == Method::HEAD
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::NOT_MODIFIED;
    if !bodiless {
        check_length(&headers, slot.call())?;
    }
    headers::filter_response(&mut headers);
    let obscure = obscure(status, &headers);
    let redactor = ResponseRedactor::of(&slot, &lease.origin, obscure)?;
    if let Some(patterns) = redactor.patterns() {
        patterns.scrub_headers(&mut headers);
        // ResponseRedactor changes lengths.
        headers.remove(header::CONTENT_LENGTH);
    }
    let body = ResponseBody::new(incoming, lease, fate, slot, clock, redactor);
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// A length beside a transfer coding is ignored (RFC 9112 section 6.3), and no
/// other coding than `chunked` was asked for.
fn check_framing(headers: &mut HeaderMap) -> Result<(), NetworkError> {
    if !headers.contains_key(header::TRANSFER_ENCODING) {
        return Ok(());
    }
    headers.remove(header::CONTENT_LENGTH);
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let chunked = codings.all(|value| value.as_bytes().eq_ignore_ascii_case(b"chunked"));
    let odd = || {
        NetworkError::new(
            NetworkKind::HttpProtocol,
            "a transfer coding other than chunked",
        )
    };
    if chunked { Ok(()) } else { Err(odd()) }
}

/// A body that is announced as too large is not read.
fn check_length(headers: &HeaderMap, call: &CallState) -> Result<(), Limit> {
    let declared = headers::content_length(headers).ok().flatten();
    let declared = declared.unwrap_or_default();
    let allowed = call.limits.response_body_bytes;
    if declared > allowed {
        return Err(Limit {
            kind: LimitKind::ResponseBodyBytes,
            used: declared,
            allowed,
        });
    }
    call.meter.fits(declared)
}

/// The header that tells that a value could hide in the body.
fn obscure(status: StatusCode, headers: &HeaderMap) -> Option<&'static str> {
    let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
    if codings.any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Some("content-encoding");
    }
    let partial = status == StatusCode::PARTIAL_CONTENT;
    (partial || headers.contains_key(header::CONTENT_RANGE)).then_some("content-range")
}
