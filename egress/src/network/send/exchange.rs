//! Sends a request over a pooled or new connection, waits for the response's head, checks it, and
//! passes it to the guest without secret values.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::{self, HeaderMap};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use toolward_policy::HostGrant;

use super::{Destination, Ready};
use crate::address;
use crate::authority::Origin;
use crate::call_state::{CallState, RequestClock, RequestSlot};
use crate::error::{Error, Limit, LimitKind, NetworkError, NetworkKind, Stage};
use crate::headers;
use crate::network::Egress;
use crate::network::connect::{self, MAX_HEAD};
use crate::network::pool::{Lease, PooledConnection};
use crate::network::request_body::{Fate, Outgoing, RequestBody};
use crate::network::response_body::{ResponseBody, ResponseRedactor, broken};

/// How long a connection from the pool may take to finish its last response.
const IDLE_READY_TIMEOUT: Duration = Duration::from_millis(10);

/// A response's head, its connection, and the outcome of the request's body.
pub(super) type Exchanged = (Response<Incoming>, Lease, Arc<Fate>);

/// Sends a request over a pooled or new connection.
///
/// Request and answer are kept in boxes, so that a call takes little memory while it waits here.
pub(super) async fn exchange(
    egress: &Egress,
    call: &Arc<CallState>,
    clock: &RequestClock,
    ready: Ready<'_>,
) -> Result<Exchanged, Error> {
    let (mut request, rules) = (ready.request, ready.rules);
    let fate = Arc::clone(&request.body().fate);
    let Destination { host, origin, .. } = &ready.destination;
    loop {
        let pooled = pooled(egress, &rules, origin).await;
        let copy = pooled.as_ref().and_then(|_| copy(&request, call));
        let is_pooled = pooled.is_some();
        let connection = match pooled {
            Some(connection) => connection,
            // The future that connects has a separate box, which is dropped once the connection is
            // open. So a request that waits for its answer takes less memory.
            None => Box::pin(connect::open(egress, &rules, host, origin, clock)).await?,
        };
        let mut lease = Lease {
            connection,
            pool: Arc::clone(&egress.route.pool),
            origin: origin.clone(),
            reusable: ready.reusable,
        };
        let end = clock.end(clock.timeouts.first_byte);
        let response = lease.connection.sender.try_send_request(*request);
        let response = clock.within(end, Stage::FirstByte, pin!(response)).await?;
        let mut error = match response {
            Ok(response) => return Ok((response, lease, fate)),
            Err(error) => error,
        };
        if let Some(failure) = fate.failure() {
            return Err(failure);
        }
        // A server may close an idle connection just when it is used again. Then the request is
        // sent again, if nothing of it was sent or if its method is safe.
        let unsent = error.take_message().filter(|_| is_pooled).map(Box::new);
        let error = error.into_error();
        let copy = copy.filter(|_| !error.is_parse());
        request = unsent.or(copy).ok_or_else(|| head_error(&error))?;
    }
}

/// An idle connection that one of `rules` allows.
async fn pooled(
    egress: &Egress,
    rules: &[&HostGrant],
    origin: &Origin,
) -> Option<PooledConnection> {
    let passes = |address| {
        rules
            .iter()
            .any(|rule| address::check(address, &rule.terms.addresses).is_ok())
    };
    loop {
        let mut connection = egress.route.pool.take(origin, passes)?;
        let ready = tokio::time::timeout(IDLE_READY_TIMEOUT, connection.sender.ready()).await;
        if matches!(ready, Ok(Ok(()))) {
            return Some(connection);
        }
    }
}

/// A copy of the request, if its method is safe: sending such a request twice has the same effect
/// as sending it once (RFC 9110 section 9.2.2), and it has no body.
fn copy(request: &Request<Outgoing>, call: &Arc<CallState>) -> Option<Box<Request<Outgoing>>> {
    if !request.method().is_safe() {
        return None;
    }
    let mut copy = Box::new(Request::new(Box::new(RequestBody::empty(Arc::clone(call)))));
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}

fn head_error(error: &hyper::Error) -> Error {
    if error.is_parse_too_large() {
        return Limit {
            kind: LimitKind::ResponseHeadBytes,
            used: MAX_HEAD as u64 + 1,
            allowed: MAX_HEAD as u64,
        }
        .into();
    }
    broken(error).into()
}

/// Checks a response's head and passes it to the guest.
pub(super) fn receive(
    slot: RequestSlot,
    clock: RequestClock,
    response: Response<Incoming>,
    lease: Lease,
    fate: Arc<Fate>,
    method: &Method,
) -> Result<Response<ResponseBody>, Error> {
    let (parts, incoming) = response.into_parts();
    let (status, mut headers) = (parts.status, parts.headers);
    if status == StatusCode::SWITCHING_PROTOCOLS {
        let kind = NetworkKind::HttpProtocol;
        return Err(NetworkError::new(kind, "the server changes protocols unasked").into());
    }
    check_framing(&mut headers)?;
    let bytes = headers::size(&headers).saturating_add(16);
    let allowed = slot.call.limits.http_head_bytes;
    Limit::check(LimitKind::ResponseHeadBytes, bytes, allowed)?;
    slot.call.meter.bytes(bytes)?;
    let bodiless = *method == Method::HEAD
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::NOT_MODIFIED;
    if !bodiless {
        check_length(&headers, &slot.call)?;
    }
    headers::filter_response(&mut headers);
    let obscure = obscure(status, &headers);
    let redactor = ResponseRedactor::of(&slot, &lease.origin, obscure)?;
    if let Some(patterns) = redactor.patterns() {
        patterns.scrub_headers(&mut headers);
        // The redactor may change the body's length.
        headers.remove(header::CONTENT_LENGTH);
    }
    let body = ResponseBody::new(incoming, lease, fate, slot, clock, redactor);
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// Ignores a length next to a transfer coding (RFC 9112 section 6.3), and refuses codings except
/// `chunked`, since no others were requested.
fn check_framing(headers: &mut HeaderMap) -> Result<(), NetworkError> {
    if !headers.contains_key(header::TRANSFER_ENCODING) {
        return Ok(());
    }
    headers.remove(header::CONTENT_LENGTH);
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let chunked = codings.all(|value| value.as_bytes().eq_ignore_ascii_case(b"chunked"));
    if chunked {
        return Ok(());
    }
    let detail = "a transfer coding other than chunked";
    Err(NetworkError::new(NetworkKind::HttpProtocol, detail))
}

/// Refuses a body whose declared length is too large, before it is read.
fn check_length(headers: &HeaderMap, call: &CallState) -> Result<(), Limit> {
    let declared = headers::content_length(headers).ok().flatten();
    let declared = declared.unwrap_or_default();
    let allowed = call.limits.http_body_bytes;
    Limit::check(LimitKind::ResponseBodyBytes, declared, allowed)?;
    call.meter.fits(declared)
}

/// The header that shows that the body is encoded or partial, so that a value in it could not be
/// found.
fn obscure(status: StatusCode, headers: &HeaderMap) -> Option<&'static str> {
    let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
    if codings.any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Some("content-encoding");
    }
    let partial = status == StatusCode::PARTIAL_CONTENT;
    (partial || headers.contains_key(header::CONTENT_RANGE)).then_some("content-range")
}
