//! One call of a tool, from the request to the result.
#![expect(
    deprecated,
    reason = "logging is on its way out of MCP, and in both eras still"
)]

mod native;
mod round_trips;
mod runtime;
#[cfg(test)]
mod testing;

use std::pin::pin;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, Extensions, JsonObject,
    LoggingLevel,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use tokio::runtime::Handle;
use toolward_host::{
    CallEnd, CallError, ErrorClass, ErrorCode, RefusedCall, Request, SharedCancellation,
};

use crate::catalogue::{Found, Listed};
use crate::client::{Client, Era};
use crate::features::ServerFeatures;
use crate::observe::Wanted;
use crate::params;
use crate::principal::Principal;
use crate::result::{self, Structure};
use crate::revision::Revision;
use crate::search::{self, Asked};
use crate::strict::{self, Malformed};
pub(crate) use native::new_session;
use round_trips::Called;
pub(crate) use round_trips::RoundTrips;
use runtime::CallRuntime;
pub(crate) use runtime::OthersOpen;

/// An incoming call with its context.
pub(crate) struct Incoming<'a> {
    pub(crate) features: &'a ServerFeatures,
    pub(crate) round_trips: &'a RoundTrips,
    pub(crate) principal: &'a Principal,
    pub(crate) context: &'a RequestContext<RoleServer>,
    /// The least urgent log records that the client wants.
    pub(crate) level: Option<LoggingLevel>,
    /// The session that ids of calls are bound to, if they are.
    pub(crate) session: Option<&'a str>,
    /// The runtime for calls that would hold up the connection.
    pub(crate) long_calls: Option<&'a Handle>,
}

