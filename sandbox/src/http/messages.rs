//! Header maps, requests and responses, counted by their fields, texts and bodies.

use wasmtime::Result;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::DynPollable;
use wasmtime_wasi_http::FieldMap;
use wasmtime_wasi_http::p2::bindings::http::types::{
    ErrorCode, HostFields, HostFutureIncomingResponse, HostIncomingRequest, HostIncomingResponse,
    HostOutgoingRequest, HostOutgoingResponse, HostResponseOutparam, Method, Scheme, StatusCode,
};
use wasmtime_wasi_http::p2::body::{HostIncomingBody, HostOutgoingBody};
use wasmtime_wasi_http::p2::{HeaderResult, HttpResult, types as own};

use super::view::{EXCHANGE, OUTGOING_BODY, View, field_cost, fields_cost, named_cost, texts_cost};

type Outgoing = Resource<own::HostOutgoingRequest>;
type Response = Resource<own::HostIncomingResponse>;
type Future = Resource<own::HostFutureIncomingResponse>;
type Fields = Resource<FieldMap>;

impl View<'_> {
    /// Runs what changes a text of a request, and counts the difference.
    fn writing(
        &mut self,
        request: Outgoing,
        write: impl FnOnce(&mut Self, Outgoing) -> Result<Result<(), ()>>,
    ) -> Result<Result<(), ()>> {
        let same = Outgoing::new_borrow(request.rep());
        let before = texts_cost(self.http.table.get(&same)?);
        let result = write(self, request);
        let after = texts_cost(self.http.table.get(&same)?);
        self.held.sub(same.rep(), before);
        self.held.add(same.rep(), after);
        result
    }

    /// Counts a body that was taken from the message `number`.
    fn outgoing_body(
        &mut self,
        number: u32,
        body: Result<Resource<HostOutgoingBody>, ()>,
    ) -> Result<Resource<HostOutgoingBody>, ()> {
        body.inspect(|body| {
            self.held.add(number, OUTGOING_BODY);
            self.held.add(body.rep(), OUTGOING_BODY);
        })
    }
}

impl HostOutgoingRequest for View<'_> {
    fn new(&mut self, headers: Fields) -> Result<Outgoing> {
        let fields = self.held.free(headers.rep());
        let request = HostOutgoingRequest::new(&mut self.http, headers)?;
        self.held.add(request.rep(), fields);
        Ok(request)
    }

    fn body(&mut self, request: Outgoing) -> Result<Result<Resource<HostOutgoingBody>, ()>> {
        let number = request.rep();
        let body = HostOutgoingRequest::body(&mut self.http, request)?;
        Ok(self.outgoing_body(number, body))
    }

    fn drop(&mut self, request: Outgoing) -> Result<()> {
        self.held.free(request.rep());
        HostOutgoingRequest::drop(&mut self.http, request)
    }

    fn method(&mut self, request: Outgoing) -> Result<Method> {
        HostOutgoingRequest::method(&mut self.http, request)
    }

    fn set_method(&mut self, request: Outgoing, method: Method) -> Result<Result<(), ()>> {
        self.writing(request, |view, request| {
            HostOutgoingRequest::set_method(&mut view.http, request, method)
        })
    }

    fn path_with_query(&mut self, request: Outgoing) -> Result<Option<String>> {
        HostOutgoingRequest::path_with_query(&mut self.http, request)
    }

    fn set_path_with_query(
        &mut self,
        request: Outgoing,
        path: Option<String>,
    ) -> Result<Result<(), ()>> {
        self.writing(request, |view, request| {
            HostOutgoingRequest::set_path_with_query(&mut view.http, request, path)
        })
    }

    fn scheme(&mut self, request: Outgoing) -> Result<Option<Scheme>> {
        HostOutgoingRequest::scheme(&mut self.http, request)
    }

    fn set_scheme(&mut self, request: Outgoing, scheme: Option<Scheme>) -> Result<Result<(), ()>> {
        self.writing(request, |view, request| {
            HostOutgoingRequest::set_scheme(&mut view.http, request, scheme)
        })
    }

    fn authority(&mut self, request: Outgoing) -> Result<Option<String>> {
        HostOutgoingRequest::authority(&mut self.http, request)
    }

    fn set_authority(
        &mut self,
        request: Outgoing,
        authority: Option<String>,
    ) -> Result<Result<(), ()>> {
        self.writing(request, |view, request| {
            HostOutgoingRequest::set_authority(&mut view.http, request, authority)
        })
    }

    fn headers(&mut self, request: Outgoing) -> Result<Fields> {
        let bytes = self.held.of(request.rep());
        let fields = HostOutgoingRequest::headers(&mut self.http, request)?;
        self.counted_as(bytes, fields)
    }
}

