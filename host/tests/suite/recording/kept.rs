//! Payloads: what is kept, and what never is.

use serde_json::json;
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
            // Also as an output, an error and a violation that repeat it.
            json!({"do": "echo", "token": marked, "pin": marked, "value": marked}),
            json!({"do": "error", "name": "broken", "value": {"message": marked, "cause": marked}, "token": marked}),
            json!({"do": "std-fs", "op": "read", "path": format!("/{marked}"), "pin": marked}),
            // It does not match the schema, whose words for that may quote it.
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
