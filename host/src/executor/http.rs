//! The executor of drivers without code (`kind: http`): the host itself makes the one request that
//! DRIVER.md describes, with the grant and the HTTP client that a component would have.

mod request;
mod status;

use std::fmt::Display;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use toolward_contract::driver::{Driver, HeaderPiece, HttpCall, Rendered};
use toolward_contract::json::JsonErrorKind;
use toolward_egress::{
    BoxError, Error as EgressError, NetworkKind, Rule, SecretProblem, Stage, Timeouts, target,
};
use toolward_policy::SecretPosition;
use toolward_sandbox::deadline;
use toolward_sandbox::exceeded::Exceeded;
use toolward_sandbox::invocation::{CallEnd, DriverOutput};

use super::limits::over;
use super::{Attempt, AttemptMemory, AttemptReport, Executor, Features, Job, RequestValues};
use crate::api::approval::ShownRequest;
use crate::api::result::{CallError, ErrorClass, ErrorCode, Result, too_much_memory};
use crate::call_context::CallContext;
use crate::imports::{HttpError, HttpRequest};

/// Bytes of memory that a chunk of a body takes in addition to its content.
const CHUNK_BYTES: u64 = 128;

/// The executor of one driver's requests.
pub(crate) struct HttpExecutor {
    pub(super) driver: Arc<Driver>,
}

impl HttpExecutor {
    fn exchange<'a>(&'a self, job: &'a Job, context: &'a CallContext) -> Option<Exchange<'a>> {
        Some(Exchange {
            http: context.implements.http.as_ref()?,
            rendered: context.extensions.get()?,
            driver: &self.driver,
            job,
            context,
        })
    }
}

impl Executor for HttpExecutor {
    fn features(&self) -> Features {
        Features {
            holds_bodies: true,
            shows_request: true,
            ..Features::default()
        }
    }

    fn request(&self, call: &RequestValues<'_>) -> Result<Option<ShownRequest>> {
        request::preview(&self.driver, call)
    }

    fn begin(&self, job: &Job, context: &mut CallContext) -> Result<()> {
        let Some(http) = &context.implements.http else {
            return Err(CallError::internal("this driver has no request"));
        };
        let texts = (&*job.invocation.input, &*job.invocation.context);
        let rendered = request::render(http, texts, context.limits.http_body_bytes)?;
        context.extensions.insert(rendered);
        Ok(())
    }

    fn attempt<'a>(&'a self, job: &'a mut Job, context: &'a CallContext) -> Attempt<'a> {
        Box::pin(async move {
            match self.exchange(job, context) {
                Some(exchange) => exchange.attempt().await,
                None => AttemptReport::failed(CallError::internal("this driver has no request")),
            }
        })
    }
}

/// One request, and the values from which it is made.
struct Exchange<'a> {
    http: &'a HttpCall,
    rendered: &'a Rendered,
    driver: &'a Driver,
    job: &'a Job,
    context: &'a CallContext,
}