impl HostOutgoingResponse for View<'_> {
    fn new(&mut self, headers: Fields) -> Result<Resource<own::HostOutgoingResponse>> {
        let fields = self.held.free(headers.rep());
        let response = HostOutgoingResponse::new(&mut self.http, headers)?;
        self.held.add(response.rep(), fields);
        Ok(response)
    }

    fn body(
        &mut self,
        response: Resource<own::HostOutgoingResponse>,
    ) -> Result<Result<Resource<HostOutgoingBody>, ()>> {
        let number = response.rep();
        let body = HostOutgoingResponse::body(&mut self.http, response)?;
        Ok(self.outgoing_body(number, body))
    }

    fn status_code(&mut self, response: Resource<own::HostOutgoingResponse>) -> Result<StatusCode> {
        HostOutgoingResponse::status_code(&mut self.http, response)
    }

    fn set_status_code(
        &mut self,
        response: Resource<own::HostOutgoingResponse>,
        status: StatusCode,
    ) -> Result<Result<(), ()>> {
        HostOutgoingResponse::set_status_code(&mut self.http, response, status)
    }

    fn headers(&mut self, response: Resource<own::HostOutgoingResponse>) -> Result<Fields> {
        let fields = HostOutgoingResponse::headers(&mut self.http, response)?;
        self.counted(fields)
    }

    fn drop(&mut self, response: Resource<own::HostOutgoingResponse>) -> Result<()> {
        self.held.free(response.rep());
        HostOutgoingResponse::drop(&mut self.http, response)
    }
}

impl HostFutureIncomingResponse for View<'_> {
    fn drop(&mut self, future: Future) -> Result<()> {
        self.held.free(future.rep());
        HostFutureIncomingResponse::drop(&mut self.http, future)
    }

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
    fn drop(&mut self, response: Response) -> Result<()> {
        self.held.free(response.rep());
        HostIncomingResponse::drop(&mut self.http, response)
    }

    fn status(&mut self, response: Response) -> Result<StatusCode> {
        HostIncomingResponse::status(&mut self.http, response)
    }

    fn headers(&mut self, response: Response) -> Result<Fields> {
        let fields = HostIncomingResponse::headers(&mut self.http, response)?;
        self.counted(fields)
    }

    fn consume(&mut self, response: Response) -> Result<Result<Resource<HostIncomingBody>, ()>> {
        let number = response.rep();
        let body = HostIncomingResponse::consume(&mut self.http, response)?;
        Ok(body.inspect(|body| {
            // The connection goes with the body.
            self.held.sub(number, EXCHANGE);
            self.held.add(body.rep(), EXCHANGE);
        }))
    }
}

