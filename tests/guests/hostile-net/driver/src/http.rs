//! Requests with every part as the input has it.

use serde::Deserialize;
use serde_json::{Value, json};
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, HeaderError, Method, OutgoingRequest,
    RequestOptions, Scheme,
};

use crate::body::{self, Reading, Sending};

/// A header's value: text, or bytes that need not be.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Bytes {
    Text(String),
    Raw(Vec<u8>),
}

impl Bytes {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Bytes::Text(text) => text.clone().into_bytes(),
            Bytes::Raw(bytes) => bytes.clone(),
        }
    }
}

#[derive(Clone, Deserialize)]
pub(crate) struct Request {
    #[serde(default = "get")]
    method: String,
    /// Cut into scheme, authority and path at `://` and the first `/` after it; the
    /// three fields below override it.
    url: Option<String>,
    /// `https`, `http` or any other word.
    scheme: Option<String>,
    authority: Option<String>,
    path: Option<String>,
    #[serde(default)]
    headers: Vec<(String, Bytes)>,
    /// Sets the headers by one call with all of them instead of one by one.
    #[serde(default)]
    headers_at_once: bool,
    connect_timeout_ns: Option<u64>,
    first_byte_timeout_ns: Option<u64>,
    between_bytes_timeout_ns: Option<u64>,
    #[serde(flatten)]
    sending: Sending,
    #[serde(flatten)]
    reading: Reading,
}

fn get() -> String {
    "GET".to_owned()
}

#[derive(Deserialize)]
pub(crate) struct Parallel {
    n: u64,
    request: Request,
    /// How long the requests that were begun are kept before any is looked at.
    #[serde(default)]
    hold_ms: u64,
}

/// What went wrong, and at which step.
pub(crate) type Refused = (String, String);

pub(crate) fn refusal((at, err): Refused) -> Value {
    json!({"err": err, "at": at})
}

fn at<E>(step: &str, name: impl Fn(E) -> String) -> impl Fn(E) -> Refused {
    let step = step.to_owned();
    move |error| (step.clone(), name(error))
}

fn no(step: &'static str) -> impl Fn(()) -> Refused {
    move |()| (step.to_owned(), "refused".to_owned())
}

/// The name of a code, `HttpRequestDenied` for instance, with what it carries.
pub(crate) fn code(code: ErrorCode) -> String {
    let name = format!("{code:?}");
    name.trim_start_matches("ErrorCode::").to_owned()
}

fn header_error(error: HeaderError) -> String {
    format!("{error:?}")
        .trim_start_matches("HeaderError::")
        .to_owned()
}

fn fields(request: &Request) -> Result<Fields, Refused> {
    let pairs = request
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), value.bytes()));
    if request.headers_at_once {
        let pairs: Vec<_> = pairs.collect();
        return Fields::from_list(&pairs).map_err(at("headers", header_error));
    }
    let fields = Fields::new();
    for (name, value) in pairs {
        fields
            .append(&name, &value)
            .map_err(at(&format!("header {name}"), header_error))?;
    }
    Ok(fields)
}

fn method(name: &str) -> Method {
    match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "CONNECT" => Method::Connect,
        "OPTIONS" => Method::Options,
        "TRACE" => Method::Trace,
        "PATCH" => Method::Patch,
        other => Method::Other(other.to_owned()),
    }
}

/// Builds the request, hands it to the host and sends its body.
pub(crate) fn begin(request: &Request) -> Result<FutureIncomingResponse, Refused> {
    let (mut scheme, mut authority, mut path) = (
        request.scheme.clone(),
        request.authority.clone(),
        request.path.clone(),
    );
    if let Some((of_url, rest)) = request.url.as_deref().and_then(|url| url.split_once("://")) {
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        scheme = scheme.or(Some(of_url.to_owned()));
        authority = authority.or(Some(rest[..end].to_owned()));
        path = path.or(Some(rest[end..].to_owned()).filter(|path| !path.is_empty()));
    }
    let scheme = scheme.map(|scheme| match scheme.as_str() {
        "https" => Scheme::Https,
        "http" => Scheme::Http,
        _ => Scheme::Other(scheme),
    });

    let outgoing = OutgoingRequest::new(fields(request)?);
    outgoing
        .set_method(&method(&request.method))
        .map_err(no("method"))?;
    outgoing.set_scheme(scheme.as_ref()).map_err(no("scheme"))?;
    outgoing
        .set_authority(authority.as_deref())
        .map_err(no("authority"))?;
    outgoing
        .set_path_with_query(path.as_deref())
        .map_err(no("path"))?;
    let body = outgoing.body().map_err(no("body"))?;

    let options = RequestOptions::new();
    options
        .set_connect_timeout(request.connect_timeout_ns)
        .map_err(no("connect timeout"))?;
    options
        .set_first_byte_timeout(request.first_byte_timeout_ns)
        .map_err(no("first byte timeout"))?;
    options
        .set_between_bytes_timeout(request.between_bytes_timeout_ns)
        .map_err(no("between bytes timeout"))?;
    let pending = outgoing_handler::handle(outgoing, Some(options)).map_err(at("handle", code))?;
    if let Err(refused) = body::send(&request.sending, body) {
        // The answer, where there is one, says more than a broken stream does.
        return match finished(&pending) {
            Some(Err(error)) => Err(("response".to_owned(), code(error))),
            _ => Err(refused),
        };
    }
    Ok(pending)
}

fn finished(
    pending: &FutureIncomingResponse,
) -> Option<Result<wasip2::http::types::IncomingResponse, ErrorCode>> {
    pending.get()?.ok()
}

fn end(request: &Request, pending: &FutureIncomingResponse) -> Result<Value, Refused> {
    pending.subscribe().block();
    match finished(pending) {
        Some(Ok(response)) => body::read(&request.reading, response),
        Some(Err(error)) => Err(("response".to_owned(), code(error))),
        None => Err(("response".to_owned(), "none".to_owned())),
    }
}

/// One request; `{"ok": …}` with what came back, or `{"err": …, "at": …}`.
pub(crate) fn one(request: &Request) -> Value {
    let result = begin(request).and_then(|pending| end(request, &pending));
    result.map_or_else(refusal, |response| json!({"ok": response}))
}

/// `n` requests begun before the first answer is read; gives a tally.
pub(crate) fn parallel(parallel: &Parallel) -> Value {
    let begun: Vec<_> = (0..parallel.n).map(|_| begin(&parallel.request)).collect();
    std::thread::sleep(std::time::Duration::from_millis(parallel.hold_ms));
    let mut tally = hostile_common::Tally::default();
    for pending in begun {
        let result = pending.and_then(|pending| end(&parallel.request, &pending));
        tally.add(result.map_or_else(refusal, |response| json!({"ok": response["status"]})));
    }
    tally.value()
}

/// `n` sets of headers, each kept.
pub(crate) fn fields_flood(n: u64) -> Value {
    for _ in 0..n {
        std::mem::forget(Fields::new());
    }
    json!(n)
}
