//! The client of one request: its principal, how it can be asked, and the results that it has not
//! read.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientCapabilities, Extensions, InputRequest, ServerRequest};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext, RoleServer, ServiceError};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use toolward_host::{Answerable, ReadProgress, SharedState, UnreadResult};

use crate::principal::Principal;
use crate::revision::Revision;

/// How a client is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// By requests from the server while the call waits (revisions before 2026-07-28).
    Session,
    /// By a result that asks for the missing answers. The client calls again with them.
    Stateless,
}

impl Era {
    /// The era of a request.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        match Revision::of(context) >= Revision::July2026 {
            true => Self::Stateless,
            false => Self::Session,
        }
    }
}

/// Why a client gave no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// The answer timed out.
    Late,
    /// The client answered with an error. A person's answer would be a result.
    Refused,
    /// The client failed or disconnected.
    Failed,
}

/// The future of a client's answer.
pub(crate) type Said<'a> = Pin<Box<dyn Future<Output = Result<Value, Unanswered>> + Send + 'a>>;

/// A client that can be asked while a call waits.
pub(crate) trait AsksPerson: Send + Sync {
    /// Sends a request to it and returns the result as JSON.
    fn ask(&self, request: InputRequest, timeout: Duration) -> Said<'_>;
}

/// Returns a value that a transport attached to a request. Over HTTP it is in the extensions of the
/// request's parts.
pub(crate) fn attached<T: Clone + Send + Sync + 'static>(extensions: &Extensions) -> Option<&T> {
    let of_request = || extensions.get::<http::request::Parts>()?.extensions.get();
    extensions.get().or_else(of_request)
}

/// Marks a request that came in a list of messages over HTTP. The reply is one list, so it can't
/// carry a question to the client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InBatch;

/// The client that calls, and how it can be asked.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) principal: Principal,
    pub(crate) era: Era,
    pub(crate) answerable: Answerable,
    /// `None` if it can't be asked while a call waits.
    pub(crate) person: Option<Arc<dyn AsksPerson>>,
    /// The name that the client gives itself, if it uses the standard streams and the operator does
    /// not trust it to ask for approval.
    pub(crate) untrusted_name: Option<String>,
}

impl Client {
    /// The client that sent a request.
    pub(crate) fn new(context: &RequestContext<RoleServer>, principal: &Principal) -> Self {
        let era = Era::of(context);
        let capabilities = context.client_capabilities();
        let mut answerable = capabilities.as_ref().map(answerable).unwrap_or_default();
        answerable.form &= Revision::of(context).has_elicitation();
        if attached::<InBatch>(&context.extensions).is_some() {
            answerable = Answerable::default();
        }
        let over_http = context.extensions.get::<http::request::Parts>().is_some();
        let untrusted_name = match principal.may_approve || over_http {
            true => None,
            false => context.client_info().map(|client| client.name),
        };
        let asked = era == Era::Session && answerable != Answerable::default();
        Self {
            principal: principal.clone(),
            era,
            answerable,
            person: asked.then(|| Arc::new(context.peer.clone()) as Arc<dyn AsksPerson>),
            untrusted_name,
        }
    }
}

/// The capabilities that a client declares. An elicitation capability without a mode
/// means forms.
fn answerable(capabilities: &ClientCapabilities) -> Answerable {
    let form = capabilities.elicitation.as_ref();
    Answerable {
        form: form.is_some_and(|modes| modes.form.is_some() || modes.url.is_none()),
        sample: capabilities.sampling.is_some(),
        roots: capabilities.roots.is_some(),
    }
}

impl AsksPerson for Peer<RoleServer> {
    fn ask(&self, request: InputRequest, timeout: Duration) -> Said<'_> {
        Box::pin(async move {
            let request = match request {
                InputRequest::CreateMessage(request) => {
                    ServerRequest::CreateMessageRequest(request)
                }
                InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
                InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
                _ => return Err(Unanswered::Failed),
            };
            let options = PeerRequestOptions::with_timeout(timeout);
            let handle = self.send_request_with_option(request, options).await;
            let handle = handle.map_err(|error| unanswered(&error))?;
            let mut guard = CancelOnDrop {
                peer: self,
                id: Some(handle.id.clone()),
            };
            let result = handle.await_response().await;
            guard.id = None;
            let result = result.map_err(|error| unanswered(&error))?;
            serde_json::to_value(result).map_err(|_unserialisable| Unanswered::Failed)
        })
    }
}

/// Cancels a request whose answer is no longer awaited, so that the client stops showing its
/// question.
struct CancelOnDrop<'a> {
    peer: &'a Peer<RoleServer>,
    /// `None` once it is answered.
    id: Option<rmcp::model::RequestId>,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let reason = Some("the call has ended".to_owned());
            let cancelled = rmcp::model::CancelledNotificationParam::new(Some(id), reason);
            let _ = peer.notify_cancelled(cancelled).await;
        });
    }
}

fn unanswered(error: &ServiceError) -> Unanswered {
    match error {
        ServiceError::Timeout { .. } => Unanswered::Late,
        ServiceError::McpError(_) => Unanswered::Refused,
        _ => Unanswered::Failed,
    }
}

/// The smallest result that is counted. Limits on requests and connections bound smaller results.
const MIN_COUNTED_BYTES: usize = 16 << 10;

/// Counts the unread results on one connection in the memory of all calls. If that memory is full,
/// the connection may be closed.
#[derive(Debug, Clone)]
pub(crate) struct UnreadResults {
    pub(crate) state: SharedState,
    pub(crate) principal: Arc<str>,
    /// Ends the connection.
    pub(crate) end: CancellationToken,
    /// When the client last read. All results on the connection share it: while the client reads
    /// one of them, the others don't count as stuck.
    pub(crate) progress: ReadProgress,
}

impl UnreadResults {
    /// Counts a result until the returned value is dropped. If no room is left, the connection is
    /// closed.
    pub(crate) fn hold(&self, bytes: usize) -> Option<UnreadResult> {
        if bytes < MIN_COUNTED_BYTES {
            return None;
        }
        let end = self.end.clone();
        let ends = move || {
            tracing::warn!(
                "a client that does not read its results was disconnected (memory_total)"
            );
            end.cancel();
        };
        let held = self
            .state
            .unread(&self.principal, bytes as u64, &self.progress, ends.clone());
        if held.is_none() {
            ends();
        }
        held
    }
}
