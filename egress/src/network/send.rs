//! Sends one request and waits for the response's head. The request's head, and the part of the
//! body that is read ahead, are checked before a secret is loaded, a name resolved, or a connection
//! opened.

mod exchange;

use std::pin::{Pin, pin};
use std::sync::Arc;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, Uri};
use toolward_policy::HostGrant;

use super::Egress;
use super::request_body::{GuestBody, Outgoing, RequestBody};
use super::response_body::ResponseBody;
use crate::authority::{self, Host, Origin};
use crate::call_state::{CallState, RequestClock, Timeouts};
use crate::error::{Denied, Error, Limit, LimitKind, Rule, SecretProblem, Stage};
use crate::rules::{self, ReadPosition, RequestView};
use crate::secret::inject::{self, Injection};
use crate::{headers, target};
use exchange::{exchange, receive};

/// The bytes of a body that are read before anything is sent, if the body may contain a
/// placeholder.
const READ_AHEAD_BYTES: u64 = 64 << 10;

pub(crate) async fn send(
    egress: Egress,
    call: Arc<CallState>,
    request: Box<Request<GuestBody>>,
    timeouts: Timeouts,
) -> Result<Response<ResponseBody>, Error> {
    let slot = call.begin()?;
    let clock = RequestClock::start(call.limits.http_timeout, call.deadline, timeouts);
    if clock.is_over() {
        return Err(clock.timeout(Stage::Queue).into());
    }
    let ready = ready(&egress, &call, &clock, request).await?;
    let method = ready.request.method().clone();
    // A separate function, so that earlier steps do not need its stack space.
    let sent = exchange(&egress, &call, &clock, ready);
    let sent: Pin<Box<dyn Future<Output = _> + Send + '_>> = Box::pin(sent);
    let (response, lease, fate) = sent.await?;
    receive(slot, clock, response, lease, fate, &method)
}

/// A request that may be sent, and the facts by which it is sent.
struct Ready<'a> {
    request: Box<Request<Outgoing>>,
    /// The rules that admit the request.
    rules: Vec<&'a HostGrant>,
    destination: Destination,
    /// Whether another request may be sent over the same connection.
    reusable: bool,
}

/// Checks the request's head and the part of the body that is read ahead, and builds the request
/// that is sent.
async fn ready<'a>(
    egress: &'a Egress,
    call: &Arc<CallState>,
    clock: &RequestClock,
    request: Box<Request<GuestBody>>,
) -> Result<Ready<'a>, Error> {
    let (mut parts, body) = request.into_parts();
    let destination = Destination::of(&parts.uri)?;
    if !rules::is_known(&parts.method) {
        return Err(Denied::new(Rule::MethodForbidden, &parts.method).into());
    }
    let bytes = check_head(&parts, call.limits.http_head_bytes)?;
    let view = RequestView {
        origin: &destination.origin,
        method: &parts.method,
        uri: &parts.uri,
        headers: &parts.headers,
    };
    let injections = inject::find(&view, &call.placeholders, egress.rules().secrets())?;
    let own = own_credentials(&parts.headers, &injections);
    let rules = egress.rules().admit(&view, &own)?;
    let body = read_body(egress, call, clock, &parts, body).await?;
    let target = put_in(egress, call, &destination, &injections, &mut parts.headers)?;
    finish_head(&mut parts.headers, &parts.method, &destination, &body)?;
    call.meter.bytes(bytes)?;
    let mut request = Box::new(Request::new(body));
    *request.method_mut() = parts.method;
    *request.uri_mut() = target;
    *request.headers_mut() = parts.headers;
    Ok(Ready {
        request,
        rules,
        destination,
        reusable: own.is_empty(),
    })
}

/// Checks size and form of the head. Returns its bytes on the wire.
fn check_head(parts: &http::request::Parts, allowed: u64) -> Result<u64, Error> {
    let target = parts.uri.path_and_query();
    let target = target.map_or(1, |target| target.as_str().len());
    let authority = parts.uri.authority();
    let authority = authority.map_or(0, |authority| authority.as_str().len());
    let line = (parts.method.as_str().len() + target + authority) as u64;
    let bytes = headers::check(&parts.headers, allowed)?.saturating_add(line);
    Limit::check(LimitKind::RequestHeadBytes, bytes, allowed)?;
    Ok(bytes)
}

