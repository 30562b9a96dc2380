//! One request from the guest's hands to the response's head: look at all of
//! it, then resolve, connect, put secrets in, send.

use std::sync::Arc;
use std::time::Duration;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;

use crate::authority::{self, Host};
use crate::call::{Shared, Slot};
use crate::clock::{Clock, Timeouts};
use crate::connect::{self, MAX_HEAD};
use crate::error::{Denied, Error, Limit, LimitKind, Network, NetworkKind, Rule, Stage};
use crate::headers;
use crate::pool::{Key, Lease};
use crate::request_body::{Fate, GuestBody, RequestBody};
use crate::response_body::{ResponseBody, broken};
use crate::rules::{self, HostRule, Wanted};
use crate::secret::placing::{self, Placing};
use crate::secret::scrub::Patterns;
use crate::target;

/// Of a body, what is read before anything is sent, where a placeholder may be
/// in it.
const READ_AHEAD: u64 = 64 << 10;

/// How long a connection from the pool has to be done with its last response.
const SETTLE: Duration = Duration::from_millis(10);

pub(crate) async fn send(
    call: Arc<Shared>,
    request: Request<GuestBody>,
    timeouts: Timeouts,
) -> Result<Response<ResponseBody>, Error> {
    let slot = call.begin()?;
    let clock = Clock::start(call.limits.request_timeout, call.limits.deadline, timeouts);
    if clock.is_over() {
        return Err(clock.timeout(Stage::Queue).into());
    }
    let (mut parts, body) = request.into_parts();
    let destination = Destination::of(&parts.uri)?;
    if !rules::is_known(&parts.method) {
        return Err(Denied::new(Rule::MethodForbidden, &parts.method).into());
    }
    let bytes = check_head(&parts, call.limits.header_bytes)?;
    let placings = placings(&call, &destination, &parts)?;
    let own = own_credentials(&parts.headers, &placings);
    let rules = call.egress.rules().admit(&Wanted {
        https: destination.key.https,
        host: &destination.key.host,
        port: destination.key.port,
        method: &parts.method,
        credentials: &own,
    })?;
    let body = read_body(&call, &clock, &parts, body).await?;
    let patterns = put_in(&call, &destination, &placings, &mut parts.headers)?;
    finish_head(&mut parts.headers, &parts.method, &destination, &body)?;
    call.meter.bytes(bytes)?;
    let outgoing = Outgoing {
        method: parts.method,
        target: destination.target.clone(),
        headers: parts.headers,
    };
    let reusable = own.is_empty();
    let sent = exchange(
        &call,
        &rules,
        &destination,
        &clock,
        outgoing,
        body,
        reusable,
    );
    let (response, lease, fate, method) = sent.await?;
    receive(slot, clock, response, lease, fate, &method, patterns)
}

/// Where a request goes.
struct Destination {
    host: Host,
    key: Key,
    /// The path and query, as they are sent.
    target: Uri,
}

impl Destination {
    fn of(uri: &Uri) -> Result<Destination, Denied> {
        let (Some(scheme), Some(own)) = (uri.scheme_str(), uri.authority()) else {
            return Err(Denied::new(Rule::NotAbsolute, uri.to_string()));
        };
        let https = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(Denied::new(Rule::Scheme, scheme)),
        };
        let authority = authority::parse(own.as_str())?;
        let text = uri.path_and_query().map_or("/", |target| target.as_str());
        target::parse(text)?;
        let target = text.parse();
        Ok(Destination {
            key: Key {
                https,
                host: authority.host.to_string(),
                port: authority.port.unwrap_or(if https { 443 } else { 80 }),
            },
            host: authority.host,
            target: target.map_err(|_| Denied::new(Rule::Target, text))?,
        })
    }

    /// The `host` header.
    fn header(&self) -> Result<HeaderValue, Denied> {
        let Key { https, host, port } = &self.key;
        let default = if *https { 443 } else { 80 };
        let value = if *port == default {
            host.parse()
        } else {
            format!("{host}:{port}").parse()
        };
        value.map_err(|_| Denied::new(Rule::Host, host))
    }
}

