//! Responses to requests that are rejected before they reach the protocol: an HTTP status
//! and a JSON-RPC error, which clients show to people.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, StatusCode};
use rmcp::model::ErrorData;
use serde_json::{Value, json};
use toolward_support::report::{Code, codes};

use super::Refusal;
use crate::methods::PARAMS_INVALID;
use crate::strict::Malformed;

/// JSON-RPC: not valid JSON.
const PARSE_ERROR: i32 = -32700;
/// JSON-RPC: not a valid request.
const INVALID_REQUEST: i32 = -32600;
/// JSON-RPC, a code for servers to define: any other rejection.
const SERVER_ERROR: i32 = -32000;

/// The `Retry-After` of a request beyond a limit.
const RETRY_AFTER_DELAY: Duration = Duration::from_secs(1);

codes! {
    /// Why a request is rejected.
    #[derive(Debug, Clone, PartialEq)]
    pub(super) enum HttpRejection: Error {
        NoHost = "host-missing", "expected one `Host` header with the server's name";
        Host = "host-not-allowed",
            "this server does not answer to the name in `Host`; its operator can allow the name";
        Origin = "origin-not-allowed",
            "requests of pages from this `Origin` are refused; the operator can allow the origin";
        Token(refusal: Refusal, challenge: HeaderValue) -> refusal, ("{}", refusal.message());
        Method(allowed: &'static str) = "method-not-allowed", "the path takes no request of this method",
            ("expected one of the methods {allowed}");
        NotAcceptable = "not-acceptable", "expected `Accept` with application/json and text/event-stream";
        MediaType = "media-type", "expected `Content-Type: application/json`";
        NotJson = "not-json", "expected a message in JSON, with each member once";
        NoMessage(found: &'static str) = "no-message", "expected one message of JSON-RPC 2.0",
            ("expected one message of JSON-RPC 2.0, found {found}");
        TooLarge(limit: usize) = "body-too-large", "the body is larger than the server reads",
            ("expected a body of at most {limit} bytes");
        TooComplex(expected: String) = "message-too-complex", ("{expected}");
        Malformed(malformed: Malformed) -> (malformed.code()), ("{}", malformed.message());
        Params(error: ErrorData) -> (PARAMS_INVALID), ("{}", error.message);
        TooSlow = "body-too-slow", "the body did not arrive in time";
        Broken = "body-broken", "the body ended before it was whole";
        TooMany(what: &'static str) = "too-many-requests", "too many requests or connections at once; retry when one has ended",
            ("too many {what} at once; retry when one has ended");
        Busy = "server-busy", "messages of others take the memory; retry soon";
        Session = "session-unknown", "no such session; start a new one";
        /// The protocol's library refused the request.
        Protocol(status: StatusCode, text: String) = "request-refused", "the request breaks a rule of the protocol",
            ("{text}");
        /// `what` is at `path` instead.
        Missing(what: &'static str, path: &'static str) = "path-unknown", "the server has nothing at this path",
            ("there is nothing here; {what} {path}");
    }
}

/// The codes of rejected requests.
pub const REJECTIONS: &[&[Code]] = &[HttpRejection::CODES, Refusal::CODES];

impl HttpRejection {
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

    /// The error of JSON-RPC, without the request's id.
    pub(super) fn answer(&self) -> Value {
        let number = match self {
            Self::NotJson => PARSE_ERROR,
            Self::NoMessage(_) | Self::TooComplex(_) | Self::Protocol(..) => INVALID_REQUEST,
            Self::Malformed(malformed) => malformed.of_message().code.0,
            Self::Params(error) => error.code.0,
            _ => SERVER_ERROR,
        };
        let data = match self {
            Self::Params(error) => error.data.clone().unwrap_or_default(),
            _ => json!({ "code": self.code() }),
        };
        json!({
            "jsonrpc": "2.0",
            "id": null,
            "error": { "code": number, "message": self.to_string(), "data": data },
        })
    }
}

impl IntoResponse for HttpRejection {
    fn into_response(self) -> Response {
        let headers = [
            (CONTENT_TYPE, "application/json"),
            (CACHE_CONTROL, "no-store"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        let body = self.answer().to_string();
        let mut response = (self.status(), headers, body).into_response();
        let headers = response.headers_mut();
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