/// No request ever comes in: nothing is counted.
impl HostIncomingRequest for View<'_> {
    fn method(&mut self, request: Resource<own::HostIncomingRequest>) -> Result<Method> {
        HostIncomingRequest::method(&mut self.http, request)
    }

    fn path_with_query(
        &mut self,
        request: Resource<own::HostIncomingRequest>,
    ) -> Result<Option<String>> {
        HostIncomingRequest::path_with_query(&mut self.http, request)
    }

    fn scheme(&mut self, request: Resource<own::HostIncomingRequest>) -> Result<Option<Scheme>> {
        HostIncomingRequest::scheme(&mut self.http, request)
    }

    fn authority(&mut self, request: Resource<own::HostIncomingRequest>) -> Result<Option<String>> {
        HostIncomingRequest::authority(&mut self.http, request)
    }

    fn headers(&mut self, request: Resource<own::HostIncomingRequest>) -> Result<Fields> {
        HostIncomingRequest::headers(&mut self.http, request)
    }

    fn consume(
        &mut self,
        request: Resource<own::HostIncomingRequest>,
    ) -> Result<Result<Resource<HostIncomingBody>, ()>> {
        HostIncomingRequest::consume(&mut self.http, request)
    }

    fn drop(&mut self, request: Resource<own::HostIncomingRequest>) -> Result<()> {
        HostIncomingRequest::drop(&mut self.http, request)
    }
}

/// Without a request there is nothing to answer.
impl HostResponseOutparam for View<'_> {
    fn drop(&mut self, outparam: Resource<own::HostResponseOutparam>) -> Result<()> {
        HostResponseOutparam::drop(&mut self.http, outparam)
    }

    fn set(
        &mut self,
        outparam: Resource<own::HostResponseOutparam>,
        response: Result<Resource<own::HostOutgoingResponse>, ErrorCode>,
    ) -> Result<()> {
        HostResponseOutparam::set(&mut self.http, outparam, response)
    }

    fn send_informational(
        &mut self,
        outparam: Resource<own::HostResponseOutparam>,
        status: u16,
        headers: Fields,
    ) -> HttpResult<()> {
        HostResponseOutparam::send_informational(&mut self.http, outparam, status, headers)
    }
}

impl View<'_> {
    /// Counts a header map that got a separate handle.
    pub(super) fn counted(&mut self, fields: Fields) -> Result<Fields> {
        self.counted_as(0, fields)
    }

    /// Counts a header map with a separate handle, copied from one that counts
    /// `bytes`: it has arrays of the same size, even with fewer fields.
    pub(super) fn counted_as(&mut self, bytes: u64, fields: Fields) -> Result<Fields> {
        let own = fields_cost(self.http.table.get(&fields)?);
        self.held.add(fields.rep(), own.max(bytes));
        Ok(fields)
    }

    /// Changes the fields of one name, and counts new ones. Removed fields still count:
    /// a map never shrinks its arrays.
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
    fn new(&mut self) -> Result<Fields> {
        HostFields::new(&mut self.http)
    }

    fn from_list(&mut self, entries: Vec<(String, Vec<u8>)>) -> HeaderResult<Fields> {
        let fields = HostFields::from_list(&mut self.http, entries)?;
        let bytes = fields_cost(self.http.table.get(&fields)?);
        self.held.add(fields.rep(), bytes);
        Ok(fields)
    }

    fn drop(&mut self, fields: Fields) -> Result<()> {
        self.held.free(fields.rep());
        HostFields::drop(&mut self.http, fields)
    }

    fn get(&mut self, fields: Fields, name: String) -> Result<Vec<Vec<u8>>> {
        HostFields::get(&mut self.http, fields, name)
    }

    fn has(&mut self, fields: Fields, name: String) -> Result<bool> {
        HostFields::has(&mut self.http, fields, name)
    }

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

    fn entries(&mut self, fields: Fields) -> Result<Vec<(String, Vec<u8>)>> {
        HostFields::entries(&mut self.http, fields)
    }

    /// The copy shares its fields with the first until one of them is changed, and
    /// counts in full from the start.
    fn clone(&mut self, fields: Fields) -> Result<Fields> {
        let bytes = self.held.of(fields.rep());
        let copy = HostFields::clone(&mut self.http, fields)?;
        self.counted_as(bytes, copy)
    }
}
