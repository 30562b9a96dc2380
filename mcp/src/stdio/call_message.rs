//! Reads a call of a tool, the message that comes most, in one pass.
//!
//! The protocol library buffers each message as values that it then tries as one kind after the other. What is
//! not read here is left to it.

use std::fmt;

use rmcp::model::{
    CallToolRequest, CallToolRequestMethod, CallToolRequestParams, ClientRequest, JsonRpcMessage,
    JsonRpcRequest, JsonRpcVersion2_0, RequestId,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// A call with the members of a request, and no others.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    jsonrpc: JsonRpcVersion2_0,
    id: RequestId,
    #[serde(rename = "method")]
    _method: CallToolRequestMethod,
    #[serde(deserialize_with = "of_object")]
    params: CallToolRequestParams,
}

/// Reads an object. By itself, the type would also be read from a list of its members' values.
fn of_object<'de, D: Deserializer<'de>>(from: D) -> Result<CallToolRequestParams, D::Error> {
    struct Object;

    impl<'de> Visitor<'de> for Object {
        type Value = CallToolRequestParams;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            CallToolRequestParams::deserialize(MapAccessDeserializer::new(map))
        }
    }

    from.deserialize_map(Object)
}

/// The call that a line is; `None` if it is anything else, or nothing that can be read. The line has to be JSON: a
/// member that is skipped is not looked at.
pub(super) fn read(line: &[u8]) -> Option<RxJsonRpcMessage<RoleServer>> {
    let message: Message = serde_json::from_slice(line).ok()?;
    let mut params = message.params;
    let meta = params.meta.take();
    let mut call = CallToolRequest::new(params);
    if let Some(meta) = meta {
        call.extensions.insert(meta);
    }
    Some(JsonRpcMessage::Request(JsonRpcRequest {
        jsonrpc: message.jsonrpc,
        id: message.id,
        request: ClientRequest::CallToolRequest(call),
    }))
}

#[cfg(test)]
mod tests {
    use rmcp::model::RequestMetaObject;
    use serde_json::{Value, json};

    use super::*;

    type Incoming = RxJsonRpcMessage<RoleServer>;

    fn by_library(line: &Value) -> Option<Incoming> {
        serde_json::from_value(line.clone()).ok()
    }

    fn here(line: &Value) -> Option<Incoming> {
        read(line.to_string().as_bytes())
    }

    #[test]
    fn a_call_is_read_as_the_library_reads_it() {
        for line in [
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a"}}),
            json!({"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": {
                "name": "a_b", "arguments": {"n": 1.5, "big": u64::MAX, "s": "\u{1f600}", "l": [null, {}]},
                "unknown": true, "_meta": {"progressToken": 7, "other": {"a": 1}}}}),
            json!({"jsonrpc": "2.0", "id": 2.0, "method": "tools/call", "params": {
                "name": "a", "_meta": null, "arguments": null, "requestState": "s",
                "inputResponses": {"q": {"action": "accept", "content": {"a": 1}}}}}),
        ] {
            let read = here(&line).expect("a call");
            assert_eq!(json!(read), json!(by_library(&line)), "{line}");
            let JsonRpcMessage::Request(request) = read else {
                panic!("{line}");
            };
            let ClientRequest::CallToolRequest(call) = request.request else {
                panic!("{line}");
            };
            assert!(call.params.meta.is_none());
            let meta = call.extensions.get::<RequestMetaObject>();
            let sent = line.pointer("/params/_meta").filter(|meta| !meta.is_null());
            assert_eq!(meta.map(|meta| json!(meta)).as_ref(), sent);
        }
    }

    #[test]
    fn anything_else_is_left_to_the_library() {
        let call =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a"}});
        assert!(here(&call).is_some());
        for (pointer, value) in [
            ("/jsonrpc", json!("1.0")),
            ("/id", json!(null)),
            ("/id", json!(1.5)),
            ("/method", json!("tools/list")),
            ("/params", json!([])),
            ("/params", json!([null, "a", {"n": 1}, null, null])),
            ("/params", json!({})),
            ("/params/name", json!(7)),
        ] {
            let mut line = call.clone();
            *line.pointer_mut(pointer).unwrap() = value;
            assert!(here(&line).is_none(), "{line}");
        }
        for more in ["result", "error", "unknown"] {
            let mut line = call.clone();
            line[more] = json!({});
            assert!(here(&line).is_none(), "{line}");
        }
        assert!(read(b"{\"jsonrpc\":\"2.0\"").is_none());
    }
}
