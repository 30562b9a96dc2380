//! Payloads: which are kept, and which never are.

use serde_json::json;
use toolward_host::{Native, NativeId, Request, TraceParent};
use toolward_ledger::payload::Keep;
use toolward_ledger::record::Event;

use super::{World, call};

const SENSITIVE: &str = "inputs:\n  type: object\n  properties:\n    \
    token: { type: string, x-sensitive: true }\n    pin: { type: string, writeOnly: true }\n";

#[tokio::test]
async fn the_input_of_a_call_that_changes_something_is_kept() {
    let world = World::new(Keep::Asked);
    let host = world.host();
    let reply = call(&host, "hostile.changes", json!({"value": 7, "do": "echo"})).await;
    assert!(reply.result.is_ok());
    let Event::Started(row) = &world.events()[0] else {
        panic!("no start");
    };
    let kept = row.call.input.as_ref().unwrap().commitment.unwrap();
    let kept = world.reader().payload(&kept).unwrap().unwrap();
    assert_eq!(kept.kind, "input");
    assert_eq!(kept.bytes, br#"{"value":7,"do":"echo"}"#);
}

#[tokio::test]
async fn sensitive_values_get_into_no_file_of_the_ledger() {
    let world = World::with(Keep::All, SENSITIVE);
    let host = world.host();
    let marked = "hunter2-of-the-test";
    for tool in ["hostile.run", "hostile.changes"] {
        for input in [
            // The value is also repeated in an output, an error and a violation.
            json!({"do": "echo", "token": marked, "pin": marked, "value": marked}),
            json!({"do": "error", "name": "broken", "value": {"message": marked, "cause": marked}, "token": marked}),
            json!({"do": "std-fs", "op": "read", "path": format!("/{marked}"), "pin": marked}),
            // The input does not match the schema, and the schema's error may quote the value.
            json!({"do": "echo", "token": [marked]}),
        ] {
            drop(call(&host, tool, input).await);
        }
    }
    let bytes = world.bytes();
    let found = |text: &str| {
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    };
    assert!(!found("hunter2"));
    assert!(found("[hidden]") && found("echo"));
}

#[tokio::test]
async fn what_a_protocol_calls_a_call_is_recorded_without_what_is_sensitive() {
    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for keep in [Keep::None, Keep::All] {
        let world = World::with(keep, SENSITIVE);
        let host = world.host();
        let input = json!({"do": "echo", "token": "hunter2-of-the-test"});
        for (id, tool_call) in [("7", "call_1"), ("8-hunter2-of-the-test", "call_2")] {
            let native = Native {
                call_id: NativeId::parse(id).ok(),
                tool_call_id: NativeId::parse(tool_call).ok(),
                traceparent: TraceParent::parse(TRACE).ok(),
            };
            let request = Request::with_value("hostile.run", input.clone()).native(native);
            host.call(request).await.result.unwrap();
        }
        let rows: Vec<Native> = world
            .events()
            .iter()
            .map(|event| event.call().unwrap().native.clone())
            .collect();
        let ids = rows.iter().map(|native| {
            let ids = [&native.call_id, &native.tool_call_id];
            ids.map(|id| id.as_ref().map(NativeId::as_str))
        });
        let expected = [[Some("7"), Some("call_1")], [None, Some("call_2")]];
        assert_eq!(ids.collect::<Vec<_>>(), expected);
        let traces = rows
            .iter()
            .map(|native| native.traceparent.as_ref().unwrap().as_str());
        assert_eq!(traces.collect::<Vec<_>>(), [TRACE; 2]);
    }
}
