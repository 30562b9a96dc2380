//! The server: its features, and the state of its connections.
#![expect(
    deprecated,
    reason = "logging is on its way out of MCP, and in both eras still"
)]

mod handler;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};

use rmcp::model::{ErrorData, Extensions, LoggingLevel};
use rmcp::service::{Peer, RequestContext, RoleServer, SubscriptionContext, SubscriptionSendError};
use tokio::runtime::Handle;
use tokio::sync::watch;
use toolward_host::SharedState;
use toolward_support::helper::lock;

use crate::call::{self, RoundTrips};
use crate::client::attached;
use crate::documents::ServedDocuments;
use crate::features::{Changes, ServerFeatures};
use crate::principal::Principal;
use crate::stdio::Handler;

/// Serves all connections: the current features, and the state of clients. Cheap to
/// clone; clones share everything.
///
/// ```no_run
/// use toolward_host::{Host, LOCAL};
/// use toolward_mcp::principal::{Principal, Tools};
/// use toolward_mcp::stdio::{self, Streams};
/// use toolward_mcp::{ServerFeatures, Service};
/// use toolward_policy::Policy;
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let host = Host::builder().build()?;
/// let service = Service::new(ServerFeatures::new(host, &[], &Policy::empty(), 100)?);
/// let user = Principal { name: LOCAL.into(), tools: Tools::All, may_approve: false };
/// let connection = service.connection(Some(user));
/// stdio::serve(connection, Streams::take()?, Default::default()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Service {
    features: watch::Sender<Arc<ServerFeatures>>,
    round_trips: Arc<RoundTrips>,
}

impl Service {
    /// A service with these features. Open questions, approvals and denials are in the
    /// [`SharedState`] of their host.
    #[must_use]
    pub fn new(features: ServerFeatures) -> Self {
        Self {
            round_trips: Arc::new(RoundTrips::new(features.host.shared_state())),
            features: watch::Sender::new(Arc::new(features)),
        }
    }

    /// Serves these features from now on. Clients that follow changes are notified; running calls
    /// continue.
    pub fn replace(&self, features: ServerFeatures) {
        self.features.send_replace(Arc::new(features));
    }

    /// The current features.
    #[must_use]
    pub fn features(&self) -> Arc<ServerFeatures> {
        self.features.borrow().clone()
    }

    /// The handler of one connection. Its requests come from `principal`, or, without
    /// one, from the principal that the transport authenticates (see [`crate::http`]).
    #[must_use]
    pub fn connection(&self, principal: Option<Principal>) -> Connection {
        Connection {
            service: self.clone(),
            state: Arc::new(State {
                session: principal.is_some().then(call::new_session),
                principal,
                level: Mutex::new(None),
                watched: Mutex::default(),
                notified: AtomicBool::new(false),
            }),
            long_calls: None,
            approving: Arc::default(),
        }
    }
}

/// One client's connection.
#[derive(Clone)]
pub struct Connection {
    service: Service,
    state: Arc<State>,
    long_calls: Option<Handle>,
    approving: Arc<[String]>,
}

impl Connection {
    /// Names the runtime for calls that would hold up this connection. A call that comes while
    /// other calls are open runs there from the start; any other call starts on the connection's
    /// own runtime, and moves once it computes for more than 100 µs without a pause. One thread is
    /// then enough for the connection's own runtime.
    ///
    /// The runtime needs tokio's timer and I/O, and must outlive the connection: a call on a
    /// runtime that was shut down is never answered. Only [`stdio::serve`](crate::stdio::serve)
    /// counts open calls, so over HTTP each call starts on the connection's own runtime. Default:
    /// all calls run on the connection's own runtime.
    #[must_use]
    pub fn long_calls_on(mut self, runtime: Handle) -> Self {
        self.long_calls = Some(runtime);
        self
    }

    /// Sets the names of clients that may ask a person for approval. Each client states its name
    /// itself. A name proves nothing, so the names are ignored for a principal that a transport
    /// authenticates. They count only for a connection that was made with a principal: the user's
    /// configuration started its client or this server, so a name only chooses among the user's
    /// programs. Default: no client.
    #[must_use]
    pub fn approving_clients(mut self, names: impl Into<Arc<[String]>>) -> Self {
        self.approving = names.into();
        self
    }
}

