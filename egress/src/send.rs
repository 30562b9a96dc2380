//! One request from the guest's hands to the response's head: all of it is looked
//! at before a secret is loaded, a name resolved, or a connection made.

mod exchange;
mod receive;

use std::pin::{Pin, pin};
use std::sync::Arc;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, Uri};

use crate::authority::{self, Host};
use crate::call::Shared;
use crate::clock::{Clock, Timeouts};
use crate::error::{Denied, Error, Limit, LimitKind, Rule, SecretProblem, Stage};
use crate::headers;
use crate::pool::Key;
use crate::request_body::{GuestBody, Outgoing, RequestBody};
use crate::response_body::ResponseBody;
use crate::rules::{self, HostRule, Wanted};
use crate::secret::placing::{self, Placing};
use crate::target;

use exchange::exchange;
use receive::receive;

/// Of a body, what is read before anything is sent, where a placeholder may be
/// in it.
const READ_AHEAD: u64 = 64 << 10;

pub(crate) async fn send(
    call: Arc<Shared>,
    request: Box<Request<GuestBody>>,
    timeouts: Timeouts,
) -> Result<Response<ResponseBody>, Error> {
    let slot = call.begin()?;
    let clock = Clock::start(call.limits.request_timeout, call.limits.deadline, timeouts);
    if clock.is_over() {
        return Err(clock.timeout(Stage::Queue).into());
    }
    let ready = ready(&call, &clock, request).await?;
    let Ready {
        request,
        method,
        rules,
        destination,
        reusable,
    } = ready;
    // A function of its own: what it needs on the stack, no earlier step does.
    let sent = exchange(&call, &rules, &destination, &clock, request, reusable);
    let sent: Pin<Box<dyn Future<Output = _> + Send + '_>> = Box::pin(sent);
    let (response, lease, fate) = sent.await?;
    receive(slot, clock, response, lease, fate, &method)
}

/// A request that may be sent.
struct Ready<'a> {
    request: Box<Request<Outgoing>>,
    method: Method,
    /// Those that admit it.
    rules: Vec<&'a HostRule>,
    destination: Destination,
    /// Whether another may be sent over the same connection.
    reusable: bool,
}

/// Looks at all of a request, and makes of it what is sent.
async fn ready<'a>(
    call: &'a Arc<Shared>,
    clock: &Clock,
    request: Box<Request<GuestBody>>,
) -> Result<Ready<'a>, Error> {
    let (mut parts, body) = request.into_parts();
    let destination = Destination::of(&parts.uri)?;
    if !rules::is_known(&parts.method) {
        return Err(Denied::new(Rule::MethodForbidden, &parts.method).into());
    }
    let bytes = check_head(&parts, call.limits.header_bytes)?;
    let placings = placings(call, &destination, &parts)?;
    let own = own_credentials(&parts.headers, &placings);
    let rules = call.egress.rules().admit(&Wanted {
        https: destination.key.https,
        host: &destination.key.host,
        port: destination.key.port,
        method: &parts.method,
        credentials: &own,
    })?;
    let body = read_body(call, clock, &parts, body).await?;
    put_in(call, &destination, &placings, &mut parts.headers)?;
    finish_head(&mut parts.headers, &parts.method, &destination, &body)?;
    call.meter.bytes(bytes)?;
    let method = parts.method.clone();
    let mut request = Box::new(Request::new(body));
    *request.method_mut() = parts.method;
    *request.uri_mut() = destination.target.clone();
    *request.headers_mut() = parts.headers;
    Ok(Ready {
        request,
        method,
        rules,
        destination,
        reusable: own.is_empty(),
    })
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
) -> Result<Outgoing, Error> {
    let declared = headers::content_length(&parts.headers)?;
    let mut body = Box::new(RequestBody::new(guest, declared, Arc::clone(call))?);
    let safe = parts.method.is_safe();
    let none = safe || body.length() == Some(0);
    let enough = match (none, call.placeholders.any()) {
        (true, _) => 1,
        (false, true) => READ_AHEAD,
        (false, false) => return Ok(body),
    };
    let end = clock.end(None);
    clock
        .within(end, Stage::RequestBody, pin!(body.read_ahead(enough)))
        .await??;
    if safe && body.seen() > 0 {
        return Err(Denied::new(Rule::BodyOnSafeMethod, &parts.method).into());
    }
    Ok(body)
}

/// Puts the values in, and asks for a response that values can be found in.
fn put_in(
    call: &Shared,
    destination: &Destination,
    placings: &[Placing],
    headers: &mut HeaderMap,
) -> Result<(), Error> {
    let key = &destination.key;
    for placing in placings {
        let secret = call.secrets.load(&placing.slug, key)?;
        headers.insert(&placing.header, secret.header(&placing.prefix)?);
    }
    for place in call.egress.rules().secrets() {
        if place.is_at(key.https, &destination.host, key.port) {
            // Another call may have sent it there. What has no value that could
            // go out was not sent by anyone; what can't be looked for, it may echo.
            match call.secrets.load(&place.slug, key) {
                Err(error) if error.problem == SecretProblem::TooMuchMemory => {
                    return Err(error.into());
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
    if let Some(slug) = call.secrets.any(key) {
        // A value cannot be found in parts, nor in what is compressed.
        let partial = [header::RANGE, header::IF_RANGE];
        if partial.iter().any(|name| headers.contains_key(name)) {
            return Err(Denied::new(Rule::SecretRange, slug).into());
        }
        let identity = HeaderValue::from_static("identity");
        headers.insert(header::ACCEPT_ENCODING, identity);
    }
    Ok(())
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
