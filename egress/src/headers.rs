//! Decides which headers a guest may send and see. Only the host sets framing, routing and proxy
//! headers, since a guest could use them to smuggle a second request or to impersonate another
//! client.

use http::header::{self, HeaderMap, HeaderName};
use toolward_contract::header as header_rules;

use crate::error::{Denied, Error, Limit, LimitKind, Rule};

/// The most headers of one request. Few servers accept more.
pub(crate) const MAX_HEADERS: usize = 100;

/// Headers with credentials. A guest may send them with a placeholder, or if policy grants it.
pub(crate) const CREDENTIALS: &[HeaderName] = &[header::AUTHORIZATION, header::COOKIE];

/// Headers of a response that concern only the connection (RFC 9110 section 7.6.1).
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Whether a guest may never set this header.
pub fn is_forbidden(name: &HeaderName) -> bool {
    header_rules::is_forbidden(name.as_str())
}

/// Checks the headers that a guest wants to send. Whether it may send `authorization` and `cookie`
/// is checked elsewhere. Returns the headers' number of bytes on the wire.
///
/// ```
/// use http::{HeaderMap, HeaderName, HeaderValue};
/// use toolward_egress::headers;
///
/// assert!(headers::is_forbidden(&HeaderName::from_static("connection")));
/// let mut map = HeaderMap::new();
/// map.insert("accept", HeaderValue::from_static("text/html"));
/// assert!(headers::check(&map, 1000).is_ok());
/// map.insert("host", HeaderValue::from_static("other.example"));
/// let error = headers::check(&map, 1000).map_err(|error| error.code());
/// assert_eq!(error, Err("header-forbidden"));
/// ```
///
/// # Errors
/// [`Rule::HeaderForbidden`], [`Rule::HeaderValue`], [`Rule::ContentLength`], or
/// [`LimitKind::RequestHeadBytes`].
pub fn check(headers: &HeaderMap, max_bytes: u64) -> Result<u64, Error> {
    let kind = LimitKind::RequestHeadBytes;
    Limit::check(kind, headers.len() as u64, MAX_HEADERS as u64)?;
    let bytes = size(headers);
    Limit::check(kind, bytes, max_bytes)?;
    for (name, value) in headers {
        if is_forbidden(name) {
            return Err(Denied::new(Rule::HeaderForbidden, name).into());
        }
        if !is_plain(value.as_bytes()) {
            return Err(Denied::new(Rule::HeaderValue, name).into());
        }
    }
    content_length(headers)?;
    Ok(bytes)
}

/// Whether a value has only printable ASCII, with spaces and tabs inside. Other bytes (obs-text,
/// RFC 9110 section 5.5) are read as Latin-1 by some and as UTF-8 by others.
pub(crate) fn is_plain(value: &[u8]) -> bool {
    let inner = |b: &u8| b.is_ascii_graphic() || *b == b' ' || *b == b'\t';
    let edge = |b: Option<&u8>| b.is_none_or(u8::is_ascii_graphic);
    value.iter().all(inner) && edge(value.first()) && edge(value.last())
}

/// The length that the headers declare. `None` if they declare none.
///
/// # Errors
/// [`Rule::ContentLength`] for several lengths, or a length that is not only digits.
pub(crate) fn content_length(headers: &HeaderMap) -> Result<Option<u64>, Denied> {
    let mut values = headers.get_all(header::CONTENT_LENGTH).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let length = digits.then(|| text.parse().ok()).flatten();
    if length.is_none() || values.next().is_some() {
        return Err(Denied::new(Rule::ContentLength, text));
    }
    Ok(length)
}

/// The bytes on the wire: name, colon, space, value, line end.
pub(crate) fn size(headers: &HeaderMap) -> u64 {
    let bytes = |(name, value): (&HeaderName, &header::HeaderValue)| {
        (name.as_str().len() + value.len() + 4) as u64
    };
    headers.iter().map(bytes).sum()
}

