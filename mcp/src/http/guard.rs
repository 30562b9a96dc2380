//! The checks of every request: names, token, permits and body. Only a request that passes reaches
//! the protocol, with its principal and without its token.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use futures_util::FutureExt as _;
use http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, PROXY_AUTHORIZATION};
use http::request::Parts;
use http::{Method, StatusCode};
use http_body_util::{BodyExt, Collected, Full};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use tokio_util::sync::CancellationToken;
use toolward_bundle::text::visible_line;
use toolward_host::{Cancellation, ReadProgress, SharedCancellation};

use super::body::{ClientGuard, PermitBody};
use super::concurrency::{Concurrency, MemoryBudget, PrincipalPermits};
use super::connections::ConnectionPlace;
use super::host_header::{AllowedNames, single};
use super::responses::HttpRejection;
use super::sessions::{HttpCaller, Sessions};
use super::{
    Authentication, HEALTH_PATH, Identity, PATH, PATH_WITH_SLASH, READY_PATH, Refusal, Settings,
    body, client_headers,
};
use crate::client::UnreadResults;
use crate::messages::{self, Flaw};
use crate::methods::{self, Kind};
use crate::strict;

/// Memory that handling a request takes besides its message.
const REQUEST_OVERHEAD_BYTES: usize = 64 * 1024;

/// Characters that are passed on from a refusal of the protocol's library.
const MAX_REFUSAL_CHARS: usize = 200;

/// The state that the checks of requests need, and the protocol that handles requests.
pub(super) struct Guard<H> {
    pub(super) settings: Settings,
    pub(super) concurrency: Concurrency,
    /// The memory of requests that are handled.
    pub(super) handled: Arc<MemoryBudget>,
    /// The memory of bodies that are being read, and of clients' answers.
    pub(super) read: Arc<MemoryBudget>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) protocol: StreamableHttpService<H, Sessions>,
    /// Ends the streams on which clients listen.
    pub(super) closing: CancellationToken,
    /// Cancelled when the server ends, before connections are cut off.
    pub(super) end: CancellationToken,
}

/// The routes of the server.
pub(super) fn routes<H: ServerHandler>(guard: Arc<Guard<H>>) -> Router {
    Router::new()
        .route(PATH, any(messages::<H>))
        .route(PATH_WITH_SLASH, any(messages::<H>))
        .route(HEALTH_PATH, get(|| async { "ok\n" }).fallback(only_get))
        .route(READY_PATH, get(ready::<H>).fallback(only_get))
        .fallback(|| async { HttpRejection::Missing("messages go to", PATH) })
        .layer(from_fn(client_headers::share))
        .with_state(guard)
}

pub(super) async fn only_get() -> HttpRejection {
    HttpRejection::Method("GET, HEAD")
}

/// The readiness check: whether proxies should send more requests here.
async fn ready<H: ServerHandler>(State(guard): State<Arc<Guard<H>>>) -> (StatusCode, &'static str) {
    match guard.settings.draining.is_cancelled() || guard.closing.is_cancelled() {
        false => (StatusCode::OK, "ready\n"),
        true => (StatusCode::SERVICE_UNAVAILABLE, "draining\n"),
    }
}

/// Rejects requests for names, or from origins, that are not allowed.
pub(super) async fn pass_names(names: Arc<AllowedNames>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    match names.check(&parts) {
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(rejection) => {
            tracing::debug!(?rejection, "a request was refused");
            rejection.into_response()
        }
    }
}

async fn messages<H: ServerHandler>(
    State(guard): State<Arc<Guard<H>>>,
    request: Request,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let place = parts.extensions.remove::<Arc<ConnectionPlace>>();
    let answered = async {
        let identity = guard.settings.authentication.identify(&parts).await?;
        if let Some(place) = &place {
            place.prove(&identity.principal.name);
        }
        let unread = guard.unread(place.as_deref(), &identity);
        // From here on no token can be logged or passed on.
        for secret in [AUTHORIZATION, PROXY_AUTHORIZATION, COOKIE] {
            parts.headers.remove(secret);
        }
        guard.handled(identity, unread, parts, body).await
    };
    answered.await.unwrap_or_else(|rejection| {
        tracing::debug!(?rejection, "a request was refused");
        rejection.into_response()
    })
}

