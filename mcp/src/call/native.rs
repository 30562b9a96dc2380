//! What a client calls its call: the id of the request, the id that a model's API gave the tool call, the trace, and
//! the idempotency key in `_meta["toolward/id"]`.

use http::HeaderName;
use rmcp::model::{JsonObject, RequestId};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use toolward_host::{CallError, ErrorClass, ErrorCode, Native, NativeId, Request, TraceParent};

/// `_meta` of a call: the id of the model's tool call.
const TOOL_CALL_ID_META: &str = "tool_call_id";
/// `_meta` of a call, and a header of HTTP: W3C Trace Context.
const TRACEPARENT: &str = "traceparent";
const TRACEPARENT_HEADER: HeaderName = HeaderName::from_static(TRACEPARENT);

/// What is known of a request. Text of another form than [`Native`] has is left out. A trace in `_meta` counts
/// before one in a header, which a proxy may have set.
pub(super) fn native(context: &RequestContext<RoleServer>) -> Native {
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

/// `_meta` of a call: its id.
const ID_META: &str = "toolward/id";

/// The request, with the id that its `_meta` has. On standard input and output it is bound to the `session`: all
/// clients there are the same principal.
///
/// # Errors
/// If the id is not a string.
pub(super) fn named(
    request: Request,
    meta: &JsonObject,
    session: Option<&str>,
) -> Result<Request, CallError> {
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
