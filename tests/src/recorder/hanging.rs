//! A recorder that hangs, because it was stopped or its disk is slow.

use std::time::Instant;

use serde_json::json;

use super::{code, kinds, machine, recorder_of, serve, signal, verifies};
use crate::mcp::raw::{PATIENCE, Raw};

fn count(raw: &mut Raw, id: &str) -> serde_json::Value {
    let input = json!({"action": "add", "counter": "visits"});
    raw.call(id, "kv.counter", &input);
    raw.answer(id)
}

#[test]
fn calls_are_answered_while_the_recorder_hangs_and_recorded_once_it_goes_on() {
    let machine = machine();
    let mut raw = serve(&machine);
    assert_eq!(count(&mut raw, "before")["result"]["isError"], false);
    let recorder = recorder_of(raw.process()).expect("there is a recorder");
    signal(&machine, "STOP", recorder);
    let answer = count(&mut raw, "late");
    assert!(code(&answer).contains("toolward:unrecorded"), "{answer}");
    for id in ["read", "read again"] {
        raw.call(id, "text.stats", &json!({"text": "One two."}));
        assert_eq!(raw.answer(id)["result"]["isError"], false);
    }
    signal(&machine, "CONT", recorder);
    let until = Instant::now() + PATIENCE;
    let counted = (0..)
        .map(|number| count(&mut raw, &format!("after {number}")))
        .find(|answer| answer["result"]["isError"] == false || Instant::now() > until)
        .unwrap();
    // The call that could not be recorded in time did not run.
    assert!(code(&counted).contains(r#""value":2"#), "{counted}");
    let said = raw.said();
    assert!(!said.contains("panicked"), "{said}");
    let kinds = kinds(&machine);
    let of = |kind: &str| kinds.iter().filter(|found| *found == kind).count();
    assert!(of("abandoned") > 0, "{kinds:?}");
    assert_eq!(of("started"), of("abandoned") + 2, "{kinds:?}");
    // Two calls that changed something, and two that read.
    assert_eq!(of("ended"), 4, "{kinds:?}");
    verifies(&machine);
}

#[test]
fn a_recorder_that_hangs_for_long_ends_the_server() {
    let machine = machine();
    let mut raw = serve(&machine);
    assert_eq!(count(&mut raw, "before")["result"]["isError"], false);
    let recorder = recorder_of(raw.process()).expect("there is a recorder");
    signal(&machine, "STOP", recorder);
    let answer = count(&mut raw, "late");
    assert!(code(&answer).contains("toolward:unrecorded"), "{answer}");
    let ended = raw.ended(PATIENCE * 2).expect("it ends without a recorder");
    assert_eq!(ended.code(), Some(1), "{ended}");
    let said = raw.said();
    assert!(said.contains("recorder-failed"), "{said}");
}
