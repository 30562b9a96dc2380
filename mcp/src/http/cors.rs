//! Cross-origin requests of pages (the Fetch standard, "HTTP extensions"). The origin of a
//! request was checked before; the answer lets its page read it.

use axum::body::Body;
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

/// The methods of messages.
const METHODS: &str = "GET, POST, DELETE";

/// The headers that clients of MCP send.
const HEADERS: [&str; 11] = [
    "accept",
    "authorization",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "baggage",
    "traceparent",
    "tracestate",
];

/// The prefix of headers that repeat arguments of a tool.
const PARAMETER_PREFIX: &str = "mcp-param-";

/// The headers of answers that a page may read.
const EXPOSED: &str = "Mcp-Session-Id, WWW-Authenticate, Retry-After";

/// Seconds for which a browser may keep the answer to a preflight.
const MAX_AGE: &str = "600";

/// Answers a preflight, and lets the page read any other answer, errors included. A preflight
/// carries no token and reaches nothing. `Access-Control-Allow-Credentials` is never sent,
/// since a page has to know its token.
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
        headers.insert(
            ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static(EXPOSED),
        );
    }
    response
}

fn preflight(asked: &HeaderMap) -> Response {
    let mut allowed = HEADERS.join(", ");
    let asked = asked.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let names = asked
        .filter_map(|value| value.to_str().ok())
        .flat_map(|names| names.split(','))
        .filter_map(|name| HeaderName::try_from(name.trim()).ok());
    for name in names.filter(|name| name.as_str().starts_with(PARAMETER_PREFIX)) {
        allowed.push_str(", ");
        allowed.push_str(name.as_str());
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static(METHODS),
    );
    if let Ok(allowed) = HeaderValue::try_from(allowed) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    }
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
    response
}
