//! What a client calls its call: the id of the request, the id that a model's API gave the tool call, and the trace.

use http::HeaderName;
use rmcp::model::RequestId;
use rmcp::service::{RequestContext, RoleServer};
use serde_json::Value;
use toolward_host::{Native, NativeId, TraceParent};

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
