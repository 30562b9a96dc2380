//! Header maps, requests and responses. The memory of their fields, texts and bodies is counted.

use wasmtime::Result;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::DynPollable;
use wasmtime_wasi_http::p2::bindings::http::types::{
    ErrorCode, HostFields, HostFutureIncomingResponse, HostIncomingRequest, HostIncomingResponse,
    HostOutgoingRequest, HostOutgoingResponse, HostResponseOutparam, Method, Scheme, StatusCode,
};
use wasmtime_wasi_http::p2::body::{HostIncomingBody, HostOutgoingBody};
use wasmtime_wasi_http::p2::{HeaderResult, HttpResult, types as own};
use wasmtime_wasi_http::{FieldMap, WasiHttpCtxView};

use super::view::{
    EXCHANGE, OUTGOING_BODY, View, field_cost, fields_cost, forward, freed, named_cost, texts_cost,
};

type Outgoing = Resource<own::HostOutgoingRequest>;
type OutgoingResponse = Resource<own::HostOutgoingResponse>;
type IncomingRequest = Resource<own::HostIncomingRequest>;
type Outparam = Resource<own::HostResponseOutparam>;
type Response = Resource<own::HostIncomingResponse>;
type Future = Resource<own::HostFutureIncomingResponse>;
type OutgoingBody = Resource<HostOutgoingBody>;
type IncomingBody = Resource<HostIncomingBody>;
type Fields = Resource<FieldMap>;

/// Setters of a request, which count how the memory of its texts changes.
macro_rules! writing {
    ($interface:path: $(fn $method:ident($name:ident: $type:ty);)*) => {
        $(fn $method(&mut self, request: Outgoing, $name: $type) -> Result<Result<(), ()>> {
            let same = Outgoing::new_borrow(request.rep());
            let before = texts_cost(self.http.table.get(&same)?);
            let http = &mut self.http;
            let result = <WasiHttpCtxView<'_> as $interface>::$method(http, request, $name);
            let after = texts_cost(self.http.table.get(&same)?);
            self.held.sub(same.rep(), before);
            self.held.add(same.rep(), after);
            result
        })*
    };
}

impl View<'_> {
    /// Counts a body that was taken from the message `number`, at both ends.
    fn outgoing_body(
        &mut self,
        number: u32,
        body: Result<OutgoingBody, ()>,
    ) -> Result<OutgoingBody, ()> {
        body.inspect(|body| {
            self.held.add(number, OUTGOING_BODY);
            self.held.add(body.rep(), OUTGOING_BODY);
        })
    }
}

impl HostOutgoingRequest for View<'_> {
    writing! { HostOutgoingRequest:
        fn set_method(method: Method);
        fn set_path_with_query(path: Option<String>);
        fn set_scheme(scheme: Option<Scheme>);
        fn set_authority(authority: Option<String>);
    }

    forward! { HostOutgoingRequest:
        fn method(request: Outgoing) -> Result<Method>;
        fn path_with_query(request: Outgoing) -> Result<Option<String>>;
        fn scheme(request: Outgoing) -> Result<Option<Scheme>>;
        fn authority(request: Outgoing) -> Result<Option<String>>;
    }

    fn new(&mut self, headers: Fields) -> Result<Outgoing> {
        let fields = self.held.free(headers.rep());
        let request = HostOutgoingRequest::new(&mut self.http, headers)?;
        self.held.add(request.rep(), fields);
        Ok(request)
    }

    fn body(&mut self, request: Outgoing) -> Result<Result<OutgoingBody, ()>> {
        let number = request.rep();
        let body = HostOutgoingRequest::body(&mut self.http, request)?;
        Ok(self.outgoing_body(number, body))
    }

    freed!(HostOutgoingRequest, Outgoing);

    fn headers(&mut self, request: Outgoing) -> Result<Fields> {
        let bytes = self.held.of(request.rep());
        let fields = HostOutgoingRequest::headers(&mut self.http, request)?;
        self.counted(bytes, fields)
    }
}

impl HostOutgoingResponse for View<'_> {
    forward! { HostOutgoingResponse:
        fn status_code(response: OutgoingResponse) -> Result<StatusCode>;
        fn set_status_code(response: OutgoingResponse, code: StatusCode) -> Result<Result<(), ()>>;
    }

    fn new(&mut self, headers: Fields) -> Result<OutgoingResponse> {
        let fields = self.held.free(headers.rep());
        let response = HostOutgoingResponse::new(&mut self.http, headers)?;
        self.held.add(response.rep(), fields);
        Ok(response)
    }

    fn body(&mut self, response: OutgoingResponse) -> Result<Result<OutgoingBody, ()>> {
        let number = response.rep();
        let body = HostOutgoingResponse::body(&mut self.http, response)?;
        Ok(self.outgoing_body(number, body))
    }

    fn headers(&mut self, response: OutgoingResponse) -> Result<Fields> {
        let fields = HostOutgoingResponse::headers(&mut self.http, response)?;
        self.counted(0, fields)
    }

    freed!(HostOutgoingResponse, OutgoingResponse);
}

