//! Reads a call of a tool, the message that comes most, in one pass.
//!
//! The protocol library buffers each message as values that it then tries as one kind after the other. What is
//! not read here is left to it.

use rmcp::model::{
    CallToolRequest, CallToolRequestMethod, CallToolRequestParams, ClientRequest, JsonRpcMessage,
    JsonRpcRequest, JsonRpcVersion2_0, RequestId,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage};
use serde::Deserialize;

/// A call with the members of a request, and no others.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    jsonrpc: JsonRpcVersion2_0,
    id: RequestId,
    #[serde(rename = "method")]
    _method: CallToolRequestMethod,
    params: CallToolRequestParams,
}

/// The call that a line is; `None` if it is anything else, or nothing that can be read.
pub(super) fn read(line: &[u8]) -> Option<RxJsonRpcMessage<RoleServer>> {
    // Checked as a whole: what is skipped would not be.
    let line = std::str::from_utf8(line).ok()?;
    let message: Message = serde_json::from_str(line).ok()?;
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
        let line =
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","x":"?"}}"#;
        assert!(read(line).is_some());
        let invalid = line.map(|byte| if byte == b'?' { 0xff } else { byte });
        assert!(read(&invalid).is_none());
    }
}
