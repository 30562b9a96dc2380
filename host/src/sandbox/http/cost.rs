//! What the parts of a request or response take in the host's memory.

use http::{HeaderMap, HeaderName};
use wasmtime_wasi_http::p2::bindings::http::types::{Method, Scheme};
use wasmtime_wasi_http::p2::types::HostOutgoingRequest;

/// One field of a header map beside the text of its name and value: its places in
/// the map's three arrays, which are up to half empty, and two allocations each
/// for name and value. Meant to be more than they take.
pub(crate) const FIELD: u64 = 256;

/// The channel between an outgoing body and what sends it. Counted at either end,
/// since either may outlive the other.
pub(crate) const OUTGOING_BODY: u64 = 2 << 10;

/// A request under way, and the response until its body has been dropped: the
/// task, and the connection with its buffers (64 KiB to read through, as much for
/// TLS).
pub(crate) const EXCHANGE: u64 = 128 << 10;

/// All fields of a map.
pub(super) fn fields(map: &HeaderMap) -> u64 {
    map.iter().fold(0, |sum: u64, (name, value)| {
        sum.saturating_add(field(name.as_str().len(), value.len()))
    })
}

/// The fields of one name.
pub(super) fn named(map: &HeaderMap, name: &str) -> u64 {
    let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
        return 0;
    };
    let values = map.get_all(&name).iter();
    values.fold(0, |sum: u64, value| {
        sum.saturating_add(field(name.as_str().len(), value.len()))
    })
}

/// One field.
pub(super) fn field(name: usize, value: usize) -> u64 {
    FIELD
        .saturating_add(name as u64)
        .saturating_add(value as u64)
}

/// The texts of a request.
pub(super) fn texts(request: &HostOutgoingRequest) -> u64 {
    let method = match &request.method {
        Method::Other(method) => method.len(),
        _ => 0,
    };
    let scheme = match &request.scheme {
        Some(Scheme::Other(scheme)) => scheme.len(),
        _ => 0,
    };
    let optional = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    [
        method,
        scheme,
        optional(&request.authority),
        optional(&request.path_with_query),
    ]
    .into_iter()
    .fold(0, |sum: u64, length| sum.saturating_add(length as u64))
}
