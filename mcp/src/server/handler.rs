//! Announces what the server has, and dispatches requests.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, DiscoverResult, ErrorData, GetPromptRequestParams, GetPromptResponse,
    Implementation, InitializeRequestParams, InitializeResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, SubscriptionContext};
use toolward_host::{CallError, ErrorClass, ErrorCode};
use toolward_support::helper::lock;

use super::Connection;
use crate::call;
use crate::catalogue::Found;
use crate::client::{Client, Era};
use crate::methods;
use crate::principal::Principal;
use crate::result;
use crate::revision::Revision;

/// The most resources that one subscription may name.
const MAX_SUBSCRIPTIONS: usize = 256;

impl Connection {
    /// Returns the server as a client sees it. The instructions count the principal's unavailable
    /// tools.
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
            .with_instructions(self.service.features().instructions(principal))
    }
}

impl ServerHandler for Connection {
    fn get_info(&self) -> ServerConfig {
        self.config(self.own_principal().as_ref())
    }

    /// Answers `server/discover` of the stateless era.
    async fn discover(
        &self,
        context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        let principal = self.behind(&context.extensions).ok();
        let versions = self.supported_protocol_versions().into_owned();
        let config = self.config(principal.as_ref());
        Ok(DiscoverResult::from_server_info(versions, config))
    }

    /// Answers `initialize` of the session era.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut result = self.negotiate_initialize(&request)?;
        let principal = self.behind(&context.extensions).ok();
        result.instructions = Some(self.service.features().instructions(principal.as_ref()));
        Ok(Revision::named(&result.protocol_version).opening(result))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        one_page(request)?;
        let tools = self.service.features().tools(&self.principal(&context)?);
        let shown = Revision::of(&context).all(tools, Revision::tool);
        Ok(ListToolsResult::with_all_items(shown))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let principal = self.principal(&context)?;
        let features = self.service.features();
        let level = match Era::of(&context) {
            Era::Stateless => context.meta.log_level(),
            Era::Session => *lock(&self.state.level),
        };
        let incoming = call::Incoming {
            features: &features,
            round_trips: &self.service.round_trips,
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
            // Boxed, since the future is large. Otherwise the future of each request would reserve
            // room for it, and be moved with it.
            result = Box::pin(incoming.call(request)) => result,
        }
    }

    /// rmcp calls this before it handles a request of the stateless era, to compare headers with
    /// the arguments that they repeat. Returns a tool only if the principal may call it.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        let features = self.service.features();
        if features.finder.is_some() {
            // No headers repeat the arguments of the server's own tools.
            return None;
        }
        let principal = self.own_principal()?;
        let Found::Listed(listed) = features.catalogue.find(name, &principal)? else {
            return None;
        };
        let schema = Arc::clone(&listed.tool.input_schema);
        Some(Tool::new(listed.name.clone(), "", schema))
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        one_page(request)?;
        let prompts = self.documents(&context)?.prompts();
        let shown = Revision::of(&context).all(prompts, Revision::prompt);
        Ok(ListPromptsResult::with_all_items(shown))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let principal = self.principal(&context)?;
        let client = Client::new(&context, &principal);
        let documents = self.service.features().documents.seen_by(&principal);
        let revision = Revision::of(&context);
        tokio::select! {
            biased;
            () = context.ct.cancelled() => {
                let error = cancelled("the prompt was cancelled");
                Err(ErrorData::internal_error(error.message.clone(), serde_json::to_value(&error).ok()))
            }
            result = Box::pin(documents.prompt(request, &client)) => Ok(match result? {
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
        let resources = self.documents(&context)?.resources();
        let shown = Revision::of(&context).all(resources, Revision::resource);
        Ok(ListResourcesResult::with_all_items(shown))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        one_page(request)?;
        let templates = self.documents(&context)?.templates();
        let shown = Revision::of(&context).all(templates, Revision::template);
        Ok(ListResourceTemplatesResult::with_all_items(shown))
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

    /// Handles a request that the protocol library could not read: an unknown method, or parameters
    /// of the wrong form.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let stateless = Era::of(&context) == Era::Stateless;
        let (call, wrong) = methods::unreadable(request, stateless)?;
        context.extensions.insert(wrong);
        let result = match self.call_tool(call, context).await? {
            CallToolResponse::Complete(result) => serde_json::to_value(result),
            CallToolResponse::InputRequired(result) => serde_json::to_value(result),
            _ => return Err(ErrorData::internal_error("unexpected kind of result", None)),
        };
        let mut result =
            result.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        // The protocol library does the same for the results that it knows.
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
        *lock(&self.state.level) = Some(request.level);
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let Ok(principal) = self.behind(&context.extensions) else {
            return;
        };
        // A client may send this notification again, but one task is enough to notify it.
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
            let message = "there is no such resource";
            return Err(ErrorData::resource_not_found(message, None));
        }
        let mut watched = self.watched();
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
        self.watched().remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            // `listen` checks access, so this answer reveals nothing.
            uris.truncate(MAX_SUBSCRIPTIONS);
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        Box::pin(self.follow(context)).await
    }
}

/// Lists are returned whole, so no cursor is valid.
fn one_page(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        Some(_) => Err(ErrorData::invalid_params("there is no such cursor", None)),
        None => Ok(()),
    }
}

/// Returns the error of a cancelled request.
fn cancelled(message: &str) -> CallError {
    CallError::new(ErrorCode::CANCELED, ErrorClass::Canceled, message)
}