impl HostFutureIncomingResponse for View<'_> {
    freed!(HostFutureIncomingResponse, Future);

    fn get(&mut self, future: Future) -> Result<Option<Result<Result<Response, ErrorCode>, ()>>> {
        let number = future.rep();
        let got = HostFutureIncomingResponse::get(&mut self.http, future)?;
        match &got {
            Some(Ok(Ok(response))) => {
                self.held.free(number);
                let fields = fields_cost(&self.http.table.get(response)?.headers);
                self.held
                    .add(response.rep(), fields.saturating_add(EXCHANGE));
            }
            Some(Ok(Err(_))) => {
                self.held.free(number);
            }
            None | Some(Err(())) => {}
        }
        Ok(got)
    }

    fn subscribe(&mut self, future: Future) -> Result<Resource<DynPollable>> {
        HostFutureIncomingResponse::subscribe(&mut self.http, future)
    }
}

impl HostIncomingResponse for View<'_> {
    freed!(HostIncomingResponse, Response);

    fn status(&mut self, response: Response) -> Result<StatusCode> {
        HostIncomingResponse::status(&mut self.http, response)
    }

    fn headers(&mut self, response: Response) -> Result<Fields> {
        let fields = HostIncomingResponse::headers(&mut self.http, response)?;
        self.counted(0, fields)
    }

    fn consume(&mut self, response: Response) -> Result<Result<IncomingBody, ()>> {
        let number = response.rep();
        let body = HostIncomingResponse::consume(&mut self.http, response)?;
        Ok(body.inspect(|body| {
            // The connection's memory now belongs to the body.
            self.held.sub(number, EXCHANGE);
            self.held.add(body.rep(), EXCHANGE);
        }))
    }
}

/// Incoming requests never exist, so nothing is counted.
impl HostIncomingRequest for View<'_> {
    forward! { HostIncomingRequest:
        fn method(request: IncomingRequest) -> Result<Method>;
        fn path_with_query(request: IncomingRequest) -> Result<Option<String>>;
        fn scheme(request: IncomingRequest) -> Result<Option<Scheme>>;
        fn authority(request: IncomingRequest) -> Result<Option<String>>;
        fn headers(request: IncomingRequest) -> Result<Fields>;
        fn consume(request: IncomingRequest) -> Result<Result<IncomingBody, ()>>;
        fn drop(request: IncomingRequest) -> Result<()>;
    }
}

/// Incoming requests never exist, so nothing can be answered.
impl HostResponseOutparam for View<'_> {
    forward! { HostResponseOutparam:
        fn drop(outparam: Outparam) -> Result<()>;
        fn set(outparam: Outparam, response: Result<OutgoingResponse, ErrorCode>) -> Result<()>;
        fn send_informational(outparam: Outparam, status: u16, headers: Fields) -> HttpResult<()>;
    }
}

impl View<'_> {
    /// Counts a header map with a separate handle. If it is the copy of a map that counts `bytes`,
    /// it has arrays of the same size, even with fewer fields.
    pub(super) fn counted(&mut self, bytes: u64, fields: Fields) -> Result<Fields> {
        let own = fields_cost(self.http.table.get(&fields)?);
        self.held.add(fields.rep(), own.max(bytes));
        Ok(fields)
    }

    /// Changes the fields of one name, and counts new ones. Removed fields still count: a map never
    /// shrinks its arrays.
    fn changing(
        &mut self,
        fields: &Fields,
        name: &str,
        change: impl FnOnce(&mut Self) -> HeaderResult<()>,
    ) -> HeaderResult<()> {
        let before = named_cost(self.http.table.get(fields)?, name);
        let result = change(self);
        let after = named_cost(self.http.table.get(fields)?, name);
        self.held.add(fields.rep(), after.saturating_sub(before));
        result
    }
}

impl HostFields for View<'_> {
    forward! { HostFields:
        fn new() -> Result<Fields>;
        fn get(fields: Fields, name: String) -> Result<Vec<Vec<u8>>>;
        fn has(fields: Fields, name: String) -> Result<bool>;
        fn entries(fields: Fields) -> Result<Vec<(String, Vec<u8>)>>;
    }

    fn from_list(&mut self, entries: Vec<(String, Vec<u8>)>) -> HeaderResult<Fields> {
        let fields = HostFields::from_list(&mut self.http, entries)?;
        let bytes = fields_cost(self.http.table.get(&fields)?);
        self.held.add(fields.rep(), bytes);
        Ok(fields)
    }

    freed!(HostFields, Fields);

    fn set(&mut self, fields: Fields, name: String, values: Vec<Vec<u8>>) -> HeaderResult<()> {
        let own = Resource::new_borrow(fields.rep());
        let text = name.clone();
        self.changing(&own, &text, |view| {
            HostFields::set(&mut view.http, fields, name, values)
        })
    }

    fn delete(&mut self, fields: Fields, name: String) -> HeaderResult<()> {
        let own = Resource::new_borrow(fields.rep());
        let text = name.clone();
        self.changing(&own, &text, |view| {
            HostFields::delete(&mut view.http, fields, name)
        })
    }

    fn append(&mut self, fields: Fields, name: String, value: Vec<u8>) -> HeaderResult<()> {
        let (number, bytes) = (fields.rep(), field_cost(name.len(), value.len()));
        HostFields::append(&mut self.http, fields, name, value)?;
        self.held.add(number, bytes);
        Ok(())
    }

    /// The copy shares its fields with the original until either is changed, but counts in full
    /// from the start.
    fn clone(&mut self, fields: Fields) -> Result<Fields> {
        let bytes = self.held.of(fields.rep());
        let copy = HostFields::clone(&mut self.http, fields)?;
        self.counted(bytes, copy)
    }
}
