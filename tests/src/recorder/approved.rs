//! Questions to people and their answers are recorded, both at the terminal of `call` and through a
//! client.

use std::time::Instant;

use serde_json::{Value, json};

use super::{directory, gone, recorder_of, rows, signal, verifies};
use crate::mcp::raw::{PATIENCE, Raw};
use crate::policy::{notes, notes_policy};
use crate::support::{Machine, Session};

/// Text that would look like another row, hide the rest of one, or reverse it.
const FORGED: &str =
    "x\n       9  2026-01-01T00:00:00Z  approval  \u{1b}[2K\u{202e}\"kind\":\"approval\"";

/// A machine on which a person is asked about `notes.append`.
fn asking() -> Machine {
    let machine = notes();
    machine.configure(&notes_policy(&machine, ""));
    machine
}

fn client(machine: &Machine) -> Raw {
    let serve = machine.toolward("serve --dev notes-append --trust-client");
    Raw::open(serve.into_command(), json!({ "elicitation": {} }))
}

fn append(raw: &mut Raw, id: u32) {
    let input = json!({ "note": "journal", "text": FORGED });
    raw.call(id, "notes_append", &input);
}

/// Answers the next question.
fn decide(raw: &mut Raw, decision: &str) {
    let question = raw.next(PATIENCE).expect("a question");
    assert_eq!(question["method"], "elicitation/create", "{question}");
    raw.send(&json!({
        "jsonrpc": "2.0", "id": question["id"],
        "result": { "action": "accept", "content": { "decision": decision } },
    }));
}

/// Returns the rows in words: the kind, and for an approval its event, answer and scope.
fn told(machine: &Machine) -> Vec<String> {
    let rows = rows(machine);
    let told = rows.iter().map(|row| {
        let (kind, body) = (&row["record"]["kind"], &row["record"]["body"]);
        let mut words = vec![kind.as_str().unwrap()];
        if kind == "approval" {
            let fields = [&body["event"], &body["answer"], &body["scope"]];
            words.extend(fields.into_iter().filter_map(Value::as_str));
            assert_eq!(body["tool"], "notes.append@1.0.0", "{row}");
            assert!(body["person"].is_string(), "{row}");
            assert_eq!(
                body["until"].is_u64(),
                body["event"] == "remembered",
                "{row}"
            );
        }
        words.join(" ")
    });
    told.collect()
}

fn is_error(answer: &Value) -> bool {
    answer["result"]["isError"].as_bool().unwrap()
}

#[test]
fn a_client_that_asks_leaves_a_row_for_the_question_and_one_for_the_answer() {
    let machine = asking();
    let mut raw = client(&machine);
    append(&mut raw, 1);
    decide(&mut raw, "allow this call");
    assert!(!is_error(&raw.answer(1)));
    append(&mut raw, 2);
    decide(&mut raw, "allow it for this session");
    assert!(!is_error(&raw.answer(2)));
    // This time no person is asked.
    append(&mut raw, 3);
    assert!(!is_error(&raw.answer(3)));
    raw.said();
    assert_eq!(
        told(&machine),
        [
            "opened",
            "approval asked",
            "approval answered approved call",
            "started",
            "ended",
            "approval asked",
            "approval answered approved session",
            "approval remembered session",
            "started",
            "ended",
            "started",
            "ended",
            "closed",
        ]
    );
    verifies(&machine);

    let list = |flags: &str| {
        let listed = machine.toolward(&format!("ledger list {flags}")).ends(0);
        assert!(!listed.stdout.contains(['\u{1b}', '\u{202e}']), "{listed}");
        listed.stdout
    };
    let listed = list("--tool notes.append");
    let line = |words: &str| listed.lines().find(|line| line.contains(words));
    let kept = line("remembered  for the session  until ").expect(&listed);
    assert!(
        kept.contains("approval      notes.append@1.0.0  local"),
        "{kept}"
    );
    assert!(
        line("answered  approved  for the call").is_some(),
        "{listed}"
    );
    // One line for each row, plus two headers and an empty line.
    assert_eq!(list("").lines().count(), 16);
    let invocation = rows(&machine)[1]["record"]["body"]["invocation"].clone();
    let shown = format!("ledger show {} --json", invocation.as_str().unwrap());
    let shown = machine.toolward(&shown).ends(0).json();
    assert_eq!(shown["rows"].as_array().unwrap().len(), 4);
    assert_eq!(shown["rows"][0]["principal"], "local");
}

#[test]
fn a_denial_and_a_question_that_is_never_answered_are_told_apart() {
    let machine = asking();
    let mut raw = client(&machine);
    append(&mut raw, 1);
    decide(&mut raw, "deny");
    assert!(is_error(&raw.answer(1)));
    // The person is not asked again so soon, and no row states that they were.
    append(&mut raw, 2);
    assert!(is_error(&raw.answer(2)));
    raw.said();
    let first = [
        "opened",
        "approval asked",
        "approval answered denied",
        "refused",
        "refused",
        "closed",
    ];
    assert_eq!(told(&machine), first);

    let machine = asking();
    let mut raw = client(&machine);
    append(&mut raw, 1);
    let question = raw.next(PATIENCE).expect("a question");
    assert_eq!(question["method"], "elicitation/create", "{question}");
    // The question is recorded while it is open, and the row stays.
    let asked = ["opened", "approval asked"];
    let until = Instant::now() + PATIENCE;
    // The recorder may still be creating the ledger. The key exists before the first row.
    while !directory(&machine).join("ledger.vkey").exists() || told(&machine) != asked {
        assert!(Instant::now() < until, "the question is not on record");
    }
    let recorder = recorder_of(raw.process()).expect("there is a recorder");
    signal(&machine, "KILL", raw.process());
    raw.ended(PATIENCE).expect("it was killed");
    assert!(gone(recorder));
    assert_eq!(told(&machine)[..2], asked);
    verifies(&machine);
}

#[test]
fn a_person_at_the_terminal_is_asked_once_and_what_they_typed_decides() {
    for (keys, rest) in [
        (
            "y\r",
            &["approval answered approved call", "started", "ended"][..],
        ),
        ("\r", &["approval answered denied", "refused"]),
    ] {
        let machine = asking();
        let call = machine.toolward("call notes.append --dev notes-append --input");
        let call = call.arg(json!({ "note": "journal", "text": FORGED }).to_string());
        let mut session = Session::start(call.into_command(), 100, "");
        session.sees("? [y/N] ");
        session.types(keys);
        session.leaves();
        let expected = [&["opened", "approval asked"], rest, &["closed"]].concat();
        assert_eq!(told(&machine), expected);
        verifies(&machine);
    }
}

#[test]
fn without_a_terminal_no_row_says_that_a_person_was_asked() {
    let machine = asking();
    let call = machine.toolward("call notes.append --dev notes-append --input");
    let call = call.arg(json!({ "note": "journal", "text": "a" }).to_string());
    call.ends(4);
    assert_eq!(told(&machine), ["opened", "refused", "closed"]);
}
