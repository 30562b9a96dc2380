//! The linked `wasi:http`: wasmtime's implementation, with the memory of each handle counted for
//! the call. This module has sending, options, errors, and the cost of each handle. The rest is in
//! [`super::messages`] and [`super::bodies`].

use http::{HeaderMap, HeaderName};
use wasmtime::Result;
use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi_http::WasiHttpCtxView;
use wasmtime_wasi_http::p2::bindings::LinkOptions;
use wasmtime_wasi_http::p2::bindings::http::types::{
    self, Duration, ErrorCode, Method, RequestOptions, Scheme,
};
use wasmtime_wasi_http::p2::bindings::http::{outgoing_handler, types as interface};
use wasmtime_wasi_http::p2::types::{HostFutureIncomingResponse, HostOutgoingRequest};
use wasmtime_wasi_http::p2::{HeaderError, HttpError, HttpResult};

use crate::held::Held;

/// A store's `wasi:http`, borrowed for one host call.
pub(crate) struct View<'a> {
    /// wasmtime's implementation.
    pub(crate) http: WasiHttpCtxView<'a>,
    /// The counter of the call.
    pub(crate) held: &'a mut Held,
}

/// Forwards methods that do not change the counted memory.
macro_rules! forward {
    ($interface:path: $(fn $method:ident($($name:ident: $type:ty),*) -> $result:ty;)*) => {
        $(fn $method(&mut self, $($name: $type),*) -> $result {
            <WasiHttpCtxView<'_> as $interface>::$method(&mut self.http, $($name),*)
        })*
    };
}
pub(super) use forward;

/// Drops a resource, and subtracts the memory that is held with it.
macro_rules! freed {
    ($interface:path, $resource:ty) => {
        fn drop(&mut self, resource: $resource) -> Result<()> {
            self.held.free(resource.rep());
            <WasiHttpCtxView<'_> as $interface>::drop(&mut self.http, resource)
        }
    };
}
pub(super) use freed;

struct Http;

impl HasData for Http {
    type Data<'a> = View<'a>;
}

/// Adds `wasi:http` to `linker`.
pub(crate) fn add_to_linker<T: Send + 'static>(
    linker: &mut Linker<T>,
    view: fn(&mut T) -> View<'_>,
) -> Result<()> {
    let options = LinkOptions::default();
    outgoing_handler::add_to_linker::<T, Http>(linker, view)?;
    interface::add_to_linker::<T, Http>(linker, &options.into(), view)
}

impl outgoing_handler::Host for View<'_> {
    fn handle(
        &mut self,
        request: Resource<HostOutgoingRequest>,
        options: Option<Resource<RequestOptions>>,
    ) -> HttpResult<Resource<HostFutureIncomingResponse>> {
        // Sending consumes the request, even if it is refused.
        let parts = self.held.free(request.rep());
        let owned = options.as_ref().map(Resource::rep);
        let sent = outgoing_handler::Host::handle(&mut self.http, request, options);
        if let Some(number) = owned {
            // The guest has given the options away; without this deletion, they would stay until
            // the call ends.
            let own = Resource::<RequestOptions>::new_own(number);
            self.http.table.delete(own)?;
        }
        let response = sent?;
        self.held
            .add(response.rep(), parts.saturating_add(EXCHANGE));
        Ok(response)
    }
}

impl types::Host for View<'_> {
    forward! { types::Host:
        fn convert_error_code(error: HttpError) -> Result<ErrorCode>;
        fn convert_header_error(error: HeaderError) -> Result<types::HeaderError>;
        fn http_error_code(error: Resource<types::IoError>) -> Result<Option<ErrorCode>>;
    }
}

type Options = Resource<RequestOptions>;
type Timeout = Option<Duration>;

/// The options are three durations, whose memory the overhead of a handle covers.
impl types::HostRequestOptions for View<'_> {
    forward! { types::HostRequestOptions:
        fn new() -> Result<Options>;
        fn connect_timeout(options: Options) -> Result<Timeout>;
        fn set_connect_timeout(options: Options, timeout: Timeout) -> Result<Result<(), ()>>;
        fn first_byte_timeout(options: Options) -> Result<Timeout>;
        fn set_first_byte_timeout(options: Options, timeout: Timeout) -> Result<Result<(), ()>>;
        fn between_bytes_timeout(options: Options) -> Result<Timeout>;
        fn set_between_bytes_timeout(options: Options, timeout: Timeout) -> Result<Result<(), ()>>;
        fn drop(options: Options) -> Result<()>;
    }
}

/// The bytes of one field of a header map, without the text of its name and value. They cover its
/// places in the map's three arrays, which are up to half empty, and two allocations each for name
/// and value. The number is deliberately too high.
pub(crate) const FIELD: u64 = 256;

/// The bytes of the channel between an outgoing body and its sender. Both ends count them, since
/// either end may outlive the other.
pub(crate) const OUTGOING_BODY: u64 = 2 << 10;

/// The bytes of a running request, and of its response until the body has been dropped: the task,
/// and the connection with its buffers (64 KiB for reading, and as much for TLS).
pub(crate) const EXCHANGE: u64 = 128 << 10;

/// The bytes of all fields of a map.
pub(super) fn fields_cost(map: &HeaderMap) -> u64 {
    map.iter().fold(0, |sum: u64, (name, value)| {
        sum.saturating_add(field_cost(name.as_str().len(), value.len()))
    })
}

/// The bytes of the fields with one name.
pub(super) fn named_cost(map: &HeaderMap, name: &str) -> u64 {
    let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
        return 0;
    };
    let values = map.get_all(&name).iter();
    values.fold(0, |sum: u64, value| {
        sum.saturating_add(field_cost(name.as_str().len(), value.len()))
    })
}

/// The bytes of one field.
pub(super) fn field_cost(name: usize, value: usize) -> u64 {
    FIELD
        .saturating_add(name as u64)
        .saturating_add(value as u64)
}

/// The bytes of the texts of a request.
pub(super) fn texts_cost(request: &HostOutgoingRequest) -> u64 {
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
