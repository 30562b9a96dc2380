//! `serve --events`: the events of calls, as JSON lines in a file.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::{Value, json};

use super::raw::{PATIENCE, Raw};
use crate::support::Machine;

/// Text that no event contains.
const MARK: &str = "m4rk-of-the-test";

fn machine() -> Machine {
    let machine = Machine::new();
    crate::hostile::add(&machine, "hostile");
    machine
}

fn serve(machine: &Machine) -> Raw {
    let words = "serve --dev hostile --trust-client --events events.jsonl";
    Raw::open(
        machine.toolward(words).into_command(),
        json!({ "elicitation": {} }),
    )
}

/// Returns the events, and the ids of the calls that they are about, in order.
fn read(machine: &Machine) -> (Vec<Value>, Vec<String>) {
    let text = machine.text("events.jsonl");
    assert!(text.ends_with('\n') && !text.contains(MARK), "{text}");
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<Value> = lines.collect();
    let mut calls: Vec<String> = Vec::new();
    for line in &lines {
        let call = line["invocation_id"].as_str().unwrap();
        if !calls.iter().any(|known| known == call) {
            calls.push(call.to_owned());
        }
    }
    (lines, calls)
}

fn classes(lines: &[Value], call: &str) -> Vec<String> {
    let own = lines.iter().filter(|line| line["invocation_id"] == *call);
    let classes = own.map(|line| line["event_type"].as_str().unwrap());
    classes
        .map(|class| {
            class
                .strip_prefix("tool.")
                .unwrap()
                .replace("invocation.", "")
        })
        .collect()
}

#[test]
fn a_script_of_calls_is_told_step_by_step_and_no_payload_of_it() {
    let machine = machine();
    let contract = "hostile/tools/hostile.run/TOOL.md";
    let mut raw = serve(&machine);
    for (id, input) in [
        (1, json!({"do": "echo", "value": MARK})),
        (2, json!({"do": "progress", "n": 1, "value": MARK})),
        (
            3,
            json!({"do": "error", "name": "upstream_error", "value": {"message": MARK, "cause": MARK}}),
        ),
    ] {
        raw.call(id, "hostile_run", &input);
        raw.answer(id);
    }
    raw.call(4, MARK, &json!({}));
    raw.answer(4);
    raw.said();
    let mode = machine.path("events.jsonl").metadata().unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    let (lines, calls) = read(&machine);
    let [echo, progress, error, unknown] = calls.try_into().unwrap();
    let ready = [
        "planned",
        "selected",
        "arguments_ready",
        "permission.decided",
        "queued",
        "started",
    ];
    let ran = |rest: &[&'static str]| [&ready[..], rest].concat();
    assert_eq!(
        classes(&lines, &echo),
        ran(&["result.created", "succeeded"])
    );
    let progressed = ran(&["progress", "result.created", "succeeded"]);
    assert_eq!(classes(&lines, &progress), progressed);
    assert_eq!(classes(&lines, &error), ran(&["result.created", "failed"]));
    assert_eq!(
        classes(&lines, &unknown),
        ["planned", "result.created", "failed"]
    );
    let last = lines.last().unwrap();
    assert_eq!(last["error_code"], "not_found", "{last}");
    let ids: Vec<&str> = lines
        .iter()
        .map(|line| line["event_id"].as_str().unwrap())
        .collect();
    assert!(ids.is_sorted());
    assert!(
        lines
            .iter()
            .all(|line| line["actor_ref"] == lines[0]["actor_ref"])
    );

    // This time a person is asked, and the next server appends to the file.
    let asks = machine
        .text(contract)
        .replace("\ninputs:", "\napproval: always\ninputs:");
    machine.write(contract, asks);
    let mut raw = serve(&machine);
    raw.call(1, "hostile_run", &json!({"do": "echo", "value": MARK}));
    let question = raw.next(PATIENCE).expect("a question");
    assert_eq!(question["method"], "elicitation/create", "{question}");
    raw.send(&json!({
        "jsonrpc": "2.0", "id": question["id"],
        "result": {"action": "accept", "content": {"decision": "allow this call", "note": MARK}},
    }));
    raw.answer(1);
    raw.said();
    let (lines, calls) = read(&machine);
    let asked = [
        "planned",
        "selected",
        "arguments_ready",
        "permission.requested",
        "permission.decided",
    ];
    let asked = [
        &asked[..],
        &["queued", "started", "result.created", "succeeded"],
    ]
    .concat();
    assert_eq!(calls.len(), 5);
    assert_eq!(classes(&lines, &calls[4]), asked);
    let decided = lines.iter().rfind(|line| line["decision"].is_string());
    assert_eq!(decided.unwrap()["decision"], "approved");
}

#[test]
fn a_file_that_can_not_be_written_ends_the_server_before_it_serves() {
    let machine = machine();
    machine.write("target", "kept");
    symlink(machine.path("target"), machine.path("link")).unwrap();
    machine.write("open", "");
    let others = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(machine.path("open"), others).unwrap();
    for path in ["missing/events.jsonl", "link", "open", "hostile"] {
        let words = format!("serve --dev hostile --events {path}");
        let ended = machine.toolward(&words).ends(1);
        ended.says("write-failed");
        assert!(
            ended.stderr.contains(path) && ended.stdout.is_empty(),
            "{ended}"
        );
    }
    assert_eq!(machine.text("target"), "kept");
}