impl Exchange<'_> {
    async fn attempt(&self) -> AttemptReport {
        let clock = &self.context.clock;
        let own = self.http.timeout.map_or(*clock, |own| clock.within(own));
        let memory = AttemptMemory::of(&self.context.slot, self.context.limits.memory_bytes);
        let exchanged = pin!(self.exchange(&memory));
        let result = match deadline::before(own.deadline, exchanged).await {
            Ok(result) => result,
            Err(deadline::Elapsed) if own.deadline < clock.deadline => Err(self.late().into()),
            Err(deadline::Elapsed) => Err(clock.late().into()),
        };
        let done = result.map(|output| AttemptReport::new(CallEnd::Done(output)));
        done.unwrap_or_else(|failed| *failed)
    }

    async fn exchange(&self, memory: &AttemptMemory) -> Result<DriverOutput, Box<AttemptReport>> {
        let body = self.rendered.body.as_ref().map_or(0, Vec::len) as u64;
        let sent_bytes = body.saturating_mul(2);
        memory.cover(sent_bytes).map_err(unsent)?;
        let request = self.request().await.map_err(unsent)?;
        let is_safe = request.method().is_safe();
        let sent = self.context.imports.http(HttpRequest {
            request,
            timeouts: Timeouts::default(),
        });
        let response = sent.await.map_err(|error| match error {
            HttpError::NoNetwork => unsent(CallError::internal("no host is granted")),
            HttpError::Exceeded(exceeded) => unsent(over(exceeded)),
            HttpError::Egress(error) => Box::new(AttemptReport {
                dispatched: !is_unsent(&error, is_safe),
                failing: is_failing(&error),
                ..AttemptReport::failed(self.failed(&error))
            }),
        })?;
        let (head, body) = response.into_parts();
        let mut body = pin!(body);
        let mut chunks = Vec::new();
        let mut held = sent_bytes;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| self.failed(&error))?;
            if let Ok(chunk) = frame.into_data() {
                // Counted twice, since the chunks are copied into one buffer.
                let bytes = (chunk.len() as u64).saturating_mul(2);
                held = held.saturating_add(bytes).saturating_add(CHUNK_BYTES);
                memory.cover(held)?;
                chunks.push(chunk);
            }
        }
        let bytes = chunks.concat();
        drop(chunks);
        if !head.status.is_success() {
            return Err(status::refused(self.http, head.status, &head.headers));
        }
        Ok(self.output(&bytes, memory)?)
    }

    async fn request(&self) -> Result<http::Request<UnsyncBoxBody<Bytes, BoxError>>> {
        let rendered = self.rendered;
        let by_policy = self.placed_by_policy(&rendered.secrets_by_policy).await?;
        let mut query = Vec::new();
        for (name, slug) in request::query_secrets(rendered, &self.context.access.grant) {
            query.push((name, self.placeholder(slug).await?));
        }
        let origin = self.driver.origin();
        let origin = origin.ok_or_else(|| CallError::internal("this driver has no origin"))?;
        let url = request::url(&format!("https://{origin}"), rendered, &query);
        let uri = target::uri(&url).map_err(unbuildable)?;
        let mut headers = HeaderMap::new();
        for (name, pieces) in &rendered.headers {
            let mut value = String::new();
            for piece in pieces {
                match piece {
                    HeaderPiece::Text(text) => value.push_str(text),
                    HeaderPiece::Secret(slug) => value.push_str(&self.placeholder(slug).await?),
                }
            }
            put(&mut headers, name, &value)?;
        }
        if let Some(name) = &rendered.idempotency_key_header {
            put(&mut headers, name, &self.job.invocation.idempotency_key)?;
        }
        for (name, placeholder) in by_policy {
            if headers.contains_key(name) {
                let problem = format!("the header `{name}` is set by the driver and by the policy");
                return Err(unbuildable(problem));
            }
            put(&mut headers, name, &placeholder)?;
        }
        let body = rendered.body.clone().unwrap_or_default();
        let body = Full::new(Bytes::from(body)).map_err(|never| match never {});
        let mut request = http::Request::new(body.boxed_unsync());
        *request.uri_mut() = uri;
        *request.method_mut() =
            http::Method::from_bytes(rendered.method.as_str().as_bytes()).map_err(unbuildable)?;
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// The headers of the secrets that only policy places, each with a placeholder as its value.
    async fn placed_by_policy(&self, slugs: &[String]) -> Result<Vec<(&str, String)>> {
        let mut placed: Vec<(&str, String)> = Vec::new();
        for slug in slugs {
            let position = request::position(&self.context.access.grant, slug);
            let position = position.ok_or_else(|| self.no_credential(slug))?;
            if let SecretPosition::Header(name) = position {
                placed.push((name, self.placeholder(slug).await?));
            }
        }
        Ok(placed)
    }

    async fn placeholder(&self, slug: &str) -> Result<String> {
        let mut secrets = self.context.access.grant.secrets().iter();
        if !secrets.any(|grant| grant.slug == slug) {
            return Err(self.no_credential(slug));
        }
        let placeholder = self.context.imports.placeholder(slug.to_owned()).await;
        placeholder.map_err(|_| self.no_credential(slug))
    }

    fn no_credential(&self, slug: &str) -> CallError {
        CallError::no_credential(slug).of_attachment(self.driver.is_attachment)
    }

    fn failed(&self, error: &EgressError) -> CallError {
        match error {
            EgressError::Denied(denied) => {
                if let Some(violation) = self.context.violations.ends() {
                    return CallError::violated(&violation);
                }
                let message = format!("the request is not allowed: {error}");
                let refused = |code| CallError::new(code, ErrorClass::PolicyBlocked, message);
                if denied.rule != Rule::Address {
                    return refused(ErrorCode::UNAUTHORISED);
                }
                let code = ErrorCode::ADDRESS_NOT_GRANTED;
                let hint = code.ask_the_operator("grant the address");
                refused(code).with_hint(hint)
            }
            EgressError::Timeout(timeout) if timeout.deadline => self.context.clock.late(),
            EgressError::Limit(limit) => CallError::of(
                ErrorCode::LIMIT_EXCEEDED,
                format!("the request went over a limit: {error}"),
            )
            .with_limit(Exceeded::new(limit.kind.limit(), limit.used, limit.allowed)),
            EgressError::Secret(secret) => {
                tracing::warn!(error = %secret, "a request was not sent, since its secret can't be put in");
                match secret.problem {
                    SecretProblem::Unavailable => self.no_credential(&secret.slug),
                    problem => unfit_credential(&secret.slug, problem)
                        .of_attachment(self.driver.is_attachment),
                }
            }
            _ => self.unanswered(format!("the request failed: {error}")),
        }
    }

    /// The error of a request that exceeded the timeout of its driver.
    fn late(&self) -> CallError {
        let allowed = self.http.timeout.unwrap_or_default();
        self.unanswered(format!(
            "the server did not answer within the {} ms of a request",
            allowed.as_millis()
        ))
    }

    /// The error of a request without an answer. The request may be repeated, unless the driver
    /// lists the statuses to retry.
    fn unanswered(&self, message: String) -> CallError {
        let mut error = upstream(message);
        error.retryable = self.http.retry_statuses.is_none();
        error
    }

    fn output(&self, bytes: &[u8], memory: &AttemptMemory) -> Result<DriverOutput> {
        if bytes.is_empty() {
            return Ok(DriverOutput::empty(&self.context.contract));
        }
        // The response's text stays in memory while it is parsed.
        let held = bytes.len() as u64;
        let body = memory.parse(bytes, &self.context.limits.json, held)?;
        let (body, values) = body.map_err(|error| match error.kind {
            JsonErrorKind::TooMuchMemory => too_much_memory(self.context.limits.memory_bytes),
            _ => upstream(format!(
                "the response is not the JSON that is allowed: {error}"
            )),
        })?;
        // Values count twice, since extracting copies them.
        memory.cover(held.saturating_add(values.saturating_mul(2)))?;
        let structured = self
            .http
            .response
            .extract(&body, &self.context.limits.json)
            .map_err(|error| upstream(format!("the response lacks what is looked for: {error}")))?;
        Ok(DriverOutput::new(structured.to_string()))
    }
}

