//! Responses to requests that are rejected before they reach the protocol: an HTTP status
//! and a JSON-RPC error, which clients show to people.

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};
use toolward_support::report::codes;

use super::Refusal;
use crate::params::NotAnObject;
use crate::strict::Malformed;

/// JSON-RPC: not valid JSON.
const PARSE_ERROR: i32 = -32700;
/// JSON-RPC: not a valid request.
const INVALID_REQUEST: i32 = -32600;
/// JSON-RPC, for servers to define: rejected before it was parsed.
const SERVER_ERROR: i32 = -32000;

/// The `Retry-After` of a request beyond a limit.
const RETRY_AFTER_DELAY: Duration = Duration::from_secs(1);

/// Why a request is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rejection {
    NoHost,
    Host,
    Origin,
    Token(Refusal, HeaderValue),
    Method(&'static str),
    NotAcceptable,
    MediaType,
    NotJson,
    NoMessage(&'static str),
    TooLarge(usize),
    TooComplex(String),
    Malformed(Malformed),
    Params(NotAnObject),
    TooSlow,
    Broken,
    TooMany(&'static str),
    Busy,
    Session,
    /// The protocol's library refused it.
    Protocol(StatusCode, String),
    /// What is at which path instead.
    Missing(&'static str, &'static str),
}

codes! {
    for Rejection {
        Self::NoHost = "host-missing";
        Self::Host = "host-not-allowed";
        Self::Origin = "origin-not-allowed";
        Self::Token(Refusal::Missing, _) = "token-missing";
        Self::Token(Refusal::Unknown, _) = "token-unknown";
        Self::Token(Refusal::Expired, _) = "token-expired";
        Self::Method(_) = "method-not-allowed";
        Self::NotAcceptable = "not-acceptable";
        Self::MediaType = "media-type";
        Self::NotJson = "not-json";
        Self::NoMessage(_) = "no-message";
        Self::TooLarge(_) = "body-too-large";
        Self::TooComplex(_) = "message-too-complex";
        Self::Malformed(malformed) = (malformed.code());
        Self::Params(wrong) = (wrong.code());
        Self::TooSlow = "body-too-slow";
        Self::Broken = "body-broken";
        Self::TooMany(_) = "too-many-requests";
        Self::Busy = "server-busy";
        Self::Session = "session-unknown";
        Self::Protocol(..) = "request-refused";
        Self::Missing(..) = "path-unknown";
    }
}

impl Rejection {
    fn status(&self) -> StatusCode {
        match self {
            Self::NoHost
            | Self::NotJson
            | Self::NoMessage(_)
            | Self::Malformed(_)
            | Self::Params(_)
            | Self::Broken => StatusCode::BAD_REQUEST,
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Origin => StatusCode::FORBIDDEN,
            Self::Token(..) => StatusCode::UNAUTHORIZED,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
            Self::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge(_) | Self::TooComplex(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::TooMany(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Session | Self::Missing(..) => StatusCode::NOT_FOUND,
            Self::Protocol(status, _) => *status,
        }
    }

    fn message(&self) -> String {
        match self {
            Self::NoHost => "expected one `Host` header with the server's name".to_owned(),
            Self::Host => "this server does not answer to the name in `Host`; its operator can \
                           allow the name"
                .to_owned(),
            Self::Origin => "requests of pages from this `Origin` are refused; the operator can \
                             allow the origin"
                .to_owned(),
            Self::Token(Refusal::Missing, _) => "expected one header `Authorization: Bearer` with \
                                                 a token that the server's operator gives"
                .to_owned(),
            Self::Token(Refusal::Unknown, _) => {
                "this token is not known; ask the server's operator for one".to_owned()
            }
            Self::Token(Refusal::Expired, _) => {
                "this token has expired; ask the server's operator for another".to_owned()
            }
            Self::Method(allowed) => format!("expected one of the methods {allowed}"),
            Self::NotAcceptable => {
                "expected `Accept` with application/json and text/event-stream".to_owned()
            }
            Self::MediaType => "expected `Content-Type: application/json`".to_owned(),
            Self::NotJson => "expected a message in JSON, with each member once".to_owned(),
            Self::NoMessage(found) => {
                format!("expected one message of JSON-RPC 2.0, found {found}")
            }
            Self::TooLarge(limit) => format!("expected a body of at most {limit} bytes"),
            Self::TooComplex(expected) => expected.clone(),
            Self::Malformed(malformed) => malformed.message(),
            Self::Params(wrong) => wrong.message(),
            Self::TooSlow => "the body did not arrive in time".to_owned(),
            Self::Broken => "the body ended before it was whole".to_owned(),
            Self::TooMany(what) => format!("too many {what} at once; retry when one has ended"),
            Self::Busy => "messages of others take the memory; retry soon".to_owned(),
            Self::Protocol(_, text) => text.clone(),
            Self::Session => "no such session; start a new one".to_owned(),
            Self::Missing(what, path) => format!("there is nothing here; {what} {path}"),
        }
    }
}

impl Rejection {
    /// The error of JSON-RPC, without the request's id.
    pub(super) fn answer(&self) -> Value {
        let number = match self {
            Self::NotJson => PARSE_ERROR,
            Self::NoMessage(_) | Self::TooComplex(_) | Self::Protocol(..) => INVALID_REQUEST,
            Self::Malformed(malformed) => malformed.of_message().code.0,
            Self::Params(wrong) => wrong.error().code.0,
            _ => SERVER_ERROR,
        };
        let data = match self {
            Self::Params(wrong) => wrong.error().data.unwrap_or_default(),
            _ => json!({ "code": self.code() }),
        };
        json!({
            "jsonrpc": "2.0",
            "id": null,
            "error": { "code": number, "message": self.message(), "data": data },
        })
    }
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let body = self.answer();
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        match self {
            Self::Token(_, challenge) => {
                headers.insert(WWW_AUTHENTICATE, challenge);
            }
            Self::TooMany(_) | Self::Busy => {
                headers.insert(RETRY_AFTER, HeaderValue::from(RETRY_AFTER_DELAY.as_secs()));
            }
            Self::Method(allowed) => {
                headers.insert(ALLOW, HeaderValue::from_static(allowed));
            }
            _ => {}
        }
        response
    }
}
