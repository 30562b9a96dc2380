//! The client of one request: who stands behind it, and what it can be asked.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ClientCapabilities, InputRequest, ProtocolVersion, ServerRequest};
use rmcp::service::{Peer, PeerRequestOptions, RequestContext, RoleServer, ServiceError};
use serde_json::Value;
use toolward_host::Answerable;

use crate::principal::Principal;

/// How a client is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    /// By requests of the server's own, while the call waits (before 2026-07-28).
    Session,
    /// By a result that says what is missing; the client calls again with it.
    Stateless,
}

/// Why a client gave no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// It took too long.
    Late,
    /// It answered with an error. What a person says is a result.
    Refused,
    /// It failed, or has gone.
    Failed,
}

/// What a client says, or why it says nothing.
pub(crate) type Said<'a> = Pin<Box<dyn Future<Output = Result<Value, Unanswered>> + Send + 'a>>;

/// A client that can be asked while a call waits.
pub(crate) trait Person: Send + Sync {
    /// Sends a request to it and gives the result as JSON.
    fn ask(&self, request: InputRequest, patience: Duration) -> Said<'_>;
}

/// Who calls, and what can be asked of them.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) principal: Principal,
    pub(crate) era: Era,
    pub(crate) answerable: Answerable,
    /// `None` where it can't be asked while a call waits.
    pub(crate) person: Option<Arc<dyn Person>>,
}

impl Client {
    /// The client that sent a request.
    pub(crate) fn new(context: &RequestContext<RoleServer>, principal: &Principal) -> Self {
        let version = context.protocol_version();
        let stateless = version.is_some_and(|version| version >= ProtocolVersion::NO_INITIALIZE);
        let era = match stateless {
            true => Era::Stateless,
            false => Era::Session,
        };
        let capabilities = context.client_capabilities();
        let answerable = capabilities.as_ref().map(answerable).unwrap_or_default();
        let asked = era == Era::Session && answerable != Answerable::default();
        Self {
            principal: principal.clone(),
            era,
            answerable,
            person: asked.then(|| Arc::new(context.peer.clone()) as Arc<dyn Person>),
        }
    }
}

/// What a client says that it can do. An elicitation capability that names no
/// mode means forms.
fn answerable(capabilities: &ClientCapabilities) -> Answerable {
    let form = capabilities.elicitation.as_ref();
    Answerable {
        form: form.is_some_and(|modes| modes.form.is_some() || modes.url.is_none()),
        sample: capabilities.sampling.is_some(),
        roots: capabilities.roots.is_some(),
    }
}

impl Person for Peer<RoleServer> {
    fn ask(&self, request: InputRequest, patience: Duration) -> Said<'_> {
        Box::pin(async move {
            let request = match request {
                InputRequest::CreateMessage(request) => {
                    ServerRequest::CreateMessageRequest(request)
                }
                InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
                InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
                _ => return Err(Unanswered::Failed),
            };
            let options = PeerRequestOptions::with_timeout(patience);
            let handle = self.send_request_with_option(request, options).await;
            let handle = handle.map_err(|error| unanswered(&error))?;
            let open = Open {
                peer: self,
                id: Some(handle.id.clone()),
            };
            let result = handle.await_response().await;
            open.close();
            let result = result.map_err(|error| unanswered(&error))?;
            serde_json::to_value(result).map_err(|_unserialisable| Unanswered::Failed)
        })
    }
}

/// A request that is taken back if nobody waits for its answer any more: the
/// person should not be left with a question that means nothing.
struct Open<'a> {
    peer: &'a Peer<RoleServer>,
    id: Option<rmcp::model::RequestId>,
}

impl Open<'_> {
    fn close(mut self) {
        self.id = None;
    }
}

impl Drop for Open<'_> {
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
