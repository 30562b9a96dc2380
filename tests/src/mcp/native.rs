//! The ids that a client gives its call, in events and in the ledger: over standard input and
//! output and over HTTP.

use serde_json::{Value, json};

use super::raw::Raw;
use super::served::Served;
use crate::support::Machine;

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const OTHER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

fn machine() -> Machine {
    let machine = Machine::new();
    crate::hostile::add(&machine, "hostile");
    machine
}

/// A call with this `_meta`.
fn call(id: &Value, name: &str, meta: &Value) -> Value {
    let params = json!({ "name": name, "arguments": { "do": "echo" }, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// Returns the ids in the first event of each call, which must equal the ids in its row.
#[track_caller]
fn recorded(machine: &Machine) -> Vec<Value> {
    let events = machine.text("events.jsonl");
    let events = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let planned = events.filter(|event| event["event_type"] == "tool.invocation.planned");
    let calls = planned.map(|event| {
        let id = event["invocation_id"].as_str().unwrap().to_owned();
        let shown = machine.toolward(&format!("ledger show {id} --json"));
        let shown = shown.ends(0).json();
        let native = shown["rows"][0]["record"]["body"]["call"]["native"].clone();
        assert_eq!(
            event["native_call_id"], native["call_id"],
            "{event} {native}"
        );
        assert_eq!(
            event["tool_call_id"], native["tool_call_id"],
            "{event} {native}"
        );
        let trace = native["traceparent"].as_str();
        let trace =
            trace.map(|text| json!([{ "trace_id": text.get(3..35), "span_id": text.get(36..52) }]));
        assert_eq!(event.get("trace_refs"), trace.as_ref(), "{event} {native}");
        native
    });
    calls.collect()
}

#[test]
fn what_a_client_on_streams_calls_its_call_is_in_events_and_rows() {
    let machine = machine();
    let words = "serve --dev hostile --events events.jsonl";
    let mut raw = Raw::open(machine.toolward(words).into_command(), json!({}));
    let long = "x".repeat(129);
    for (id, name, meta) in [
        (
            json!(7),
            "hostile_run",
            json!({ "tool_call_id": "call_1", "traceparent": TRACE }),
        ),
        (json!("req-8"), "hostile_run", json!({})),
        (
            json!("two words"),
            "hostile_run",
            json!({ "tool_call_id": long, "traceparent": "00-1" }),
        ),
        (
            json!(-9),
            "hostile_run",
            json!({ "tool_call_id": 5, "traceparent": [TRACE] }),
        ),
        // A refused call.
        (json!(10), "no_tool", json!({ "tool_call_id": "call_2" })),
    ] {
        raw.send(&call(&id, name, &meta));
        raw.answer(id);
    }
    raw.said();
    assert_eq!(
        recorded(&machine),
        [
            json!({ "call_id": "7", "tool_call_id": "call_1", "traceparent": TRACE }),
            json!({ "call_id": "req-8" }),
            Value::Null,
            json!({ "call_id": "-9" }),
            json!({ "call_id": "10", "tool_call_id": "call_2" }),
        ]
    );
    let shown = machine.toolward("ledger show 1").ends(0);
    for (field, value) in [
        ("call_id", "7"),
        ("tool_call_id", "call_1"),
        ("traceparent", TRACE),
    ] {
        let named = format!("body.call.native.{field} ");
        let line = shown.stdout.lines().find(|line| line.contains(&named));
        assert!(
            line.is_some_and(|line| line.ends_with(&format!(" {value}"))),
            "{shown}"
        );
    }
}

#[test]
fn a_trace_in_the_header_counts_unless_the_call_has_one() {
    let machine = machine();
    let words = "serve --dev hostile --events events.jsonl --http 127.0.0.1:0 --no-token --drain 0";
    let mut served = Served::by(machine.toolward(words).into_command());
    for (id, headers, trace) in [
        (1, vec![OTHER], None),
        (2, vec![OTHER], Some(TRACE)),
        (3, vec![OTHER, TRACE], None),
        (4, vec!["00-nothing"], None),
    ] {
        let mut meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "native", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
            "tool_call_id": format!("call_{id}"),
        });
        if let Some(trace) = trace {
            meta["traceparent"] = json!(trace);
        }
        let headers = headers
            .iter()
            .map(|trace| format!("traceparent: {trace}\r\n"));
        let headers = "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
                       Mcp-Name: hostile_run\r\n"
            .to_owned()
            + &headers.collect::<String>();
        let stream = served.sends("POST", &headers, &call(&json!(id), "hostile_run", &meta));
        let answer = std::io::read_to_string(stream).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    served.interrupted(&machine);
    assert_eq!(
        recorded(&machine),
        [
            json!({ "call_id": "1", "tool_call_id": "call_1", "traceparent": OTHER }),
            json!({ "call_id": "2", "tool_call_id": "call_2", "traceparent": TRACE }),
            json!({ "call_id": "3", "tool_call_id": "call_3" }),
            json!({ "call_id": "4", "tool_call_id": "call_4" }),
        ]
    );
}
