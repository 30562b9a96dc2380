//! Bodies and trailers. Bytes that are written to an outgoing body count from the write until they
//! are sent or dropped.

use bytes::Bytes;
use wasmtime::Result;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, DynPollable, OutputStream, Pollable, StreamResult,
};
use wasmtime_wasi_http::p2::HttpResult;
use wasmtime_wasi_http::p2::bindings::http::types::{
    ErrorCode, HostFutureTrailers, HostIncomingBody, HostOutgoingBody,
};
use wasmtime_wasi_http::p2::body as own;
use wasmtime_wasi_http::{FieldMap, WasiHttpCtxView};

use super::view::{View, freed};
use crate::held::Shared;

type OutgoingBody = Resource<own::HostOutgoingBody>;
type IncomingBody = Resource<own::HostIncomingBody>;
type Fields = Resource<FieldMap>;
type Trailers = Resource<own::HostFutureTrailers>;

impl HostOutgoingBody for View<'_> {
    fn write(&mut self, body: OutgoingBody) -> Result<Result<Resource<DynOutputStream>, ()>> {
        let Some(stream) = self.http.table.get_mut(&body)?.take_output_stream() else {
            return Ok(Err(()));
        };
        let stream: DynOutputStream = Box::new(Counting {
            stream,
            held: self.held.shared().clone(),
        });
        Ok(Ok(self.http.table.push_child(stream, &body)?))
    }

    fn finish(&mut self, body: OutgoingBody, trailers: Option<Fields>) -> HttpResult<()> {
        self.held.free(body.rep());
        if let Some(trailers) = &trailers {
            // The trailers stay in memory until the task that sends the body has sent them.
            let bytes = self.held.free(trailers.rep());
            self.held.keep(bytes);
        }
        HostOutgoingBody::finish(&mut self.http, body, trailers)
    }

    freed!(HostOutgoingBody, OutgoingBody);
}

/// The stream of an outgoing body, which counts the written bytes.
struct Counting {
    stream: DynOutputStream,
    held: Shared,
}

#[wasmtime_wasi::async_trait]
impl Pollable for Counting {
    async fn ready(&mut self) {
        self.stream.ready().await;
    }
}

#[wasmtime_wasi::async_trait]
impl OutputStream for Counting {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.stream.write(self.held.count(bytes))
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.stream.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.stream.check_write()
    }

    async fn cancel(&mut self) {
        self.stream.cancel().await;
    }
}

impl HostIncomingBody for View<'_> {
    fn stream(&mut self, body: IncomingBody) -> Result<Result<Resource<DynInputStream>, ()>> {
        HostIncomingBody::stream(&mut self.http, body)
    }

    fn finish(&mut self, body: IncomingBody) -> Result<Trailers> {
        let number = body.rep();
        let trailers = HostIncomingBody::finish(&mut self.http, body)?;
        self.held.pass(number, trailers.rep());
        Ok(trailers)
    }

    freed!(HostIncomingBody, IncomingBody);
}

impl HostFutureTrailers for View<'_> {
    freed!(HostFutureTrailers, Trailers);

    fn subscribe(&mut self, trailers: Trailers) -> Result<Resource<DynPollable>> {
        HostFutureTrailers::subscribe(&mut self.http, trailers)
    }

    fn get(
        &mut self,
        trailers: Trailers,
    ) -> Result<Option<Result<Result<Option<Fields>, ErrorCode>, ()>>> {
        let got = HostFutureTrailers::get(&mut self.http, trailers)?;
        if let Some(Ok(Ok(Some(fields)))) = &got {
            let same = Resource::new_borrow(fields.rep());
            self.counted(0, same)?;
        }
        Ok(got)
    }
}
