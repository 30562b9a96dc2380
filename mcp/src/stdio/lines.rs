//! Reads lines of bounded length from a stream. Parses a tool call, the most frequent message, in
//! one pass.
//!
//! The protocol library buffers each message as values, and then tries one kind of message after
//! the other. Messages that are not parsed here are left to the library.

use std::{fmt, io};

use bytes::BytesMut;
use rmcp::model::{
    CallToolRequest, CallToolRequestMethod, CallToolRequestParams, ClientRequest, JsonRpcMessage,
    JsonRpcRequest, JsonRpcVersion2_0, RequestId, RequestMetaObject,
};
use rmcp::service::{RoleServer, RxJsonRpcMessage};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::strict;

/// The most bytes of one read.
const READ_CHUNK_BYTES: u64 = 64 << 10;

/// The least room for a read.
const MIN_BUFFER_BYTES: usize = 4 << 10;

/// A line of input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputLine {
    Whole(BytesMut),
    /// The start of a line that is too long. The rest is skipped.
    TooLong(BytesMut),
}

/// Reads lines.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    longest: usize,
    /// Bytes that were read but not handed on yet.
    buffer: BytesMut,
    /// How many bytes of the buffer are known to contain no line end.
    scanned: usize,
    /// Whether the rest of a line that is too long is being skipped.
    skipping: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Reads lines of at most `longest` bytes.
    pub(super) fn new(input: R, longest: usize) -> Self {
        Self {
            input,
            longest,
            buffer: BytesMut::new(),
            scanned: 0,
            skipping: false,
        }
    }

    /// Returns the next line that is not empty; `None` at the end. Text without a line end is
    /// ignored. Cancel safe.
    pub(super) async fn next(&mut self) -> io::Result<Option<InputLine>> {
        loop {
            let new = self.buffer.get(self.scanned..).unwrap_or_default();
            if let Some(at) = new.iter().position(|byte| *byte == b'\n') {
                let end = self.scanned.saturating_add(at).saturating_add(1);
                let line = self.buffer.split_to(end);
                self.scanned = 0;
                if std::mem::take(&mut self.skipping) || line.trim_ascii().is_empty() {
                    continue;
                }
                return Ok(Some(match line.len() > self.longest {
                    true => InputLine::TooLong(line),
                    false => InputLine::Whole(line),
                }));
            }
            if self.skipping {
                self.buffer.clear();
            } else if self.buffer.len() > self.longest {
                self.skipping = true;
                self.scanned = 0;
                return Ok(Some(InputLine::TooLong(self.buffer.split())));
            }
            self.scanned = self.buffer.len();
            self.buffer.reserve(MIN_BUFFER_BYTES);
            let mut some = (&mut self.input).take(READ_CHUNK_BYTES);
            if some.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }
}

/// A call with the usual members of a request, and no others.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    jsonrpc: JsonRpcVersion2_0,
    #[serde(deserialize_with = "strict::id")]
    id: RequestId,
    #[serde(rename = "method")]
    _method: CallToolRequestMethod,
    #[serde(deserialize_with = "of_object")]
    params: Params,
}

/// The parameters that most calls have.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    name: String,
    #[serde(default, deserialize_with = "strict::arguments")]
    arguments: Option<Map<String, Value>>,
    #[serde(default, rename = "_meta", deserialize_with = "strict::metadata")]
    meta: Option<Map<String, Value>>,
}

/// Reads an object. Without this, the type could also be read from a list of its members' values.
fn of_object<'de, D: Deserializer<'de>>(from: D) -> Result<Params, D::Error> {
    struct Object;

    impl<'de> Visitor<'de> for Object {
        type Value = Params;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            Params::deserialize(MapAccessDeserializer::new(map))
        }
    }

    from.deserialize_map(Object)
}

/// Reads a line as a call; `None` if it has unusual members or breaks a strict rule.
pub(super) fn read_call(line: &[u8]) -> Option<RxJsonRpcMessage<RoleServer>> {
    let message: Message = serde_json::from_slice(line).ok()?;
    let mut params = CallToolRequestParams::new(message.params.name);
    params.arguments = message.params.arguments;
    let mut call = CallToolRequest::new(params);
    if let Some(meta) = message.params.meta {
        let meta: RequestMetaObject = serde_json::from_value(Value::Object(meta)).ok()?;
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

    async fn all(text: &str, longest: usize) -> Vec<(bool, String)> {
        let mut lines = Lines::new(text.as_bytes(), longest);
        let mut all = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            let (whole, bytes) = match line {
                InputLine::Whole(bytes) => (true, bytes),
                InputLine::TooLong(bytes) => (false, bytes),
            };
            all.push((whole, String::from_utf8(bytes.to_vec()).unwrap()));
        }
        all
    }

    #[tokio::test]
    async fn each_line_is_read_and_what_has_no_end_is_none() {
        let read = all("a\n\n  \r\nbc\r\nd", 10).await;
        assert_eq!(read, [(true, "a\n".into()), (true, "bc\r\n".into())]);
    }

    #[tokio::test]
    async fn what_is_too_long_is_told_once_and_the_next_line_is_read() {
        let long = "x".repeat(300 << 10);
        let read = all(&format!("{long}\nok\n{long}{long}\nok\n"), 200 << 10).await;
        let whole: Vec<bool> = read.iter().map(|(whole, _)| *whole).collect();
        assert_eq!(whole, [false, true, false, true]);
        assert_eq!(read[3].1, "ok\n");
        // The stored part of a long line is bounded, too.
        assert!(read[2].1.len() < 300 << 10, "{}", read[2].1.len());
    }

    type Incoming = RxJsonRpcMessage<RoleServer>;

    fn by_library(line: &Value) -> Option<Incoming> {
        serde_json::from_value(line.clone()).ok()
    }

    fn here(line: &Value) -> Option<Incoming> {
        read_call(line.to_string().as_bytes())
    }

    #[test]
    fn a_call_is_read_as_the_library_reads_it() {
        for line in [
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a"}}),
            json!({"jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": {
                "name": "a_b", "arguments": {"n": 1.5, "big": 9_007_199_254_740_991_u64, "s": "\u{1f600}", "l": [null, {}]},
                "_meta": {"progressToken": 7, "other": {"a": 1}}}}),
            json!({"jsonrpc": "2.0", "id": 2.0, "method": "tools/call", "params": {
                "name": "a", "_meta": null, "arguments": null}}),
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
            ("/params", json!({"name": "a", "requestState": "s"})),
            ("/params", json!({"name": "a", "inputResponses": {}})),
            ("/params", json!({"name": "a", "arguments": []})),
            (
                "/params",
                json!({"name": "a", "arguments": {"n": u64::MAX}}),
            ),
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
        let twice = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "a", "arguments": {"n": [{"x": 1}]}, "_meta": {"m": {"x": 1}}}});
        for (once, twice_in) in [(r#"{"x":1}]"#, "arguments"), (r#"{"x":1}}"#, "metadata")] {
            let text = twice.to_string();
            assert!(text.contains(once) && read_call(text.as_bytes()).is_some());
            let text = text.replace(once, &once.replace("1}", "1,\"x\":2}"));
            assert!(read_call(text.as_bytes()).is_none(), "{twice_in}: {text}");
        }
        let reserved = json!({"$serde_json::private::RawValue": "7"});
        let line = json!({"jsonrpc": "2.0", "id": reserved, "method": "tools/call", "params": {"name": "a"}});
        assert!(here(&line).is_none());
        assert!(read_call(b"{\"jsonrpc\":\"2.0\"").is_none());
    }
}