/// The credential headers that the guest filled without a placeholder.
fn own_credentials(headers: &HeaderMap, injections: &[Injection]) -> Vec<HeaderName> {
    let own = |name: &&HeaderName| {
        headers.contains_key(*name)
            && !injections
                .iter()
                .any(|injection| injection.header() == Some(*name))
    };
    headers::CREDENTIALS.iter().filter(own).cloned().collect()
}

/// Reads the part of the body that must be read before anything is sent.
async fn read_body(
    egress: &Egress,
    call: &Arc<CallState>,
    clock: &RequestClock,
    parts: &http::request::Parts,
    guest: GuestBody,
) -> Result<Outgoing, Error> {
    let declared = headers::content_length(&parts.headers)?;
    let search = !egress.rules().secrets().is_empty();
    let mut body = Box::new(RequestBody::new(guest, declared, search, Arc::clone(call))?);
    let safe = parts.method.is_safe();
    let none = safe || body.length == Some(0);
    let enough = match (none, call.placeholders.any()) {
        (true, _) => 1,
        (false, true) => READ_AHEAD_BYTES,
        (false, false) => return Ok(body),
    };
    let end = clock.end(None);
    clock
        .within(end, Stage::RequestBody, pin!(body.read_ahead(enough)))
        .await??;
    if safe && body.seen > 0 {
        return Err(Denied::new(Rule::BodyOnSafeMethod, &parts.method).into());
    }
    Ok(body)
}

/// Injects the values, and requests a response in which values can be found. Returns the target to
/// send, which may contain a value and must not be shown.
fn put_in(
    egress: &Egress,
    call: &CallState,
    destination: &Destination,
    injections: &[Injection],
    headers: &mut HeaderMap,
) -> Result<Uri, Error> {
    let origin = &destination.origin;
    let mut target = destination.target.clone();
    for injection in injections {
        let secret = call.secrets.load(&injection.slug, origin)?;
        match &injection.position {
            ReadPosition::Header(name) => {
                headers.insert(name, secret.header(&injection.prefix)?);
            }
            ReadPosition::Query(name) => target = secret.target(&target, name)?,
        }
    }
    for place in egress.rules().secrets() {
        if place.origin == *origin {
            // Another call may have sent this secret to the origin, so its value is searched for in
            // the response. Secrets that can't be loaded are skipped, except if they would take too
            // much memory.
            match call.secrets.load(&place.slug, origin) {
                Err(error) if error.problem == SecretProblem::TooMuchMemory => {
                    return Err(error.into());
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
    if let Some(slug) = call.secrets.any(origin) {
        // A value cannot be found in partial or compressed responses.
        let partial = [header::RANGE, header::IF_RANGE];
        if partial.iter().any(|name| headers.contains_key(name)) {
            return Err(Denied::new(Rule::SecretRange, slug).into());
        }
        let identity = HeaderValue::from_static("identity");
        headers.insert(header::ACCEPT_ENCODING, identity);
    }
    Ok(target)
}

/// Sets the headers that only the host sets: `host` and `content-length`.
fn finish_head(
    headers: &mut HeaderMap,
    method: &Method,
    destination: &Destination,
    body: &RequestBody,
) -> Result<(), Denied> {
    headers.insert(header::HOST, destination.header()?);
    headers.remove(header::CONTENT_LENGTH);
    if !method.is_safe()
        && let Some(length) = body.length
    {
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Ok(())
}

/// The destination of a request. Connections and secrets are tied to its origin.
struct Destination {
    host: Host,
    origin: Origin,
    /// The path and query to send.
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
            origin: Origin {
                https,
                host: authority.host.to_string(),
                port: authority.port.unwrap_or(Origin::default_port(https)),
            },
            host: authority.host,
            target: target.map_err(|_| Denied::new(Rule::Target, text))?,
        })
    }

    /// The `host` header.
    fn header(&self) -> Result<HeaderValue, Denied> {
        let Origin { https, host, port } = &self.origin;
        let value = if *port == Origin::default_port(*https) {
            host.parse()
        } else {
            format!("{host}:{port}").parse()
        };
        value.map_err(|_| Denied::new(Rule::Host, host))
    }
}
