//! Attempts by a driver without code (`kind: http`): the host itself makes the
//! one request that DRIVER.md describes, under the same grant and client.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use toolward_contract::driver::{HeaderPiece, HttpCall, RenderErrorKind, Rendered};
use toolward_contract::json::{self as strict, JsonErrorKind};
use toolward_egress::{Call, Error as EgressError, SecretProblem, Timeouts, target};
use toolward_policy::{Grant, LimitName, SecretPosition};

use super::attempts::{Attempt, Attempted, Attempts};
use super::clock::Clock;
use super::outcome;
use crate::api::limits::CallLimits;
use crate::api::result::{CallError, Captured, ErrorClass, ErrorCode, Hit, too_much_memory};
use crate::api::violations::Violations;
use crate::invocation::DriverOutput;
use crate::sandbox::deadline;
use crate::sandbox::secrets::{CallSecrets, Refused};

/// One described request and what its attempts share.
pub(crate) struct Requests<'a> {
    pub(crate) call: &'a HttpCall,
    /// `https://host[:port]`
    pub(crate) origin: String,
    pub(crate) input: Value,
    pub(crate) network: &'a Call,
    pub(crate) grant: &'a Grant,
    pub(crate) secrets: &'a CallSecrets,
    pub(crate) limits: &'a CallLimits,
    pub(crate) violations: &'a Violations,
}

impl Attempts for Requests<'_> {
    async fn attempt(&mut self, _number: u32, clock: &Clock, _spent: u64) -> Attempt {
        let result = match deadline::before(clock.deadline, pin!(self.exchange(clock))).await {
            Ok(result) => result.map(Attempted::Done),
            Err(deadline::Elapsed) => Err(clock.late()),
        };
        Attempt {
            result,
            fuel: 0,
            peak_memory: 0,
            captured: Captured::default(),
        }
    }
}

impl Requests<'_> {
    async fn exchange(&self, clock: &Clock) -> Result<DriverOutput, CallError> {
        let body_bytes = usize::try_from(self.limits.http_body_bytes).unwrap_or(usize::MAX);
        let rendered =
            self.call
                .render(&self.input, body_bytes)
                .map_err(|error| match error.kind() {
                    RenderErrorKind::TooLarge => input_error(&error, ErrorClass::InvalidArguments),
                    _ => input_error(&error, ErrorClass::SchemaValidationFailed),
                })?;
        let request = self.request(rendered)?;
        let sent = self.network.send(request, Timeouts::default()).await;
        let response = sent.map_err(|error| self.failed(&error, clock))?;
        let (head, body) = response.into_parts();
        let bytes = body
            .collect()
            .await
            .map_err(|error| self.failed(&error, clock))?
            .to_bytes();
        if !head.status.is_success() {
            return Err(refused(head.status, &head.headers));
        }
        self.output(&bytes)
    }

    fn request(&self, rendered: Rendered) -> Result<http::Request<Full<Bytes>>, CallError> {
        let url = format!("{}{}", self.origin, rendered.path_and_query);
        let uri = target::uri(&url).map_err(|denied| self.failed_to_build(&denied.to_string()))?;
        let mut headers = HeaderMap::new();
        for (name, pieces) in &rendered.headers {
            let mut value = String::new();
            for piece in pieces {
                match piece {
                    HeaderPiece::Text(text) => value.push_str(text),
                    HeaderPiece::Secret(slug) => value.push_str(&self.placeholder(slug)?),
                }
            }
            self.put(&mut headers, name, &value)?;
        }
        for slug in &rendered.secrets_by_policy {
            let binding = self
                .grant
                .secrets()
                .iter()
                .find(|grant| &grant.slug == slug)
                .and_then(|grant| grant.binding.clone())
                .ok_or_else(|| no_credential(slug))?;
            let SecretPosition::Header(header) = &binding.position else {
                return Err(self.failed_to_build(&format!(
                    "the policy ties the secret `{slug}` to a parameter"
                )));
            };
            if headers.contains_key(header.as_str()) {
                return Err(self.failed_to_build(&format!(
                    "the header `{header}` is set by the driver and by the policy"
                )));
            }
            self.put(&mut headers, header, &self.placeholder(slug)?)?;
        }
        let mut request =
            http::Request::new(Full::new(Bytes::from(rendered.body.unwrap_or_default())));
        *request.uri_mut() = uri;
        *request.method_mut() = http::Method::from_bytes(rendered.method.as_str().as_bytes())
            .map_err(|error| self.failed_to_build(&error.to_string()))?;
        *request.headers_mut() = headers;
        Ok(request)
    }

    fn put(&self, headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), CallError> {
        let name =
            HeaderName::try_from(name).map_err(|error| self.failed_to_build(&error.to_string()))?;
        let value = HeaderValue::try_from(value)
            .map_err(|error| self.failed_to_build(&error.to_string()))?;
        headers.insert(name, value);
        Ok(())
    }

    fn placeholder(&self, slug: &str) -> Result<String, CallError> {
        match self.secrets.may_use(slug) {
            Ok(()) => self
                .network
                .placeholder(slug)
                .ok_or_else(|| no_credential(slug)),
            Err(Refused::Denied | Refused::Missing | Refused::Failed) => Err(no_credential(slug)),
        }
    }

    fn failed_to_build(&self, problem: &str) -> CallError {
        upstream(format!("the driver's request can't be made: {problem}"))
            .with_hint("report this to the driver's publisher")
    }

    fn failed(&self, error: &EgressError, clock: &Clock) -> CallError {
        if let EgressError::Denied(denied) = error {
            crate::sandbox::http::record(denied, self.violations);
            if let Some(violation) = self.violations.ends() {
                return outcome::ended(&violation);
            }
            return CallError::new(
                ErrorCode::UNAUTHORISED,
                ErrorClass::PolicyBlocked,
                format!("the request is not allowed: {error}"),
            );
        }
        match error {
            EgressError::Timeout(timeout) if timeout.deadline => clock.late(),
            EgressError::Limit(limit) => CallError::new(
                ErrorCode::LIMIT_EXCEEDED,
                ErrorClass::ExecutionFailed,
                format!("the request went over a limit: {error}"),
            )
            .with_limit(Hit {
                limit: LimitName::HttpBody,
                used: limit.used,
                allowed: limit.allowed,
            }),
            EgressError::Secret(secret) => {
                tracing::warn!(error = %secret, "a request was not sent, since its secret can't be put in");
                match secret.problem {
                    SecretProblem::Unavailable => no_credential(&secret.slug),
                    problem => unfit_credential(&secret.slug, problem),
                }
            }
            _ => CallError {
                retryable: true,
                ..upstream(format!("the request failed: {error}"))
            },
        }
    }

    fn output(&self, bytes: &[u8]) -> Result<DriverOutput, CallError> {
        let body = if bytes.is_empty() {
            Value::Null
        } else {
            // The response is in memory at the same time.
            let mut left = self.limits.memory_bytes.saturating_sub(bytes.len() as u64);
            strict::parse_within(bytes, &self.limits.json, &mut left).map_err(
                |error| match error.kind {
                    JsonErrorKind::TooMuchMemory => too_much_memory(self.limits.memory_bytes),
                    _ => upstream(format!(
                        "the response is not the JSON that is allowed: {error}"
                    )),
                },
            )?
        };
        let structured = self
            .call
            .response
            .extract(&body, &self.limits.json)
            .map_err(|error| upstream(format!("the response lacks what is looked for: {error}")))?;
        Ok(DriverOutput {
            structured: structured.to_string(),
            content: Vec::new(),
            lifted_bytes: 0,
        })
    }
}