/// Checks size and form of the head; its bytes on the wire.
fn check_head(parts: &http::request::Parts, allowed: u64) -> Result<u64, Error> {
    let target = parts.uri.path_and_query();
    let target = target.map_or(1, |target| target.as_str().len());
    let authority = parts.uri.authority();
    let authority = authority.map_or(0, |authority| authority.as_str().len());
    let line = (parts.method.as_str().len() + target + authority) as u64;
    let bytes = headers::check(&parts.headers, allowed)?.saturating_add(line);
    if bytes > allowed {
        return Err(Limit {
            kind: LimitKind::RequestHeadBytes,
            used: bytes,
            allowed,
        }
        .into());
    }
    Ok(bytes)
}

fn placings(
    call: &Shared,
    destination: &Destination,
    parts: &http::request::Parts,
) -> Result<Vec<Placing>, Denied> {
    let request = placing::Request {
        https: destination.key.https,
        host: &destination.host,
        port: destination.key.port,
        method: &parts.method,
        uri: &parts.uri,
        headers: &parts.headers,
    };
    let places = call.egress.rules().secrets();
    placing::find(&request, &call.placeholders, places)
}

/// Headers with credentials that no placeholder stands for.
fn own_credentials(headers: &HeaderMap, placings: &[Placing]) -> Vec<HeaderName> {
    let own = |name: &&HeaderName| {
        headers.contains_key(*name) && !placings.iter().any(|placing| placing.header == **name)
    };
    headers::CREDENTIALS.iter().filter(own).cloned().collect()
}

/// The body, read as far as it must be before anything is sent.
async fn read_body(
    call: &Arc<Shared>,
    clock: &Clock,
    parts: &http::request::Parts,
    guest: GuestBody,
) -> Result<RequestBody, Error> {
    let declared = headers::content_length(&parts.headers)?;
    let mut body = RequestBody::new(guest, declared, Arc::clone(call))?;
    let safe = parts.method.is_safe();
    let none = safe || body.length() == Some(0);
    let enough = match (none, call.placeholders.any()) {
        (true, _) => 1,
        (false, true) => READ_AHEAD,
        (false, false) => return Ok(body),
    };
    let read = body.read_ahead(enough);
    clock
        .within(clock.end(None), Stage::RequestBody, read)
        .await??;
    if safe && body.seen() > 0 {
        return Err(Denied::new(Rule::BodyOnSafeMethod, &parts.method).into());
    }
    Ok(body)
}

/// Puts the values in. Returns what to scrub from the response.
fn put_in(
    call: &Shared,
    destination: &Destination,
    placings: &[Placing],
    headers: &mut HeaderMap,
) -> Result<Option<Arc<Patterns>>, Error> {
    let (host, port) = (&destination.host, destination.key.port);
    for placing in placings {
        let secret = call.secret(&placing.slug, host, port)?;
        headers.insert(&placing.header, secret.header(&placing.prefix)?);
    }
    let patterns = call.patterns(host, port);
    if patterns.is_some() {
        // A value cannot be found in what is compressed.
        let identity = HeaderValue::from_static("identity");
        headers.insert(header::ACCEPT_ENCODING, identity);
    }
    Ok(patterns)
}

/// What the host itself says: whom the request is for, and how long it is.
fn finish_head(
    headers: &mut HeaderMap,
    method: &Method,
    destination: &Destination,
    body: &RequestBody,
) -> Result<(), Denied> {
    headers.insert(header::HOST, destination.header()?);
    headers.remove(header::CONTENT_LENGTH);
    if !method.is_safe()
        && let Some(length) = body.length()
    {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Ok(())
}

/// A head that is ready to be sent.
struct Outgoing {
    method: Method,
    target: Uri,
    headers: HeaderMap,
}

impl Outgoing {
    fn request(self, body: RequestBody) -> Request<RequestBody> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.target;
        *request.headers_mut() = self.headers;
        request
    }

    /// A copy, if sending it twice is the same as sending it once (RFC 9110
    /// section 9.2.2).
    fn copy(&self) -> Option<Outgoing> {
        self.method.is_safe().then(|| Outgoing {
            method: self.method.clone(),
            target: self.target.clone(),
            headers: self.headers.clone(),
        })
    }
}

type Exchanged = (Response<Incoming>, Lease, Arc<Fate>, Method);