/// Whether nothing of the request was sent. A request by a safe method does not count if a
/// connection failed, since it may have gone out over an idle connection before.
fn is_unsent(error: &EgressError, is_safe: bool) -> bool {
    match error {
        EgressError::Secret(_) => true,
        EgressError::Network(error) => {
            let connects = is_connecting(error.kind) || error.kind == NetworkKind::TlsRoots;
            connects && !is_safe
        }
        EgressError::Timeout(timeout) => {
            let waits = timeout.stage == Stage::Queue || is_connecting_stage(timeout.stage);
            waits && !is_safe
        }
        _ => false,
    }
}

/// Whether the service could not be reached. A request that ended at the call's deadline does not
/// count.
fn is_failing(error: &EgressError) -> bool {
    match error {
        EgressError::Network(error) => is_connecting(error.kind),
        EgressError::Timeout(timeout) => !timeout.deadline && is_connecting_stage(timeout.stage),
        _ => false,
    }
}

fn is_connecting(kind: NetworkKind) -> bool {
    matches!(
        kind,
        NetworkKind::Dns
            | NetworkKind::Connect
            | NetworkKind::TlsCertificate
            | NetworkKind::TlsProtocol
    )
}

fn is_connecting_stage(stage: Stage) -> bool {
    matches!(stage, Stage::Resolve | Stage::Connect | Stage::Tls)
}

fn put(headers: &mut HeaderMap, name: &str, value: &str) -> Result<()> {
    let name = HeaderName::try_from(name).map_err(unbuildable)?;
    headers.insert(name, HeaderValue::try_from(value).map_err(unbuildable)?);
    Ok(())
}

fn unbuildable(problem: impl Display) -> CallError {
    upstream(format!("the driver's request can't be made: {problem}"))
        .with_hint("report this to the driver's publisher")
}

/// The report of a request that was not sent.
fn unsent(error: CallError) -> Box<AttemptReport> {
    Box::new(AttemptReport {
        dispatched: false,
        ..AttemptReport::failed(error)
    })
}

impl From<CallError> for Box<AttemptReport> {
    fn from(error: CallError) -> Self {
        Box::new(AttemptReport::failed(error))
    }
}

fn upstream(message: String) -> CallError {
    CallError::of(ErrorCode::UPSTREAM_ERROR, message)
}

/// The error of a secret whose value can't be sent.
fn unfit_credential(slug: &str, problem: SecretProblem) -> CallError {
    let (message, code) = (problem.message(), problem.code());
    CallError::of(
        ErrorCode::AUTH_REQUIRED,
        format!("the secret `{slug}` can't be sent: {message} ({code})"),
    )
    .with_hint(ErrorCode::AUTH_REQUIRED.ask_the_operator("give the secret another value"))
}
