//! Hands a request to a connection, of the pool or a new one, and waits for the
//! response's head.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;

use super::destination::Destination;
use crate::call_state::CallState;
use crate::clock::Clock;
use crate::error::{Error, Limit, LimitKind, Stage};
use crate::network::connect::{self, MAX_HEAD};
use crate::network::pool::{Lease, PooledConnection};
use crate::network::request_body::{Fate, Outgoing, RequestBody};
use crate::network::response_body::broken;
use crate::network::transport::Egress;
use crate::origin::Origin;
use crate::rules::HostRule;

/// How long a connection from the pool has to be done with its last response.
const IDLE_READY_TIMEOUT: Duration = Duration::from_millis(10);

/// A response's head, what it came over, and what became of the request's body.
pub(super) type Exchanged = (Response<Incoming>, Lease, Arc<Fate>);

/// Sends over a connection of the pool or a new one. `reusable`: the connection
/// may serve another request after.
///
/// A request is long in here, and its answer longer in coming: both are kept in
/// boxes, so that a call that waits takes little room.
pub(super) async fn exchange(
    egress: &Egress,
    call: &Arc<CallState>,
    rules: &[&HostRule],
    destination: &Destination,
    clock: &Clock,
    request: Box<Request<Outgoing>>,
    reusable: bool,
) -> Result<Exchanged, Error> {
    let mut request = request;
    let fate = request.body().fate();
    let origin = &destination.origin;
    loop {
        let pooled = pooled(egress, rules, origin).await;
        let copy = pooled.as_ref().and_then(|_| copy(&request, call));
        let is_pooled = pooled.is_some();
        let connection = match pooled {
            Some(connection) => connection,
            // In a box of its own, which is gone once the connection is there: a
            // request that waits for its answer keeps no room for connecting.
            None => {
                Box::pin(connect::open(
                    egress,
                    rules,
                    &destination.host,
                    origin,
                    clock,
                ))
                .await?
            }
        };
        let pool = Arc::clone(egress.pool());
        let mut lease = Lease::new(connection, pool, origin.clone(), reusable);
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
        // A server may close an idle connection just as it is used again.
        let unsent = error.take_message().filter(|_| is_pooled).map(Box::new);
        let error = error.into_error();
        let copy = copy.filter(|_| !error.is_parse());
        request = unsent.or(copy).ok_or_else(|| head_error(&error))?;
    }
}

/// An idle connection that one of `rules` allows.
async fn pooled(egress: &Egress, rules: &[&HostRule], origin: &Origin) -> Option<PooledConnection> {
    let passes = |address| rules.iter().any(|rule| rule.admits(address));
    loop {
        let mut connection = egress.pool().take(origin, passes)?;
        let ready = tokio::time::timeout(IDLE_READY_TIMEOUT, connection.sender.ready()).await;
        if matches!(ready, Ok(Ok(()))) {
            return Some(connection);
        }
    }
}

/// A copy, if sending it twice is the same as sending it once (RFC 9110 section
/// 9.2.2); such a request has no body.
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