fn input_error(error: &dyn std::fmt::Display, class: ErrorClass) -> CallError {
    CallError::new(
        ErrorCode::INPUT_INVALID,
        class,
        format!("the input does not fit the driver's request: {error}"),
    )
}

fn upstream(message: String) -> CallError {
    CallError::new(
        ErrorCode::UPSTREAM_ERROR,
        ErrorClass::ExecutionFailed,
        message,
    )
}

fn no_credential(slug: &str) -> CallError {
    CallError::new(
        ErrorCode::AUTH_REQUIRED,
        ErrorClass::CredentialMissing,
        format!("the secret `{slug}` is granted and has no value"),
    )
    .with_hint("the operator gives it one where the policy's `[[secret]]` says")
}

/// The secret has a value that can't be sent.
fn unfit_credential(slug: &str, problem: SecretProblem) -> CallError {
    let (message, code) = (problem.message(), problem.code());
    CallError::new(
        ErrorCode::AUTH_REQUIRED,
        ErrorClass::CredentialMissing,
        format!("the secret `{slug}` can't be sent: {message} ({code})"),
    )
    .with_hint("the operator gives it another value where the policy's `[[secret]]` says")
}

/// The server refused. The error leaves out its text, which may be anything.
fn refused(status: StatusCode, headers: &HeaderMap) -> CallError {
    let seconds = headers
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.parse().ok());
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let (code, class) = match status {
        StatusCode::UNAUTHORIZED => (ErrorCode::AUTH_REQUIRED, ErrorClass::CredentialMissing),
        StatusCode::TOO_MANY_REQUESTS => (ErrorCode::RATE_LIMITED, ErrorClass::RateLimited),
        _ => (ErrorCode::UPSTREAM_ERROR, ErrorClass::ExecutionFailed),
    };
    let error = CallError::new(code, class, format!("the server answered {status}"))
        .with_cause(json!({ "status": status.as_u16(), "content_type": kind }));
    CallError {
        retryable: status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error(),
        retry_after: seconds.map(Duration::from_secs),
        ..error
    }
}