/// Removes from a response the headers that concern only the connection or a proxy.
pub(crate) fn filter_response(headers: &mut HeaderMap) {
    // `connection` can name further hop-by-hop headers. These end-to-end headers stay even if
    // `connection` names them.
    let keep = [
        header::CONTENT_LENGTH,
        header::CONTENT_TYPE,
        header::CONTENT_ENCODING,
        header::CACHE_CONTROL,
    ];
    let named = headers.get_all(header::CONNECTION).iter();
    let named = named.filter_map(|value| value.to_str().ok());
    let named = named.flat_map(|value| value.split(','));
    let named = named.filter_map(|name| name.trim().parse::<HeaderName>().ok());
    let named = named.filter(|name| !keep.contains(name));
    let is_proxys = |name: &&HeaderName| name.as_str().starts_with("proxy-");
    let proxys = headers.keys().filter(is_proxys).cloned();
    let own = HOP_BY_HOP.iter().copied().map(HeaderName::from_static);
    let gone: Vec<HeaderName> = named.chain(proxys).chain(own).collect();
    for name in &gone {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn rule(name: &'static str, value: &'static [u8]) -> Option<&'static str> {
        let mut headers = HeaderMap::new();
        headers.append(
            HeaderName::from_static(name),
            HeaderValue::from_bytes(value).unwrap(),
        );
        check(&headers, 1000).err().map(|error| error.code())
    }

    #[test]
    fn framing_and_proxies_are_not_the_guests() {
        for name in [
            "host",
            "connection",
            "keep-alive",
            "proxy-connection",
            "proxy-authorization",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
            "expect",
            "via",
            "forwarded",
            "x-forwarded-for",
            "x-forwarded-host",
            "x_forwarded_host",
            "transfer_encoding",
            "content_length",
            "x-http-method-override",
            "x-original-url",
        ] {
            assert_eq!(rule(name, b"a"), Some("header-forbidden"), "{name}");
        }
        for name in ["accept", "user-agent", "x-api-key", "x_api_key", "range"] {
            assert_eq!(rule(name, b"a b"), None, "{name}");
        }
    }

    #[test]
    fn values_are_printable_ascii() {
        for value in ["é".as_bytes(), b" a", b"a\t", b"\xff", b"a\xa0b"] {
            assert_eq!(rule("accept", value), Some("header-value"), "{value:?}");
        }
        assert_eq!(rule("accept", b"a\tb"), None);
        assert_eq!(rule("accept", b""), None);
    }

    #[test]
    fn a_length_is_one_plain_number() {
        for value in [
            "",
            "+1",
            "-1",
            "1, 1",
            "1 1",
            "0x1",
            "99999999999999999999",
            "1.0",
        ] {
            assert_eq!(
                rule("content-length", value.as_bytes()),
                Some("content-length"),
                "{value:?}"
            );
        }
        assert_eq!(rule("content-length", b"7"), None);
        let mut headers = HeaderMap::new();
        headers.append("content-length", HeaderValue::from_static("7"));
        headers.append("content-length", HeaderValue::from_static("7"));
        assert!(check(&headers, 1000).is_err());
    }

    #[test]
    fn number_and_size_are_bounded() {
        let mut headers = HeaderMap::new();
        headers.append("a", HeaderValue::from_static("12345"));
        assert_eq!(check(&headers, 10), Ok(10));
        assert_eq!(
            check(&headers, 9).map_err(|e| e.code()),
            Err("request-head-bytes")
        );
        for _ in 0..MAX_HEADERS {
            headers.append("a", HeaderValue::from_static("1"));
        }
        assert_eq!(
            check(&headers, 10_000).map_err(|e| e.code()),
            Err("request-head-bytes")
        );
    }

    #[test]
    fn a_response_keeps_what_is_end_to_end() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, x-hop, content-length"),
            ("x-hop", "1"),
            ("keep-alive", "timeout=5"),
            ("proxy-authenticate", "Basic"),
            ("proxy-status", "a"),
            ("transfer-encoding", "chunked"),
            ("content-length", "1"),
            ("set-cookie", "a=b"),
            ("www-authenticate", "Basic"),
            ("location", "http://127.0.0.1/"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        filter_response(&mut headers);
        let mut names: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "content-length",
                "location",
                "set-cookie",
                "www-authenticate"
            ]
        );
    }
}
