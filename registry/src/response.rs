//! Handles responses: the failure for a status, bodies of limited size, and the pages of lists.

use bytes::{Bytes, BytesMut};
use reqwest::header::{HeaderMap, LINK, LOCATION};
use reqwest::{Response, StatusCode};
use url::Url;

use crate::address::{origin, shown};
use crate::failure::{Failure, FailureReason, bytes, quoted};
use crate::hosts::{AddressRefused, NOT_GLOBAL};

/// How many bytes of an error's body are read.
const MAX_ERROR: u64 = 16 * 1024;

/// The failure for an unexpected status. It repeats the registry's message, shortened and without
/// control characters.
pub(crate) async fn unexpected(response: Response) -> Failure {
    let place = shown(response.url());
    // A registry's paths start with `/v2/` (the distribution specification).
    let of_registry = response.url().path().starts_with("/v2/");
    let status = response.status();
    let reason = match status {
        StatusCode::NOT_FOUND => FailureReason::NotFound,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => FailureReason::CredentialsRefused,
        StatusCode::TOO_MANY_REQUESTS
        | StatusCode::BAD_GATEWAY
        | StatusCode::SERVICE_UNAVAILABLE
        | StatusCode::GATEWAY_TIMEOUT => FailureReason::Busy,
        status if status.is_redirection() => FailureReason::RedirectRefused,
        _ => FailureReason::Failed,
    };
    let message = read(response, MAX_ERROR).await.ok().and_then(|body| {
        let body: serde_json::Value = serde_json::from_slice(&body).ok()?;
        let error = body.get("errors")?.get(0)?;
        let text = |key| error.get(key).and_then(serde_json::Value::as_str);
        Some(match (text("code"), text("message")) {
            (Some(code), Some(message)) => quoted(&format!("{code}: {message}")),
            (Some(text), None) | (None, Some(text)) => quoted(text),
            (None, None) => return None,
        })
    });
    let found = match message {
        Some(message) => format!("status {}, {message}", status.as_u16()),
        None => format!("status {}", status.as_u16()),
    };
    let failure = Failure::new(reason).at(place).found(found);
    match reason {
        FailureReason::NotFound if !of_registry => {
            failure.hinted("check the address: the server has nothing there")
        }
        FailureReason::RedirectRefused => failure.hinted(
            "this redirect can't be followed: check that the address is the registry's own",
        ),
        _ => failure,
    }
}

/// Reads the whole body. More than `max` bytes, announced or received, are refused.
pub(crate) async fn read(mut response: Response, max: u64) -> Result<Bytes, Failure> {
    let place = shown(response.url());
    let refuse = || {
        Failure::new(FailureReason::ResponseTooLarge)
            .at(place.clone())
            .expected(format!("at most {}", bytes(max)))
    };
    if let Some(length) = response.content_length()
        && length > max
    {
        return Err(refuse().found(bytes(length)));
    }
    let mut body = BytesMut::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| broken(&error).at(place.clone()))?
    {
        if (body.len() as u64).saturating_add(chunk.len() as u64) > max {
            return Err(refuse());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// The failure for a broken connection. It names no URL, since URLs can contain secrets.
pub(crate) fn broken(error: &reqwest::Error) -> Failure {
    if let Some(refused) = refused_address(error) {
        return Failure::new(FailureReason::RedirectRefused)
            .expected("a global unicast address")
            .found(refused.to_string())
            .hinted(NOT_GLOBAL);
    }
    let reason = if error.is_timeout() {
        FailureReason::Timeout
    } else {
        FailureReason::Unreachable
    };
    let failure = Failure::new(reason).found(deepest(error));
    match advice(error) {
        Some(advice) => failure.hinted(advice),
        None => failure,
    }
}

/// The hint for a connection that failed for a known reason.
fn advice(error: &reqwest::Error) -> Option<&'static str> {
    causes(error).find_map(|cause| {
        let io = cause.downcast_ref::<std::io::Error>();
        match of_tls(cause) {
            Some(rustls::Error::InvalidCertificate(_)) => Some(
                "name the certificate authority that signed the server's certificate: \
                 `--ca-file PEM`, or `ca_file` in a `[[registry]]` of toolward.toml",
            ),
            // The first bytes of a plain http answer are not a TLS record.
            Some(rustls::Error::InvalidMessage(_)) => Some(
                "the server does not speak TLS; for one on this machine that speaks plain http \
                 give `--plain-http`, or write `plain_http = true` into its `[[registry]]`",
            ),
            Some(_) => None,
            None => (io?.kind() == std::io::ErrorKind::ConnectionRefused)
                .then_some("nothing listens there: check host and port, and that the server runs"),
        }
    })
}

/// The innermost cause, which has the details.
fn deepest(error: &reqwest::Error) -> String {
    let deepest = causes(error).skip(1).last();
    deepest.map_or_else(|| "a broken connection".to_owned(), ToString::to_string)
}

/// Whether a retry would not help: after a TLS error, such as a certificate that is not trusted, or
/// after a redirect to a refused address.
pub(crate) fn is_final(error: &reqwest::Error) -> bool {
    refused_address(error).is_some() || causes(error).any(|error| of_tls(error).is_some())
}

fn refused_address(error: &reqwest::Error) -> Option<&AddressRefused> {
    causes(error).find_map(|cause| cause.downcast_ref())
}

/// Finds a TLS error, which may be nested in I/O errors.
fn of_tls<'e>(error: &'e (dyn std::error::Error + 'static)) -> Option<&'e rustls::Error> {
    let mut error = error;
    loop {
        if let Some(tls) = error.downcast_ref() {
            return Some(tls);
        }
        error = error.downcast_ref::<std::io::Error>()?.get_ref()?;
    }
}

/// An error and its sources, the outermost first.
fn causes(
    error: &reqwest::Error,
) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> + use<'_> {
    let first: &(dyn std::error::Error + 'static) = error;
    std::iter::successors(Some(first), |error| error.source())
}

/// The next page of the same list, from the header `Link`.
pub(crate) fn next_page(from: &Url, headers: &HeaderMap) -> Result<Option<Url>, Failure> {
    let Some(link) = headers.get(LINK) else {
        return Ok(None);
    };
    let refuse = || {
        Failure::new(FailureReason::ResponseInvalid)
            .at(shown(from))
            .expected("`Link` to the next page of the same list")
    };
    let link = link.to_str().map_err(|_| refuse())?;
    let (target, parameters) = link
        .strip_prefix('<')
        .and_then(|link| link.split_once('>'))
        .ok_or_else(refuse)?;
    if !parameters.replace('"', "").contains("rel=next") {
        return Ok(None);
    }
    let to = from.join(target).map_err(|_| refuse())?;
    if origin(&to) == origin(from) && to.path() == from.path() {
        return Ok(Some(to));
    }
    Err(refuse().found(shown(&to)))
}

/// The address in a response's `Location`. `expected` describes it in the failure if it is missing.
pub(crate) fn location(
    from: &Url,
    response: &Response,
    expected: &'static str,
) -> Result<Url, Failure> {
    response
        .headers()
        .get(LOCATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|location| from.join(location).ok())
        .ok_or_else(|| {
            Failure::new(FailureReason::ResponseInvalid)
                .at(shown(from))
                .expected(expected)
        })
}