impl Incoming<'_> {
    fn runtime(&self) -> CallRuntime<'_> {
        CallRuntime {
            host: &self.features.host,
            long_calls: self.long_calls,
            others_open: self.context.extensions.get::<OthersOpen>().is_some(),
        }
    }

    /// The fault of an unknown name. It suggests only what this principal may use.
    async fn unknown(&self, name: &str) -> ErrorData {
        let near = self.features.near(name, self.principal);
        let hint = near.map(|near| format!("; did you mean {near:?}?"));
        let shown = toolward_bundle::text::visible_line(name, 200);
        let hint = hint.unwrap_or_default();
        let message = format!("there is no tool {shown:?}{hint}");
        let error = CallError::new(
            ErrorCode::NOT_FOUND,
            ErrorClass::UnknownTool,
            message.as_str(),
        );
        self.refused(name, None, &error).await;
        ErrorData::invalid_params(message, None)
    }

    /// The result of a call that does not reach the host: its end is recorded here. `name` is the client's, `tool` the
    /// host's.
    async fn refused(&self, name: &str, tool: Option<&str>, error: &CallError) -> CallToolResult {
        let refused = RefusedCall {
            principal: &self.principal.name,
            name,
            tool,
            native: &native::native(self.context),
            error,
        };
        // Rare, and large.
        Box::pin(self.features.host.refused(refused)).await;
        result::failed(error)
    }

    pub(crate) async fn call(
        self,
        mut request: CallToolRequestParams,
    ) -> Result<CallToolResponse, ErrorData> {
        let features = self.features;
        let extensions = &self.context.extensions;
        let malformed = strict::found(extensions).map(Malformed::of_call);
        if let Some(error) = malformed.or_else(|| params::wrong_arguments(extensions).cloned()) {
            let name = &request.name;
            if features.finder().is_some() && search::only_looks(name) {
                return Ok(result::failed(&error).into());
            }
            let found = features.catalogue().find(name, self.principal);
            let tool = found.map(|found| found.target());
            return Ok(self.refused(name, tool, &error).await.into());
        }
        let arguments = request.arguments.take().unwrap_or_default();
        if let Some(finder) = features.finder() {
            let asked = finder.asked(
                features.catalogue(),
                &request.name,
                arguments,
                self.principal,
            );
            return match asked {
                Asked::Answer(result) => Ok(result.into()),
                Asked::Failed(error) => Ok(result::failed(&error).into()),
                Asked::Refused(call) => {
                    let result = self.refused(&call.name, call.tool, &call.error).await;
                    Ok(result.into())
                }
                Asked::Call { tool, input } => self.run(tool, input, request).await,
                Asked::Unknown => Err(self.unknown(&request.name).await),
            };
        }
        match features.catalogue().find(&request.name, self.principal) {
            Some(Found::Listed(tool)) => self.run(tool, arguments, request).await,
            // A call of a blocked tool gets the reason why it is blocked.
            Some(Found::Blocked(blocked)) => {
                let reply = Request::with_value(blocked.target.as_str(), Value::Object(arguments))
                    .principal(self.principal.name.clone())
                    .native(native::native(self.context));
                let reply = self.runtime().call(reply).await;
                Ok(result::of(reply, Structure::None).into())
            }
            None => Err(self.unknown(&request.name).await),
        }
    }

    /// The end of a call whose arguments can't be made a request.
    async fn unfit(&self, tool: &Listed, error: &CallError) -> CallToolResponse {
        let result = self.refused(&tool.name, Some(&tool.target), error).await;
        result.into()
    }

    async fn run(
        self,
        tool: &Listed,
        input: JsonObject,
        parameters: CallToolRequestParams,
    ) -> Result<CallToolResponse, ErrorData> {
        let context = self.context;
        let client = Client::new(context, self.principal);
        // What a client of the stateless era is asked is bound to its input. Others are asked while the call waits.
        let bound = match client.era {
            Era::Stateless => input.clone(),
            Era::Session => JsonObject::new(),
        };
        let value = match tool.input(input) {
            Ok(value) => value,
            Err(error) => return Ok(self.unfit(tool, &error).await),
        };
        let native = native::native(context);
        let request = Request::with_value(tool.target.as_str(), value)
            .principal(self.principal.name.clone())
            .native(native.clone())
            .null_is_absent()
            .answer_first();
        let request = match cancellation(&context.extensions) {
            Some(cancellation) => request.cancellation(cancellation.clone()),
            None => request,
        };
        let mut request = match native::named(request, &context.meta, self.session) {
            Ok(request) => request,
            Err(error) => return Ok(self.unfit(tool, &error).await),
        };
        let wanted = Wanted {
            token: context.meta.get_progress_token(),
            level: self.level,
            revision: Revision::of(context),
        };
        let forwarder = match wanted.observer(&context.peer, &tool.name) {
            Some((observer, forwarder)) => {
                request = request.observer(observer);
                Some(forwarder)
            }
            None => None,
        };
        let called = Called {
            name: &tool.name,
            target: &tool.target,
            native: &native,
        };
        // Pinned in place: the future is large, and a function that takes it by value has room for it twice.
        let call = pin!(self.round_trips.carry_out(
            &client,
            self.runtime(),
            request,
            called,
            &bound,
            &parameters
        ));
        let finished = match forwarder {
            // Large, and only for clients that want messages on the way.
            Some(forwarder) => Box::pin(forwarder.during(call)).await,
            None => call.await,
        };
        Ok(match finished {
            CallEnd::Done(mut reply) => {
                if let Err(error) = &mut reply.result {
                    tool.place_violations(error);
                }
                if let Ok(output) = &mut reply.result {
                    output.structured = tool.outward(std::mem::take(&mut output.structured));
                }
                let result = result::of(*reply, tool.structure);
                Revision::of(context).result(result).into()
            }
            CallEnd::Asks(required) => required.into(),
            CallEnd::Failed(fault) => return Err(fault),
        })
    }
}

/// What the transport cancels a call by: of its session or stream, else of its HTTP request.
fn cancellation(extensions: &Extensions) -> Option<&SharedCancellation> {
    let of_request = || extensions.get::<http::request::Parts>()?.extensions.get();
    extensions.get().or_else(of_request)
}