impl Authentication {
    /// The principal of a request.
    pub(super) async fn identify(&self, parts: &Parts) -> Result<Identity, HttpRejection> {
        let authenticator = match self {
            Self::Loopback(principal) => {
                return Ok(Identity {
                    principal: principal.clone(),
                    requests: None,
                });
            }
            Self::Required(authenticator) => authenticator,
        };
        let token = single(&parts.headers, &AUTHORIZATION).ok().flatten();
        let refused =
            |refusal: Refusal| HttpRejection::Token(refusal, authenticator.challenge(refusal));
        let identified = authenticator.authenticate(token.and_then(bearer)).await;
        identified.map_err(refused)
    }
}

impl<H: ServerHandler> Guard<H> {
    /// Returns the counter of unread results for a request on this connection, if results are
    /// counted.
    fn unread(
        &self,
        place: Option<&ConnectionPlace>,
        identity: &Identity,
    ) -> Option<UnreadResults> {
        Some(UnreadResults {
            state: self.settings.shared_state.clone()?,
            principal: Arc::clone(&identity.principal.name),
            end: place?.unread.clone(),
            progress: ReadProgress::default(),
        })
    }

    async fn handled(
        &self,
        identity: Identity,
        unread: Option<UnreadResults>,
        mut parts: Parts,
        body: Body,
    ) -> Result<Response, HttpRejection> {
        let limits = &self.settings.limits;
        let requests = identity.requests.unwrap_or(limits.requests);
        let principal = identity.principal;
        let permits = self
            .concurrency
            .of(&principal.name, requests, limits.streams);
        let caller = HttpCaller::new(principal.clone());
        parts.extensions.insert(principal);
        client_headers::name_media_types(&mut parts.headers);
        match parts.method {
            Method::POST => self.post(&caller, (&*permits, unread), parts, body).await,
            Method::GET => {
                let permit = permits.stream()?;
                let response = self.pass_on(&caller, Request::from_parts(parts, Body::empty()));
                let held = vec![Arc::new(permit)];
                Ok((response.await?).map(|body| Body::new(PermitBody::new(body, held, unread))))
            }
            Method::DELETE => {
                let _permit = permits.message()?;
                let session = single(&parts.headers, &client_headers::SESSION_HEADER)
                    .map_err(|()| HttpRejection::Session)?;
                // rmcp answers as if every session existed.
                if session.is_some_and(|session| self.sessions.of(&caller, session).is_none()) {
                    return Err(HttpRejection::Session);
                }
                let mut response = self
                    .pass_on(&caller, Request::from_parts(parts, Body::empty()))
                    .await?;
                // rmcp answers 202, which SDKs report as a failure.
                if response.status() == StatusCode::ACCEPTED {
                    *response.status_mut() = StatusCode::NO_CONTENT;
                }
                Ok(response)
            }
            _ => Err(HttpRejection::Method("GET, POST, DELETE")),
        }
    }

