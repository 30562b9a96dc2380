//! HTTP headers: which headers a web page may send and read (the Fetch standard, "HTTP
//! extensions"). The module also changes harmless headers of clients that the protocol's library
//! would refuse.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::{
    ACCEPT, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::methods::{self, Kind};

/// The HTTP methods that clients use.
const METHODS: &str = "GET, POST, DELETE";

/// The headers that clients of MCP send.
const HEADERS: &str = "accept, authorization, content-type, last-event-id, mcp-method, mcp-name, \
     mcp-protocol-version, mcp-session-id, baggage, traceparent, tracestate";

/// The prefix of headers that repeat arguments of a tool.
const PARAMETER_PREFIX: &str = "mcp-param-";

/// The headers of answers that a page may read.
const EXPOSED: &str = "Mcp-Session-Id, WWW-Authenticate, Retry-After";

/// Seconds for which a browser may keep the answer to a preflight.
const MAX_AGE: &str = "600";

/// Answers a preflight, and lets the page read any other answer, errors included. A preflight
/// carries no token and reaches nothing. `Access-Control-Allow-Credentials` is never sent, since a
/// page must send its token itself, and the server reads no cookies.
pub(super) async fn share(request: Request, next: Next) -> Response {
    let Some(origin) = request.headers().get(ORIGIN).cloned() else {
        return next.run(request).await;
    };
    let is_preflight = request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match is_preflight {
        true => preflight(request.headers()),
        false => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(VARY, HeaderValue::from_static("Origin"));
    if !is_preflight {
        let exposed = HeaderValue::from_static(EXPOSED);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
    response
}

fn preflight(asked: &HeaderMap) -> Response {
    let mut allowed = HEADERS.to_owned();
    let asked = asked.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let names = asked
        .filter_map(|value| value.to_str().ok())
        .flat_map(|names| names.split(','))
        .filter_map(|name| HeaderName::try_from(name.trim()).ok());
    for name in names.filter(|name| name.as_str().starts_with(PARAMETER_PREFIX)) {
        allowed.push_str(", ");
        allowed.push_str(name.as_str());
    }
    let headers = [
        (ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (ACCESS_CONTROL_ALLOW_HEADERS, &allowed),
        (ACCESS_CONTROL_MAX_AGE, MAX_AGE),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

pub(super) const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");

/// The first revision without `initialize`.
const NEWER_ERA: &str = "2026-07-28";
const VERSION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");

/// The media types of answers.
const MEDIA_TYPES: [&str; 2] = ["application/json", "text/event-stream"];

/// Replaces ranges in `Accept`, such as `*/*`, by the media types that they admit (RFC 9110 section
/// 12.5.1). Without this header, all media types are admitted.
pub(super) fn name_media_types(headers: &mut HeaderMap) {
    let values = headers.get_all(ACCEPT).iter();
    let values: Vec<&str> = values.filter_map(|value| value.to_str().ok()).collect();
    let admitted = MEDIA_TYPES
        .into_iter()
        .filter(|media_type| values.is_empty() || admits(&values, media_type));
    let named = admitted.collect::<Vec<_>>().join(", ");
    if !named.is_empty()
        && let Ok(named) = HeaderValue::try_from(named)
    {
        headers.insert(ACCEPT, named);
    }
}

/// Whether these ranges admit a media type; the most specific one decides.
fn admits(values: &[&str], media_type: &str) -> bool {
    let all_of_type = media_type.split('/').next().unwrap_or_default().to_owned() + "/*";
    [media_type, all_of_type.as_str(), "*/*"]
        .into_iter()
        .find_map(|wanted| weight(values, wanted))
        .is_some_and(|weight| weight > 0.0)
}

/// Returns the weight of a range, if it is listed.
fn weight(values: &[&str], wanted: &str) -> Option<f32> {
    values
        .iter()
        .flat_map(|value| value.split(','))
        .find_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let found = parts.next()?.eq_ignore_ascii_case(wanted);
            let quality = parts.find_map(|part| {
                let (name, value) = part.split_once('=')?;
                name.eq_ignore_ascii_case("q").then(|| value.parse().ok())?
            });
            found.then(|| quality.unwrap_or(1.0))
        })
}

/// Drops headers of a former session from the `initialize` of a client that starts over. The
/// message itself names the version that the client wants. If `mcp-method` names another method,
/// the request is still refused, since proxies route by this header.
pub(super) fn start_over(headers: &mut HeaderMap) {
    headers.remove(SESSION_HEADER);
    let mut names = headers.get_all(METHOD_HEADER).iter();
    let is_opening = |method: &HeaderValue| methods::named(method.as_bytes()).0 == Kind::Initialize;
    let agrees = names.next().is_none_or(is_opening);
    // The newer era answers `initialize` as an unknown method.
    let is_newer = headers
        .get(VERSION_HEADER)
        .is_some_and(|version| version == NEWER_ERA);
    if agrees && names.next().is_none() && !is_newer {
        headers.remove(VERSION_HEADER);
    }
}
