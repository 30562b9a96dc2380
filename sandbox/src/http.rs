//! `wasi:http` for guests: every request is checked by the egress rules of its call, and refusals
//! are recorded. The memory of handles is counted ([`view`]).

mod bodies;
mod messages;
pub(crate) mod view;

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use http::HeaderName;
use http::uri::Scheme;
use http_body_util::BodyExt as _;
use toolward_contract::capability::Class;
use toolward_egress::{
    Error as EgressError, Limit, LimitKind, NetworkKind, Rule, Stage, Timeouts, headers,
};
use wasmtime_wasi_http::{
    Error, ForbiddenHeaderFilter, RequestOptions, WasiBody, WasiHttpCtx, WasiHttpHooks,
};

use crate::held::Shared;
use crate::imports::{HttpError, HttpRequest, Imports};
use crate::violations::Violations;

/// The most bytes of one header block in memory. A guest may hold several.
const FIELDS: usize = 64 << 10;

/// The most bytes of one write to a body.
const CHUNK: usize = 64 << 10;

/// The context of `wasi:http`. It only limits the size of header blocks.
pub(crate) fn context() -> WasiHttpCtx {
    let mut context = WasiHttpCtx::new();
    context.set_field_size_limit(FIELDS);
    context
}

/// The hooks that refuse and send requests.
pub(crate) struct Hooks {
    pub(crate) imports: Arc<dyn Imports>,
    pub(crate) violations: Violations,
    pub(crate) held: Shared,
}

type Worker = Box<dyn Future<Output = Result<(), Error>> + Send>;

impl WasiHttpHooks for Hooks {
    fn is_forbidden_header(&mut self, name: &HeaderName) -> bool {
        headers::is_forbidden(name)
    }

    fn forbidden_header_filter(&mut self) -> ForbiddenHeaderFilter {
        Arc::new(headers::is_forbidden)
    }

    fn is_supported_scheme(&mut self, scheme: &Scheme) -> bool {
        let known = *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS;
        if !known {
            // The result is ignored: the scheme is refused in any case.
            let _ = self.violations.record(&Class::Network, scheme.as_str());
        }
        known
    }

    /// Not set here: the host header is always made from the checked authority.
    fn set_host_header(&mut self) -> bool {
        false
    }

    fn p2_outgoing_body_chunk_size(&mut self) -> usize {
        CHUNK
    }

    fn send_request(
        &mut self,
        request: http::Request<WasiBody>,
        options: Option<RequestOptions>,
        _response_errors: Worker,
    ) -> Box<dyn Future<Output = Result<(http::Response<WasiBody>, Worker), Error>> + Send> {
        let options = options.unwrap_or_default();
        let timeouts = Timeouts {
            connect: options.connect_timeout,
            first_byte: options.first_byte_timeout,
            between_bytes: options.between_bytes_timeout,
        };
        let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
        let mut sending = self.imports.http(HttpRequest { request, timeouts });
        // This poll runs the checks that need only the request. So a request is refused and
        // recorded even if the guest never awaits the response.
        let waker = Waker::noop();
        let first = sending.as_mut().poll(&mut Context::from_waker(waker));
        if let Poll::Ready(Err(error)) = &first {
            return Box::new(std::future::ready(Err(to_guest(error))));
        }
        let held = self.held.clone();
        Box::new(async move {
            let result = match first {
                Poll::Ready(result) => result,
                Poll::Pending => sending.await,
            };
            let response = result.map_err(|error| to_guest(&error))?;
            let response = response.map(|body| {
                body.map_err(|error| of_egress(&error))
                    .map_frame(move |frame| frame.map_data(|data| held.count(data)))
                    .boxed_unsync()
            });
            let done: Worker = Box::new(std::future::ready(Ok(())));
            Ok((response, done))
        })
    }
}

/// The error for the guest, in the codes of `wasi:http`.
fn to_guest(error: &HttpError) -> Error {
    match error {
        HttpError::NoNetwork => Error::HttpRequestDenied,
        HttpError::Exceeded(_) => Error::ConnectionLimitReached,
        HttpError::Egress(error) => of_egress(error),
    }
}

fn of_egress(error: &EgressError) -> Error {
    match error {
        EgressError::Denied(denied) => match denied.rule {
            Rule::Address => Error::DestinationIpProhibited,
            Rule::MethodForbidden => Error::HttpRequestMethodInvalid,
            _ => Error::HttpRequestDenied,
        },
        EgressError::Limit(limit) => of_limit(limit),
        EgressError::Timeout(timeout) => match timeout.stage {
            Stage::Resolve => Error::DnsTimeout,
            Stage::RequestBody => Error::ConnectionWriteTimeout,
            Stage::FirstByte => Error::HttpResponseTimeout,
            Stage::BetweenBytes => Error::ConnectionReadTimeout,
            _ => Error::ConnectionTimeout,
        },
        EgressError::Network(network) => match network.kind {
            NetworkKind::Dns => Error::DnsError {
                rcode: None,
                info_code: None,
            },
            NetworkKind::Connect => Error::ConnectionRefused,
            NetworkKind::Terminated => Error::ConnectionTerminated,
            NetworkKind::TlsCertificate => Error::TlsCertificateError,
            NetworkKind::TlsProtocol | NetworkKind::TlsRoots => Error::TlsProtocolError,
            _ => Error::HttpProtocolError,
        },
        EgressError::Secret(error) => {
            tracing::warn!(%error, "a request was not sent, since its secret can't be put in");
            Error::HttpRequestDenied
        }
        _ => Error::InternalError(None),
    }
}

fn of_limit(limit: &Limit) -> Error {
    let small = u32::try_from(limit.allowed).ok();
    match limit.kind {
        LimitKind::RequestsAtOnce => Error::ConnectionLimitReached,
        LimitKind::RequestBodyBytes => Error::HttpRequestBodySize(Some(limit.allowed)),
        LimitKind::ResponseBodyBytes => Error::HttpResponseBodySize(Some(limit.allowed)),
        LimitKind::RequestHeadBytes => Error::HttpRequestHeaderSectionSize(small),
        LimitKind::ResponseHeadBytes => Error::HttpResponseHeaderSectionSize(small),
        _ => Error::HttpRequestDenied,
    }
}
