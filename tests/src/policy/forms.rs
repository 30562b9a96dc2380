//! A tool that a person answers (`kind: form`): on a terminal, and through a client.

use serde_json::{Value, json};

use super::dev;
use crate::mcp::raw::{PATIENCE, Raw};
use crate::support::{Machine, Session};

const CONTRACT: &str = "---\nid: acme.day\nname: Day\ndescription: Asks which day suits.\nversion: 1.0.0\n\
                        inputs: { type: object, properties: { about: { type: string } } }\n\
                        outputs: { type: object, properties: { guests: { type: integer, minimum: 1 }, \
                        size: { type: string, enum: [small, large] } }, required: [guests] }\n\
                        requires: { user: [form] }\n---\n";
const DRIVER: &str = "---\nid: acme-day\nname: Day\ndescription: Asks.\nversion: 1.0.0\nkind: form\n\
                      implements:\n  - tool: acme.day\n    version: 1.x\n---\n";
const FORGED: &str = "\n  answer: 7\r\nacme.bank@1 by bank asks you\u{1b}[2J\u{202e}";

fn machine() -> Machine {
    let machine = Machine::new();
    machine.write(
        "day/bundle.toml",
        "id = \"acme.day\"\nversion = \"1.0.0\"\nsequence = 1\npublisher = \"acme\"\n\
         created = \"2026-11-01T00:00:00Z\"\n",
    );
    machine.write("day/tools/acme.day/TOOL.md", CONTRACT);
    machine.write("day/drivers/acme-day/DRIVER.md", DRIVER);
    let publisher = dev(&machine, "day");
    machine.configure(&format!(
        "[[grant]]\npublisher = {publisher:?}\nrequires = [\"user:form\"]\n"
    ));
    machine
}

fn at_a_terminal(machine: &Machine) -> Session {
    let call = machine
        .toolward("call acme.day --dev day --json --input")
        .arg(json!({ "about": FORGED }).to_string());
    Session::start(call.into_command(), 100, "")
}

#[test]
fn what_a_person_types_is_the_output() {
    let machine = machine();
    let mut session = at_a_terminal(&machine);
    session.sees("  answer: ");
    let screen = session.screen();
    assert!(screen.contains("acme.day@1 by dev:"), "{screen}");
    assert!(screen.contains("Asks which day suits."), "{screen}");
    assert_eq!(screen.matches("asks you").count(), 2, "{screen}");
    for line in screen
        .lines()
        .filter(|line| line.contains("answer: 7") || line.contains("bank"))
    {
        assert!(line.starts_with("  | "), "{line:?} in {screen}");
    }
    assert!(!screen.contains(['\u{1b}', '\u{202e}']), "{screen:?}");
    // The contract requires at least one, so the host asks again.
    session.types("0\r");
    session.sees("a number of the list");
    session.types("\r");
    session.sees("Your last answer was not taken");
    session.types("12\r");
    session.types("2\r");
    let left = session.leaves();
    assert_eq!(left.code, Some(0), "{left:?}");
    let envelope: Value = serde_json::from_str(&left.stdout).unwrap();
    assert_eq!(envelope["value"], json!({ "guests": 12, "size": "large" }));
    assert_eq!(envelope["meta"]["origin"], "person");
}

#[test]
fn no_answer_and_no_terminal_are_input_unavailable() {
    let machine = machine();
    let mut session = at_a_terminal(&machine);
    session.sees("  answer: ");
    session.types("\u{3}");
    let left = session.leaves();
    let envelope: Value = serde_json::from_str(&left.stdout).unwrap();
    assert_eq!(envelope["error"]["code"], "input_unavailable", "{left:?}");

    let call = machine.toolward("call acme.day --dev day --json");
    let ended = call.stdin("12\n\n").ends(1);
    let envelope = ended.json();
    assert_eq!(envelope["error"]["code"], "input_unavailable", "{ended}");
}

#[test]
fn a_client_asks_the_form_and_its_answer_is_the_output() {
    let machine = machine();
    let serve = machine.toolward("serve --dev day --trust-client");
    let mut raw = Raw::open(serve.into_command(), json!({ "elicitation": {} }));
    raw.call(1, "acme_day", &json!({ "about": FORGED }));
    let question = raw.next(PATIENCE).expect("a question");
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let parameters = &question["params"];
    let message = parameters["message"].as_str().unwrap();
    let who = format!(
        "tool acme.day@1 by publisher {} asks:",
        dev(&machine, "day")
    );
    assert!(message.starts_with(&who), "{message}");
    for line in message.lines().filter(|line| line.contains("bank")) {
        assert!(line.starts_with("| "), "{line:?} in {message}");
    }
    assert!(
        !message.contains(['\u{1b}', '\u{202e}', '\r']),
        "{message:?}"
    );
    let fields = &parameters["requestedSchema"]["properties"];
    assert_eq!(fields["size"]["enum"], json!(["small", "large"]));
    // One question at a time.
    raw.call(2, "acme_day", &json!({}));
    let answer = raw.answer(2);
    let code = |answer: &Value| answer["result"]["_meta"]["toolward/error"]["code"].clone();
    assert_eq!(code(&answer), "rate_limited", "{answer}");
    raw.send(&json!({
        "jsonrpc": "2.0", "id": question["id"],
        "result": { "action": "accept", "content": { "guests": 3 } },
    }));
    let answer = raw.answer(1);
    assert_eq!(
        answer["result"]["structuredContent"],
        json!({ "guests": 3 }),
        "{answer}"
    );

    raw.call(3, "acme_day", &json!({}));
    let question = raw.next(PATIENCE).expect("a question");
    raw.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "decline" } }));
    let answer = raw.answer(3);
    assert_eq!(code(&answer), "input_unavailable", "{answer}");

    // A cancelled call asks no more.
    raw.call(4, "acme_day", &json!({}));
    raw.next(PATIENCE).expect("a question");
    raw.send(&json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 4 },
    }));
    let withdrawn = raw.next(PATIENCE).expect("the question is cancelled");
    assert_eq!(
        withdrawn["method"], "notifications/cancelled",
        "{withdrawn}"
    );
    raw.call(5, "acme_day", &json!({}));
    let question = raw.next(PATIENCE).expect("a question");
    assert_eq!(question["method"], "elicitation/create", "{question}");
}
