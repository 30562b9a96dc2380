//! The server: dispatches requests.
#![expect(
    deprecated,
    reason = "logging is on its way out of MCP, and in both eras still"
)]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, DiscoverResult, ErrorData, Extensions, GetPromptRequestParams, GetPromptResponse,
    Implementation, InitializeRequestParams, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, RoleServer, SubscriptionContext};
use tokio::runtime::Handle;
use tokio::sync::watch;
use toolward_host::{CallError, ErrorClass, ErrorCode, SharedState};

use crate::call::{self, RoundTrips};
use crate::documents::Documents;
use crate::features::ServerFeatures;
use crate::params::{self, Unreadable};
use crate::principal::Principal;
use crate::result;
use crate::revision::Revision;
use crate::stdio::Handler;

/// Resources that one subscription may name.
const MAX_SUBSCRIPTIONS: usize = 256;

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
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    features: watch::Sender<Arc<ServerFeatures>>,
    pub(crate) round_trips: RoundTrips,
}

impl Service {
    /// A service with these features. Open questions, approvals and denials are in the
    /// [`SharedState`] of their host.
    #[must_use]
    pub fn new(features: ServerFeatures) -> Self {
        let round_trips = RoundTrips::new(features.host.shared_state());
        Self {
            shared: Arc::new(Shared {
                features: watch::Sender::new(Arc::new(features)),
                round_trips,
            }),
        }
    }

    /// Serves these features from now on. Clients that subscribed are notified; running
    /// calls continue.
    pub fn replace(&self, features: ServerFeatures) {
        self.shared.features.send_replace(Arc::new(features));
    }

    /// The current features.
    #[must_use]
    pub fn features(&self) -> Arc<ServerFeatures> {
        self.shared.features.borrow().clone()
    }

    /// The handler of one connection. Its requests come from `principal`, or, without
    /// one, from the principal that the transport authenticates (see [`crate::http`]).
    #[must_use]
    pub fn connection(&self, principal: Option<Principal>) -> Connection {
        Connection {
            shared: self.shared.clone(),
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
    shared: Arc<Shared>,
    state: Arc<State>,
    long_calls: Option<Handle>,
    approving: Arc<[String]>,
}

impl Connection {
    /// Names the runtime for calls that would hold up this connection. A call that comes while other calls are open
    /// runs there from the start; any other starts on the connection's own runtime, and moves once it computes for more
    /// than 100 µs without a pause. The connection's own runtime can have one thread then.
    ///
    /// The runtime needs tokio's timer and I/O, and must outlive the connection: a call on a runtime that was shut down is
    /// never answered. Calls that are open are counted by [`stdio::serve`](crate::stdio::serve) only. Default: all calls
    /// run where the connection is served.
    #[must_use]
    pub fn long_calls_on(mut self, runtime: Handle) -> Self {
        self.long_calls = Some(runtime);
        self
    }

    /// Names clients that may ask a person for approval, by the name that each gives itself. It counts only for a
    /// connection with its own principal: there the user's configuration started the client or the server, and a name
    /// chooses among the user's programs. It proves nothing, so it is ignored for a principal that a transport
    /// authenticates. Default: no client.
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
    fn features(&self) -> Arc<ServerFeatures> {
        self.shared.features.borrow().clone()
    }

    /// The principal of a request.
    ///
    /// # Errors
    ///
    /// Where the request is not authenticated.
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
        let parts = extensions.get::<http::request::Parts>();
        parts
            .and_then(|parts| parts.extensions.get::<Principal>())
            .cloned()
            .ok_or_else(|| ErrorData::invalid_request("the request is not authenticated", None))
    }

    /// The principal where no request is at hand: that of the connection, or of the HTTP
    /// request that is being handled.
    fn own_principal(&self) -> Option<Principal> {
        let principal = self.state.principal.clone();
        principal.or_else(crate::http::calling)
    }

    /// The documents that a principal may see.
    fn documents(&self, context: &RequestContext<RoleServer>) -> Result<Documents, ErrorData> {
        let principal = self.principal(context)?;
        Ok(self.features().documents().seen_by(&principal))
    }

    fn watched(&self) -> BTreeSet<String> {
        let watched = self.state.watched.lock();
        watched.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notifies a client of the session era of changes until it disconnects.
    async fn notify(self, peer: Peer<RoleServer>, principal: Principal) {
        let mut receiver = self.shared.features.subscribe();
        let mut before = receiver.borrow_and_update().clone();
        loop {
            tokio::select! {
                changed = receiver.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(DISCONNECT_CHECK_INTERVAL) => {
                    if peer.is_transport_closed() { return }
                    continue;
                }
            }
            let now = receiver.borrow_and_update().clone();
            let changes = now.changes_since(&before, &principal);
            let updated = now.updated_since(&before, &self.watched(), &principal);
            before = now;
            let mut told = Ok(());
            if changes.tools {
                told = told.and(peer.notify_tool_list_changed().await);
            }
            if changes.prompts {
                told = told.and(peer.notify_prompt_list_changed().await);
            }
            if changes.resources {
                told = told.and(peer.notify_resource_list_changed().await);
            }
            for uri in updated {
                let update = rmcp::model::ResourceUpdatedNotificationParam::new(uri);
                told = told.and(peer.notify_resource_updated(update).await);
            }
            if told.is_err() {
                return;
            }
        }
    }

    /// Tells a client of the stateless era what has changed, as long as it listens.
    async fn follow(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let principal = self.principal(context.request_context())?;
        let seen = self.features().documents().seen_by(&principal);
        let mut receiver = self.shared.features.subscribe();
        let mut before = receiver.borrow_and_update().clone();
        // A client gets no notifications about resources that it may not read.
        let asked = context.accepted().resource_subscriptions.iter().flatten();
        let watched = asked.filter(|uri| seen.has(uri)).cloned().collect();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = receiver.changed() => if changed.is_err() { return Ok(()) },
            }
            let now = receiver.borrow_and_update().clone();
            let changes = now.changes_since(&before, &principal);
            let updated = now.updated_since(&before, &watched, &principal);
            before = now;
            let accepted = context.accepted();
            let sink = context.sink();
            let mut told = Ok(());
            if changes.tools && accepted.tools_list_changed == Some(true) {
                told = told.and(sink.notify_tool_list_changed().await);
            }
            if changes.prompts && accepted.prompts_list_changed == Some(true) {
                told = told.and(sink.notify_prompt_list_changed().await);
            }
            if changes.resources && accepted.resources_list_changed == Some(true) {
                told = told.and(sink.notify_resource_list_changed().await);
            }
            for uri in updated {
                told = told.and(sink.notify_resource_updated(uri).await);
            }
            if told.is_err() {
                return Ok(());
            }
        }
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
        let state = self.features().host().shared_state().clone();
        Some((state, Arc::clone(&principal.name)))
    }
}

