//! A denial, and a client that restarts its server.

use serde_json::{Value, json};

use super::raw::{PATIENCE, Raw};
use crate::support::Machine;

const POLICY: &str = "[[grant]]\npublisher = \"key:KEY\"\ntool = \"kv.counter\"\n\
                      mutates = [\"database:counters\"]\n";

const SERVE: &str = "serve --bundle kv-counter.toolbundle --trust-key example.pub.pem \
                     --policy-file policy.toml --trust-client --state-dir state";

fn machine() -> Machine {
    let machine = Machine::with_example("kv-counter");
    let shown = machine.toolward("publisher keys show example.pub.pem --json");
    let shown = shown.ends(0).json();
    let key = shown["key_id"].as_str().unwrap();
    machine.write("policy.toml", POLICY.replace("KEY", key));
    machine
}

/// A server, and a person behind its client.
fn serve(machine: &Machine) -> Raw {
    Raw::open(
        machine.toolward(SERVE).into_command(),
        json!({"elicitation": {}}),
    )
}

fn add(raw: &mut Raw, id: u32) {
    raw.call(
        id,
        "kv_counter",
        &json!({"action": "add", "counter": "visits"}),
    );
}

/// Answers the next question.
fn says(raw: &mut Raw, action: &str, decision: &str) -> Value {
    let question = raw.next(PATIENCE).expect("a question");
    assert_eq!(question["method"], "elicitation/create", "{question}");
    raw.send(&json!({
        "jsonrpc": "2.0", "id": question["id"],
        "result": {"action": action, "content": {"decision": decision}},
    }));
    question
}

fn code(answer: &Value) -> &Value {
    &answer["result"]["_meta"]["toolward/error"]["code"]
}

#[test]
fn a_no_holds_when_the_client_starts_its_server_anew() {
    let machine = machine();
    let mut raw = serve(&machine);
    add(&mut raw, 1);
    says(&mut raw, "accept", "deny");
    let answer = raw.answer(1);
    assert_eq!(code(&answer), "toolward:approval_denied", "{answer}");
    drop(raw);

    // No person is asked, so the answer comes at once.
    let mut raw = serve(&machine);
    add(&mut raw, 1);
    let answer = raw.answer(1);
    assert_eq!(code(&answer), "toolward:approval_paused", "{answer}");
    drop(raw);

    // A damaged file allows nothing, so the person is asked again.
    machine.write("state/denials/denials", "spoiled");
    let mut raw = serve(&machine);
    add(&mut raw, 1);
    says(&mut raw, "accept", "allow this call");
    let answer = raw.answer(1);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert!(raw.said().contains("what was denied before is forgotten"));
}
