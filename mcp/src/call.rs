//! One tool call, from the request to the result.
#![expect(
    deprecated,
    reason = "logging is on its way out of MCP, and in both eras still"
)]

mod round_trips;
mod runtime;
#[cfg(test)]
pub(crate) mod testing;

use std::pin::pin;

use http::HeaderName;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, JsonObject, LoggingLevel,
    RequestId,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use tokio::runtime::Handle;
use toolward_host::{
    CallEnd, CallError, ErrorClass, ErrorCode, Native, NativeId, RefusedCall, Request,
    SharedCancellation, TraceParent,
};

use crate::catalogue::{Found, ListedTool};
use crate::client::{Client, Era, attached};
use crate::features::ServerFeatures;
use crate::methods::WrongArguments;
use crate::observe;
use crate::principal::Principal;
use crate::result::{self, Structure};
use crate::revision::Revision;
use crate::search::{self, Asked};
use crate::strict::Malformed;
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
    /// The session to which ids of calls are bound, if they are bound.
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

    /// Records a call of an unknown name, and returns its fault. The fault suggests only tools that
    /// this principal may use.
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

    /// Returns the result of a call that does not reach the host, and records its end. `name` is
    /// the client's name for the tool, `tool` the host's.
    async fn refused(&self, name: &str, tool: Option<&str>, error: &CallError) -> CallToolResult {
        let refused = RefusedCall {
            principal: &self.principal.name,
            name,
            tool,
            native: &native(self.context),
            error,
        };
        // Boxed, since the future is large and rarely needed.
        Box::pin(self.features.host.refused(refused)).await;
        result::failed(error)
    }

    pub(crate) async fn call(
        self,
        mut request: CallToolRequestParams,
    ) -> Result<CallToolResponse, ErrorData> {
        let features = self.features;
        let extensions = &self.context.extensions;
        let wrong = || Some(extensions.get::<WrongArguments>()?.0.clone());
        let malformed = attached::<Malformed>(extensions).map(Malformed::of_call);
        if let Some(error) = malformed.or_else(wrong) {
            let name = &request.name;
            if features.finder.is_some() && search::only_looks(name) {
                return Ok(result::failed(&error).into());
            }
            let found = features.catalogue.find(name, self.principal);
            let tool = found.map(|found| found.target());
            return Ok(self.refused(name, tool, &error).await.into());
        }
        let arguments = request.arguments.take().unwrap_or_default();
        if let Some(finder) = &features.finder {
            let asked = finder.asked(
                &features.catalogue,
                &request.name,
                arguments,
                self.principal,
            );
            return match asked {
                Asked::Answer(result) => Ok(result.into()),
                Asked::Failed(error) => Ok(result::failed(&error).into()),
                Asked::Refused { name, tool, error } => {
                    Ok(self.refused(&name, tool, &error).await.into())
                }
                Asked::Call { tool, input } => self.run(tool, input, request).await,
                Asked::Unknown => Err(self.unknown(&request.name).await),
            };
        }
        match features.catalogue.find(&request.name, self.principal) {
            Some(Found::Listed(tool)) => self.run(tool, arguments, request).await,
            // A call to a blocked tool ends with the reason why it is blocked.
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

    async fn run(
        self,
        tool: &ListedTool,
        input: JsonObject,
        parameters: CallToolRequestParams,
    ) -> Result<CallToolResponse, ErrorData> {
        let context = self.context;
        let client = Client::new(context, self.principal);
        // A client of the stateless era calls again with the answer, so a question is bound to the
        // call's input. A client of the session era is asked while the call waits.
        let bound = match client.era {
            Era::Stateless => input.clone(),
            Era::Session => JsonObject::new(),
        };
        let request = tool.input(input).and_then(|value| {
            let request = Request::with_value(tool.target.as_str(), value)
                .principal(self.principal.name.clone())
                .native(native(context))
                .null_is_absent()
                .answer_first();
            let request = match attached::<SharedCancellation>(&context.extensions) {
                Some(cancellation) => request.cancellation(cancellation.clone()),
                None => request,
            };
            named(request, &context.meta, self.session)
        });
        let mut request = match request {
            Ok(request) => request,
            Err(error) => {
                let result = self.refused(&tool.name, Some(&tool.target), &error).await;
                return Ok(result.into());
            }
        };
        let (observer, forwarder) = observe::observer(context, self.level, &tool.name).unzip();
        if let Some(observer) = observer {
            request = request.observer(observer);
        }
        // Pinned in place, since the future is large: a function that takes it by value reserves
        // room for it twice.
        let call = pin!(self.round_trips.carry_out(
            &client,
            self.runtime(),
            Box::new(request),
            &tool.name,
            &bound,
            &parameters
        ));
        let finished = match forwarder {
            // Boxed, since it is large, and only needed for clients that want messages during the
            // call.
            Some(forwarder) => Box::pin(forwarder.during(call)).await,
            None => call.await,
        };
        let finished = match finished {
            Ok(finished) => finished,
            Err(fault) => {
                let (code, class) = match fault.code {
                    rmcp::model::ErrorCode::INTERNAL_ERROR => {
                        (ErrorCode::INTERNAL, ErrorClass::ExecutionFailed)
                    }
                    _ => (ErrorCode::INPUT_INVALID, ErrorClass::InvalidArguments),
                };
                let error = CallError::new(code, class, fault.message.as_ref());
                self.refused(&tool.name, Some(&tool.target), &error).await;
                return Err(fault);
            }
        };
        Ok(match finished {
            CallEnd::Done(mut reply) => {
                match &mut reply.result {
                    Ok(output) => {
                        let value = std::mem::take(&mut output.structured);
                        output.structured = tool.contract.outputs.outward_value(value);
                    }
                    Err(error) => tool.place_violations(error),
                }
                let result = result::of(*reply, tool.structure);
                Revision::of(context).result(result).into()
            }
            CallEnd::Asks(required) => required.into(),
            CallEnd::Failed(fault) => return Err(fault),
        })
    }
}

/// Returns the client's own ids of a request. A text that [`Native`] can't hold is left out. A
/// trace in `_meta` takes precedence over a trace in a header, which a proxy may have set.
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

/// Returns the trace of a request's header, if it has exactly one such header.
fn header(context: &RequestContext<RoleServer>) -> Option<TraceParent> {
    let parts = context.extensions.get::<http::request::Parts>()?;
    let mut headers = parts.headers.get_all(TRACEPARENT_HEADER).iter();
    let (header, None) = (headers.next()?, headers.next()) else {
        return None;
    };
    TraceParent::read(header.to_str().ok()?).ok()
}

/// Returns the request with the id from its `_meta`. On standard input and output the id is bound
/// to the `session`, since all clients there are the same principal.
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
    // Without random bytes all sessions have the same name, so a call's id is valid in all of them.
    let _ = getrandom::fill(&mut random);
    format!("{:032x}", u128::from_ne_bytes(random))
}