impl Connection {
    /// The server as a client sees it. The instructions count for the principal.
    fn config(&self, principal: Option<&Principal>) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_logging()
            .enable_completions()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        let mut implementation = Implementation::new("toolward", env!("CARGO_PKG_VERSION"));
        implementation.title = Some("Toolward".to_owned());
        ServerConfig::new(capabilities)
            .with_server_info(implementation)
            .with_instructions(self.features().instructions(principal))
    }
}

impl ServerHandler for Connection {
    fn get_info(&self) -> ServerConfig {
        self.config(self.own_principal().as_ref())
    }

    /// The stateless era: the request brings the principal for whom the instructions count.
    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let principal = self.behind(&context.extensions).ok();
        let versions = self.supported_protocol_versions().into_owned();
        let config = self.config(principal.as_ref());
        Ok(DiscoverResult::from_server_info(versions, config))
    }

    /// The session era: the request brings the principal for whom the instructions count.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?;
        let principal = self.behind(&context.extensions).ok();
        result.instructions = Some(self.features().instructions(principal.as_ref()));
        Ok(Revision::named(&result.protocol_version).opening(result))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        one_page(request)?;
        let principal = self.principal(&context)?;
        let revision = Revision::of(&context);
        let tools = self.features().tools(&principal).into_iter();
        Ok(ListToolsResult::with_all_items(
            tools.map(|tool| revision.tool(tool)).collect(),
        ))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let principal = self.principal(&context)?;
        let features = self.features();
        let level = match stateless(&context) {
            true => context.meta.log_level(),
            false => *self
                .state
                .level
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        };
        let incoming = call::Incoming {
            features: &features,
            round_trips: &self.shared.round_trips,
            principal: &principal,
            context: &context,
            level,
            session: self.state.session.as_deref(),
            long_calls: self.long_calls.as_ref(),
        };
        tokio::select! {
            biased;
            // Dropping the future ends the guest and frees its slot.
            () = context.ct.cancelled() => Ok(result::failed(&cancelled("the call was cancelled")).into()),
            // Boxed, as all that is large: every request's future has room for the largest, and is moved to and fro.
            result = Box::pin(incoming.call(request)) => result,
        }
    }

    /// Asked for before a request of the newer era is handled, to compare headers
    /// with the arguments that they repeat. It knows what its principal may call.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let features = self.features();
        if features.finder().is_some() {
            // No headers repeat the arguments of the server's own tools.
            return None;
        }
        let principal = self.own_principal()?;
        let listed = features.find(name, &principal)?;
        let schema = Arc::clone(&listed.tool.input_schema);
        Some(Tool::new(listed.name.clone(), "", schema))
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        one_page(request)?;
        let revision = Revision::of(&context);
        let prompts = self.documents(&context)?.prompts().into_iter();
        Ok(ListPromptsResult::with_all_items(
            prompts.map(|prompt| revision.prompt(prompt)).collect(),
        ))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let documents = self.documents(&context)?;
        let revision = Revision::of(&context);
        tokio::select! {
            biased;
            () = context.ct.cancelled() => {
                let error = cancelled("the prompt was cancelled");
                Err(ErrorData::internal_error(error.message.clone(), serde_json::to_value(&error).ok()))
            }
            result = Box::pin(documents.prompt(request, &context)) => Ok(match result? {
                GetPromptResponse::Complete(result) => revision.messages(result).into(),
                asks => asks,
            }),
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        one_page(request)?;
        let revision = Revision::of(&context);
        let resources = self.documents(&context)?.resources().into_iter();
        Ok(ListResourcesResult::with_all_items(
            resources
                .map(|resource| revision.resource(resource))
                .collect(),
        ))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        one_page(request)?;
        let revision = Revision::of(&context);
        let templates = self.documents(&context)?.templates().into_iter();
        Ok(ListResourceTemplatesResult::with_all_items(
            templates
                .map(|template| revision.template(template))
                .collect(),
        ))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = self.documents(&context)?.read(&request.uri)?;
        Ok(read.into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.documents(&context)?.complete(&request)
    }

    /// What the protocol library could not read: a method that the server does not have, or parameters of the wrong
    /// form.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let stateless = stateless(&context);
        let (call, wrong) = match params::unreadable(request, stateless) {
            Unreadable::Call(call, wrong) => (call, wrong),
            Unreadable::Fault(error) => return Err(error),
        };
        context.extensions.insert(wrong);
        let result = match self.call_tool(*call, context).await? {
            CallToolResponse::Complete(result) => serde_json::to_value(result),
            CallToolResponse::InputRequired(result) => serde_json::to_value(result),
            _ => return Err(ErrorData::internal_error("unexpected kind of result", None)),
        };
        let mut result =
            result.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        // As the protocol library does it for results that it knows.
        if let (false, Some(members)) = (stateless, result.as_object_mut()) {
            members.shift_remove("resultType");
        }
        Ok(CustomResult::new(result))
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let level = &self.state.level;
        *level.lock().unwrap_or_else(PoisonError::into_inner) = Some(request.level);
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Ok(principal) = self.behind(&context.extensions) else {
            return;
        };
        // A client may send it again; one task notifies it.
        if !self.state.notified.swap(true, Ordering::Relaxed) {
            tokio::spawn(self.clone().notify(context.peer, principal));
        }
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if !self.documents(&context)?.has(&request.uri) {
            return Err(ErrorData::resource_not_found(
                "there is no such resource",
                None,
            ));
        }
        let watched = self.state.watched.lock();
        let mut watched = watched.unwrap_or_else(PoisonError::into_inner);
        if watched.len() >= MAX_SUBSCRIPTIONS && !watched.contains(&request.uri) {
            let message = format!("a connection may watch {MAX_SUBSCRIPTIONS} resources");
            return Err(ErrorData::invalid_params(message, None));
        }
        watched.insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.principal(&context)?;
        let watched = self.state.watched.lock();
        watched
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            // `listen` checks access: the answer here reveals nothing.
            uris.truncate(MAX_SUBSCRIPTIONS);
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        Box::pin(self.follow(context)).await
    }
}

/// Whether a request belongs to the era without sessions.
pub(crate) fn stateless(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Lists are returned whole, so no cursor is valid.
fn one_page(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        Some(_) => Err(ErrorData::invalid_params("there is no such cursor", None)),
        None => Ok(()),
    }
}

/// What a cancelled request ends with.
fn cancelled(message: &str) -> CallError {
    CallError::new(ErrorCode::CANCELED, ErrorClass::Canceled, message)
}

#[cfg(test)]
mod tests;