    pub(super) async fn post(
        &self,
        caller: &Arc<HttpCaller>,
        (permits, unread): (&PrincipalPermits, Option<UnreadResults>),
        mut parts: Parts,
        body: Body,
    ) -> Result<Response, HttpRejection> {
        let media_type = parts
            .headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok()?.split(';').next())
            .map(str::trim);
        if !media_type.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
            return Err(HttpRejection::MediaType);
        }
        let mut permits_held = vec![Arc::new(permits.message()?)];
        let mut memory = self.read.hold(&permits.read, 0)?;
        let mut bytes =
            body::read(&parts.headers, body, &self.settings.limits, &mut memory).await?;
        let (kind, size) = body::kind(&bytes)?;
        if kind == Kind::Initialize {
            client_headers::start_over(&mut parts.headers);
        }
        let cost = messages::scan(&bytes).cost(size);
        if kind == Kind::Batch {
            // Each message of the list is counted separately. Only the list's memory is held here.
            cost.map_err(|flaw| HttpRejection::TooComplex(flaw.to_string()))?;
            return self.batch(caller, (permits, unread), parts, &bytes).await;
        }
        // The message's memory is counted before rmcp parses the message.
        let cost = cost.map_err(|flaw| match flaw {
            Flaw::Bytes(most) => HttpRejection::TooLarge(most),
            flaw => HttpRejection::TooComplex(flaw.to_string()),
        })?;
        match strict::check(&bytes) {
            Err(malformed) if kind == Kind::Call && malformed.is_about_arguments() => {
                parts.extensions.insert(malformed);
            }
            checked => {
                checked.map_err(HttpRejection::Malformed)?;
            }
        }
        if kind != Kind::Other
            && let Some(mended) = methods::mended(&bytes).map_err(HttpRejection::Params)?
        {
            bytes = mended.into();
        }
        match kind {
            Kind::Other => memory.grow(cost)?,
            _ => {
                let cost = cost.saturating_add(REQUEST_OVERHEAD_BYTES);
                memory = self.handled.hold(&permits.handled, cost)?;
            }
        }
        // The memory and the permit stay with the request, since a call may outlive its connection.
        // They are freed when the call has ended and its answer is sent.
        parts.extensions.insert(Arc::new(memory));
        match kind {
            Kind::Call | Kind::Initialize | Kind::Request => {
                let permit = Arc::new(permits.request()?);
                parts.extensions.insert(Arc::clone(&permit));
                permits_held.push(permit);
            }
            Kind::Listen => permits_held.push(Arc::new(permits.stream()?)),
            Kind::Other | Kind::Batch => {}
        }
        let cancellation = SharedCancellation::unless_set(Cancellation::Shutdown);
        if kind == Kind::Call {
            parts.extensions.insert(cancellation.clone());
        }
        let request = Request::from_parts(parts, Body::new(Full::new(bytes)));
        let mut response = pin!(self.pass_on(caller, request));
        // Dropped before the response, so that the reason is set when the drop of the response
        // cancels the call.
        let client = ClientGuard {
            cancellation,
            end: self.end.clone(),
        };
        let (head, body) = response.as_mut().await?.into_parts();
        let mut body = PermitBody::new(body, permits_held, unread);
        body.client = Some(client);
        if kind == Kind::Listen {
            body.ended = Some(self.closing.clone().cancelled_owned().boxed());
        }
        Ok(Response::from_parts(head, Body::new(body)))
    }

    /// Passes a request to the protocol on behalf of its caller.
    async fn pass_on(
        &self,
        caller: &Arc<HttpCaller>,
        request: Request,
    ) -> Result<Response, HttpRejection> {
        let response = caller.handles(self.protocol.handle(request)).await;
        if caller.crowded.load(Ordering::Relaxed) {
            return Err(HttpRejection::TooMany("sessions"));
        }
        let status = response.status();
        if status.as_u16() < 400 || response.headers().contains_key(CONTENT_TYPE) {
            return Ok(response.map(Body::new));
        }
        // rmcp sends these errors as plain text without a content type. Its other errors are JSON.
        match status {
            StatusCode::NOT_ACCEPTABLE => Err(HttpRejection::NotAcceptable),
            // The type was checked already, so the content is wrong.
            StatusCode::UNSUPPORTED_MEDIA_TYPE => Err(HttpRejection::NoMessage("something else")),
            StatusCode::NOT_FOUND => Err(HttpRejection::Session),
            StatusCode::METHOD_NOT_ALLOWED => Err(HttpRejection::Method("POST")),
            status => {
                let text = response.into_body().collect().await;
                let text = text.map(Collected::to_bytes).unwrap_or_default();
                let text = visible_line(&String::from_utf8_lossy(&text), MAX_REFUSAL_CHARS);
                Err(HttpRejection::Protocol(status, text))
            }
        }
    }
}

/// The token of `Bearer token` (RFC 6750 section 2.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim_matches(' ');
    let whole = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    (scheme.eq_ignore_ascii_case("bearer") && whole).then_some(token)
}
