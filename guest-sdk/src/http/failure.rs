//! Errors of requests that got no response.

use wasip2::http::types::{ErrorCode, HeaderError};

use super::Request;
use crate::Error;

pub(super) fn denied(request: &Request) -> Error {
    Error::new(
        "unauthorised",
        format!(
            "{} is not granted: the contract, the driver's egress list and the operator's policy \
             all have to allow it",
            request.shown()
        ),
    )
}

pub(super) fn too_large(request: &Request, most: usize) -> Error {
    Error::new(
        "http:body_too_large",
        format!(
            "the answer to {} is longer than {most} bytes",
            request.shown()
        ),
    )
}

pub(super) fn header(name: &str, error: &HeaderError) -> Error {
    match error {
        HeaderError::Forbidden => Error::new(
            "unauthorised",
            format!("the host takes no header {name} from a driver"),
        ),
        _ => Error::new(
            "input_invalid",
            format!("the header {name} has a name or value that HTTP does not allow"),
        ),
    }
}

/// The error if the host does not accept a part of the URL.
pub(super) fn part(request: &Request, part: &str) -> Error {
    Error::new(
        "input_invalid",
        format!("the host takes no such {part}: {}", request.shown()),
    )
}

/// Converts the connection's error to an error for the caller.
pub(super) fn error(request: &Request, code: &ErrorCode) -> Error {
    let upstream =
        |what: &str| Error::new("upstream_error", format!("{}: {what}", request.shown()));
    let error = match code {
        ErrorCode::HttpRequestDenied | ErrorCode::DestinationIpProhibited => denied(request),
        ErrorCode::ConnectionLimitReached => Error::new(
            "rate_limited",
            format!("{}: too many requests at once", request.shown()),
        )
        .retryable(),
        ErrorCode::DnsTimeout
        | ErrorCode::ConnectionTimeout
        | ErrorCode::ConnectionReadTimeout
        | ErrorCode::ConnectionWriteTimeout
        | ErrorCode::HttpResponseTimeout => upstream("no answer in time").retryable(),
        ErrorCode::DnsError(_) | ErrorCode::DestinationNotFound => {
            upstream("the host's name has no address").retryable()
        }
        ErrorCode::DestinationUnavailable
        | ErrorCode::DestinationIpUnroutable
        | ErrorCode::ConnectionRefused
        | ErrorCode::ConnectionTerminated
        | ErrorCode::HttpResponseIncomplete => {
            upstream("no connection, or it broke off").retryable()
        }
        ErrorCode::TlsProtocolError
        | ErrorCode::TlsCertificateError
        | ErrorCode::TlsAlertReceived(_) => upstream("no secure connection"),
        ErrorCode::HttpRequestBodySize(_) => Error::new(
            "http:body_too_large",
            format!(
                "the body of {} is longer than the host sends",
                request.shown()
            ),
        ),
        ErrorCode::HttpResponseBodySize(_) => Error::new(
            "http:body_too_large",
            format!(
                "the answer to {} is longer than the host takes",
                request.shown()
            ),
        ),
        ErrorCode::InternalError(Some(text)) => upstream(text),
        _ => upstream("the request failed"),
    };
    error.cause(&format!("{code:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_retryable_and_what_is_denied_is_not() {
        let request = Request::get("https://a.example/b?key=hidden");
        for (code, named, retryable) in [
            (ErrorCode::HttpRequestDenied, "unauthorised", false),
            (ErrorCode::DestinationIpProhibited, "unauthorised", false),
            (ErrorCode::ConnectionLimitReached, "rate_limited", true),
            (ErrorCode::ConnectionTimeout, "upstream_error", true),
            (ErrorCode::ConnectionRefused, "upstream_error", true),
            (ErrorCode::TlsCertificateError, "upstream_error", false),
            (
                ErrorCode::HttpResponseBodySize(None),
                "http:body_too_large",
                false,
            ),
        ] {
            let error = error(&request, &code);
            assert_eq!((error.code(), error.is_retryable()), (named, retryable));
            assert!(error.message().contains("GET https://a.example/b"));
            assert!(!error.message().contains("hidden"), "{}", error.message());
        }
    }
}