/// Sends over a connection of the pool or a new one.
async fn exchange(
    call: &Arc<Shared>,
    rules: &[&HostRule],
    destination: &Destination,
    clock: &Clock,
    outgoing: Outgoing,
    body: RequestBody,
    reusable: bool,
) -> Result<Exchanged, Error> {
    let method = outgoing.method.clone();
    let fate = body.fate();
    let mut again = None;
    let mut request = None;
    let mut first = Some((outgoing, body));
    let pool = call.egress.pool();
    let key = &destination.key;
    loop {
        let passes = |address| rules.iter().any(|rule| rule.admits(address));
        let pooled = match pool.take(key, passes) {
            Some(mut connection) => {
                let ready = tokio::time::timeout(SETTLE, connection.sender.ready()).await;
                let Ok(Ok(())) = ready else { continue };
                Some(connection)
            }
            None => None,
        };
        let is_pooled = pooled.is_some();
        let connection = match pooled {
            Some(connection) => connection,
            None => connect::open(&call.egress, rules, &destination.host, key, clock).await?,
        };
        if let Some((outgoing, body)) = first.take() {
            if is_pooled {
                again = outgoing.copy();
            }
            request = Some(outgoing.request(body));
        }
        let Some(ready) = request.take() else {
            let gone = Network::new(NetworkKind::Terminated, "the request could not be sent");
            return Err(gone.into());
        };
        let mut lease = Lease::new(connection, Arc::clone(pool), key.clone(), reusable);
        let response = lease.connection.sender.try_send_request(ready);
        let end = clock.end(clock.timeouts.first_byte);
        let mut error = match clock.within(end, Stage::FirstByte, response).await {
            Ok(Ok(response)) => return Ok((response, lease, fate, method)),
            Ok(Err(error)) => error,
            Err(timeout) => return Err(timeout.into()),
        };
        if let Some(failure) = fate.failure() {
            return Err(failure);
        }
        // A server may close an idle connection just as it is used again.
        let unsent = error.take_message();
        let error = error.into_error();
        request = match (unsent, again.take()) {
            (Some(unsent), _) if is_pooled => Some(unsent),
            (None, Some(again)) if is_pooled && !error.is_parse() => {
                Some(again.request(RequestBody::empty(Arc::clone(call))))
            }
            _ => return Err(head_error(&error)),
        };
    }
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

/// Checks a response's head and hands it to the guest.
fn receive(
    slot: Slot,
    clock: Clock,
    response: Response<Incoming>,
    lease: Lease,
    fate: Arc<Fate>,
    method: &Method,
    patterns: Option<Arc<Patterns>>,
) -> Result<Response<ResponseBody>, Error> {
    let (parts, incoming) = response.into_parts();
    let (status, mut headers) = (parts.status, parts.headers);
    let limits = slot.call().limits;
    if status == StatusCode::SWITCHING_PROTOCOLS {
        let kind = NetworkKind::HttpProtocol;
        return Err(Network::new(kind, "the server changes protocols unasked").into());
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
    if let Some(patterns) = &patterns {
        check_clear(status, &headers)?;
        patterns.scrub_headers(&mut headers);
        // Scrubbing changes lengths.
        headers.remove(header::CONTENT_LENGTH);
    }
    let body = ResponseBody::new(incoming, lease, fate, slot, clock, patterns);
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

/// A length beside a transfer coding is ignored (RFC 9112 section 6.3), and no
/// other coding than `chunked` was asked for.
fn check_framing(headers: &mut HeaderMap) -> Result<(), Network> {
    if !headers.contains_key(header::TRANSFER_ENCODING) {
        return Ok(());
    }
    headers.remove(header::CONTENT_LENGTH);
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let chunked = codings.all(|value| value.as_bytes().eq_ignore_ascii_case(b"chunked"));
    let odd = || {
        Network::new(
            NetworkKind::HttpProtocol,
            "a transfer coding other than chunked",
        )
    };
    if chunked { Ok(()) } else { Err(odd()) }
}

/// A body that is announced as too large is not read.
fn check_length(headers: &HeaderMap, call: &Shared) -> Result<(), Limit> {
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

/// Refuses what a value could hide in.
fn check_clear(status: StatusCode, headers: &HeaderMap) -> Result<(), Denied> {
    let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
    let encoded = codings.any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"));
    if encoded {
        return Err(Denied::new(Rule::SecretResponse, "content-encoding"));
    }
    if status == StatusCode::PARTIAL_CONTENT || headers.contains_key(header::CONTENT_RANGE) {
        return Err(Denied::new(Rule::SecretResponse, "content-range"));
    }
    Ok(())
}
