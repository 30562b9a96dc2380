//! One call of a tool, from the request to the result.
#![expect(
    deprecated,
    reason = "logging is on its way out of MCP, and in both eras still"
)]

mod round_trips;
mod runtime;
#[cfg(test)]
mod testing;

use std::pin::pin;

use http::HeaderName;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, Extensions, JsonObject,
    LoggingLevel, RequestId,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use tokio::runtime::Handle;
use toolward_host::{
    CallEnd, CallError, ErrorClass, ErrorCode, Native, NativeId, RefusedCall, Request,
    SharedCancellation, TraceParent,
};

use crate::catalogue::{Found, ListedTool};
use crate::client::{Client, Era};
use crate::features::ServerFeatures;
use crate::observe::Wanted;
use crate::params;
use crate::principal::Principal;
use crate::result::{self, Structure};
use crate::revision::Revision;
use crate::search::{self, Asked};
use crate::strict::{self, Malformed};
use round_trips::Called;
pub(crate) use round_trips::RoundTrips;
use runtime::CallRuntime;
pub(crate) use runtime::OthersOpen;

/// `_meta` of a call: the id of the model's tool call.
const TOOL_CALL_ID_META: &str = "tool_call_id";
/// `_meta` of a call, and a header of HTTP: W3C Trace Context.
const TRACEPARENT: &str = "traceparent";
const TRACEPARENT_HEADER: HeaderName = HeaderName::from_static(TRACEPARENT);
/// `_meta` of a call: its id.
const ID_META: &str = "toolward/id";

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
            native: &native(self.context),
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
                    .native(native(self.context));
                let reply = self.runtime().call(Box::new(reply)).await;
                Ok(result::of(reply, Structure::None).into())
            }
            None => Err(self.unknown(&request.name).await),
        }
    }

    /// The end of a call whose arguments can't be made a request.
    async fn unfit(&self, tool: &ListedTool, error: &CallError) -> CallToolResponse {
        let result = self.refused(&tool.name, Some(&tool.target), error).await;
        result.into()
    }

    async fn run(
        self,
        tool: &ListedTool,
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
        let native = native(context);
        let request = Request::with_value(tool.target.as_str(), value)
            .principal(self.principal.name.clone())
            .native(native.clone())
            .null_is_absent()
            .answer_first();
        let request = match cancellation(&context.extensions) {
            Some(cancellation) => request.cancellation(cancellation.clone()),
            None => request,
        };
        let mut request = match named(request, &context.meta, self.session) {
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
            Box::new(request),
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

/// What is known of a request. Text of another form than [`Native`] has is left out. A trace in `_meta` counts
/// before one in a header, which a proxy may have set.
fn native(context: &RequestContext<RoleServer>) -> Native {
    let call_id = match &context.id {
        RequestId::Number(number) => NativeId::parse(&number.to_string()),
        RequestId::String(text) => NativeId::parse(text),
    };
    let meta = |name| context.meta.get(name).and_then(Value::as_str);
    Native {
        call_id: call_id.ok(),
        tool_call_id: meta(TOOL_CALL_ID_META).and_then(|id| NativeId::parse(id).ok()),
        traceparent: meta(TRACEPARENT)
            .and_then(|text| TraceParent::read(text).ok())
            .or_else(|| header(context)),
    }
}

/// The only header of the request with a trace.
fn header(context: &RequestContext<RoleServer>) -> Option<TraceParent> {
    let parts = context.extensions.get::<http::request::Parts>()?;
    let mut headers = parts.headers.get_all(TRACEPARENT_HEADER).iter();
    let (header, None) = (headers.next()?, headers.next()) else {
        return None;
    };
    TraceParent::read(header.to_str().ok()?).ok()
}

/// The request, with the id that its `_meta` has. On standard input and output it is bound to the `session`: all
/// clients there are the same principal.
///
/// # Errors
/// If the id is not a string.
fn named(request: Request, meta: &JsonObject, session: Option<&str>) -> Result<Request, CallError> {
    match (meta.get(ID_META), session) {
        (None, _) => Ok(request),
        (Some(Value::String(id)), Some(session)) => Ok(request.named_within(id, session)),
        (Some(Value::String(id)), None) => Ok(request.named(id)),
        (Some(_), _) => Err(CallError::new(
            ErrorCode::INPUT_INVALID,
            ErrorClass::InvalidArguments,
            format!("expected `_meta[\"{ID_META}\"]` to be a UUIDv7, found another type"),
        )),
    }
}

/// The name of a new session.
pub(crate) fn new_session() -> String {
    let mut random = [0_u8; 16];
    // Without randomness, ids are known beyond their session.
    let _ = getrandom::fill(&mut random);
    format!("{:032x}", u128::from_ne_bytes(random))
}