struct State {
    principal: Option<Principal>,
    /// The session of a connection that has one principal.
    session: Option<String>,
    /// The least urgent log records that the client asked for.
    level: Mutex<Option<LoggingLevel>>,
    /// The resources whose changes the client subscribed to.
    watched: Mutex<BTreeSet<String>>,
    /// Whether a task notifies the client.
    notified: AtomicBool,
}

impl Connection {
    /// The principal of a request.
    ///
    /// # Errors
    ///
    /// If the request is not authenticated.
    fn principal(&self, context: &RequestContext<RoleServer>) -> Result<Principal, ErrorData> {
        let mut principal = self.behind(&context.extensions)?;
        principal.may_approve |= self.approves(context);
        Ok(principal)
    }

    /// Whether the client has one of the names that the operator trusts at this connection.
    fn approves(&self, context: &RequestContext<RoleServer>) -> bool {
        if self.approving.is_empty() || self.state.principal.is_none() {
            return false;
        }
        let client = context.client_info();
        client.is_some_and(|client| self.approving.contains(&client.name))
    }

    fn behind(&self, extensions: &Extensions) -> Result<Principal, ErrorData> {
        if let Some(principal) = &self.state.principal {
            return Ok(principal.clone());
        }
        let principal = attached::<Principal>(extensions).cloned();
        principal
            .ok_or_else(|| ErrorData::invalid_request("the request is not authenticated", None))
    }

    /// Returns the principal for callbacks without a request: the principal of the connection, or
    /// of the HTTP request that is being handled.
    fn own_principal(&self) -> Option<Principal> {
        let principal = self.state.principal.clone();
        principal.or_else(crate::http::calling)
    }

    /// The documents that the principal of a request may see.
    fn documents(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<ServedDocuments, ErrorData> {
        let principal = self.principal(context)?;
        Ok(self.service.features().documents.seen_by(&principal))
    }

    fn watched(&self) -> MutexGuard<'_, BTreeSet<String>> {
        lock(&self.state.watched)
    }

    /// Notifies a client of the session era of changes until it disconnects.
    async fn notify(self, peer: Peer<RoleServer>, principal: Principal) {
        let mut features = self.follow_features();
        loop {
            tokio::select! {
                changed = features.receiver.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(DISCONNECT_CHECK_INTERVAL) => {
                    if peer.is_transport_closed() { return }
                    continue;
                }
            }
            let changes = features.changes(&self.watched(), &principal);
            for notification in changes.notifications() {
                if peer.send_notification(notification).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Notifies a client of the stateless era of changes, as long as it listens.
    async fn follow(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let principal = self.principal(context.request_context())?;
        let seen = self.service.features().documents.seen_by(&principal);
        let mut features = self.follow_features();
        // A client gets no notifications about resources that it may not read.
        let asked = context.accepted().resource_subscriptions.iter().flatten();
        let watched = asked.filter(|uri| seen.has(uri)).cloned().collect();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = features.receiver.changed() => if changed.is_err() { return Ok(()) },
            }
            for notification in features.changes(&watched, &principal).notifications() {
                match context.sink().send(notification).await {
                    Ok(()) | Err(SubscriptionSendError::NotificationNotAccepted(_)) => {}
                    Err(_) => return Ok(()),
                }
            }
        }
    }

    fn follow_features(&self) -> FollowedFeatures {
        let mut receiver = self.service.features.subscribe();
        let before = receiver.borrow_and_update().clone();
        FollowedFeatures { receiver, before }
    }
}

/// The features as a client knows them.
struct FollowedFeatures {
    receiver: watch::Receiver<Arc<ServerFeatures>>,
    before: Arc<ServerFeatures>,
}

impl FollowedFeatures {
    /// Returns the changes for a client that watches these resources.
    fn changes(&mut self, watched: &BTreeSet<String>, principal: &Principal) -> Changes {
        let now = self.receiver.borrow_and_update().clone();
        let changes = now.changes_since(&self.before, watched, principal);
        self.before = now;
        changes
    }
}

/// How often a task that waits for changes checks whether its client is connected.
const DISCONNECT_CHECK_INTERVAL: std::time::Duration = std::time::Duration::from_secs(30);

impl Handler for Connection {
    fn long_calls_runtime(&self) -> Option<&Handle> {
        self.long_calls.as_ref()
    }

    fn results_count_in(&self) -> Option<(SharedState, Arc<str>)> {
        let principal = self.state.principal.as_ref()?;
        let state = self.service.features().host().shared_state().clone();
        Some((state, Arc::clone(&principal.name)))
    }
}

#[cfg(test)]
mod tests;
