//! Calls with an id from the client, in `_meta["toolward/id"]`.

use serde_json::{Value, json};

use super::raw::Raw;
use super::served::Served;
use crate::support::Machine;

const SERVE: &str = "serve --dev hostile";

fn machine() -> Machine {
    let machine = Machine::new();
    crate::hostile::add(&machine, "hostile");
    machine
}

fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// A call with this id, whose result differs from run to run.
fn call(number: u32, id: &Value, mut meta: Value) -> Value {
    meta["toolward/id"] = id.clone();
    let arguments = json!({"do": "clock"});
    json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {
        "name": "hostile_run", "arguments": arguments, "_meta": meta,
    }})
}

/// Asserts that the second call got the reply of the first.
#[track_caller]
fn is_repeated(first: &Value, again: &Value) {
    let [meta, again_meta] = [first, again].map(|one| &one["result"]["_meta"]["toolward/call"]);
    let [value, again_value] = [first, again].map(|one| &one["result"]["structuredContent"]);
    assert!(value["value"]["monotonic_ns"].is_number(), "{first}");
    assert_eq!(value, again_value);
    assert!(
        meta["invocation"].is_string() && meta.get("repeats").is_none(),
        "{first}"
    );
    assert_eq!(again_meta["repeats"], meta["invocation"]);
}

#[track_caller]
fn is_refused(answer: &Value, message: &str) {
    let error = &answer["result"]["_meta"]["toolward/error"];
    assert_eq!(error["code"], "input_invalid", "{answer}");
    assert!(
        error["message"].as_str().unwrap().contains(message),
        "{answer}"
    );
}

#[test]
fn a_client_of_the_session_era_repeats_a_call_and_gets_the_first_reply() {
    let machine = machine();
    let mut raw = Raw::open(machine.toolward(SERVE).into_command(), json!({}));
    let id = json!(new_id());
    let mut answer = |number, id: &Value| {
        raw.send(&call(number, id, json!({})));
        raw.answer(number)
    };
    let first = answer(1, &id);
    is_repeated(&first, &answer(2, &id));
    let other = answer(3, &json!(new_id()));
    assert_ne!(
        first["result"]["structuredContent"],
        other["result"]["structuredContent"]
    );
    is_refused(&answer(4, &json!(7)), "another type");
    is_refused(&answer(5, &json!("7")), "a UUIDv7");
    let old = json!("0190f5fe-7c00-7a00-8000-000000000000");
    is_refused(&answer(6, &old), "more than a day old");
}

#[test]
fn so_does_one_of_the_era_without_sessions_on_another_connection() {
    let machine = machine();
    let mut command = machine
        .toolward(&format!("{SERVE} --http 127.0.0.1:0 --no-token"))
        .into_command();
    command.stdin(std::process::Stdio::null());
    let served = Served::by(command);
    let era = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let id = json!(new_id());
    let first = served.post(None, &call(1, &id, era.clone()));
    is_repeated(&first, &served.post(None, &call(2, &id, era.clone())));
    is_refused(&served.post(None, &call(3, &json!("7"), era)), "a UUIDv7");
}
