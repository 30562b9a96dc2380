//! What clients do that the protocol's library refuses, and that harms nothing.

use http::header::ACCEPT;
use http::{HeaderMap, HeaderName, HeaderValue};

pub(super) const SESSION_HEADER: HeaderName = HeaderName::from_static("mcp-session-id");

/// The first revision without `initialize`.
const NEWER_ERA: &str = "2026-07-28";
const VERSION_HEADER: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");

/// The media types of answers.
const MEDIA_TYPES: [&str; 2] = ["application/json", "text/event-stream"];

/// Names the media types that ranges such as `*/*` admit (RFC 9110 section 12.5.1). Without
/// the header all are admitted.
pub(super) fn name_media_types(headers: &mut HeaderMap) {
    let named = {
        let values: Vec<&str> = headers
            .get_all(ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .collect();
        let admitted = MEDIA_TYPES
            .into_iter()
            .filter(|media_type| values.is_empty() || admits(&values, media_type));
        admitted.collect::<Vec<_>>().join(", ")
    };
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

/// The weight of a range, if it is listed.
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

/// Drops what a client that starts over still sends of its former session. Its `initialize`
/// names the version that it wants. A header that names another method stays refused, since
/// proxies route by it.
pub(super) fn start_over(headers: &mut HeaderMap) {
    headers.remove(SESSION_HEADER);
    let mut methods = headers.get_all(METHOD_HEADER).iter();
    let agrees = methods.next().is_none_or(|method| method == "initialize");
    // The newer era has no `initialize`, and answers that as an unknown method.
    let is_newer = headers
        .get(VERSION_HEADER)
        .is_some_and(|version| version == NEWER_ERA);
    if agrees && methods.next().is_none() && !is_newer {
        headers.remove(VERSION_HEADER);
    }
}
