//! `serve --log-format`: one line for each call that ends, without any text of a caller or a
//! driver.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::raw::Raw;
use crate::support::Machine;

/// Text that no line contains.
const MARK: &str = "m4rk-of-the-test";

pub(super) fn machine() -> Machine {
    let machine = Machine::with_example("kv-counter");
    crate::hostile::add(&machine, "hostile");
    machine.toolward("publisher keys new --out key.pem").ends(0);
    machine
        .toolward("pack hostile --output hostile.toolbundle --key key.pem")
        .ends(0);
    machine
}

/// Returns the log of a server for four calls: one succeeds, one gets an error of its driver, the
/// contract refuses one, and the policy denies one.
fn logged(format: &str) -> String {
    let machine = machine();
    let words = format!(
        "serve --bundle hostile.toolbundle --trust-key key.pub.pem \
         --bundle kv-counter.toolbundle --trust-key example.pub.pem {format}"
    );
    let mut raw = Raw::open(machine.toolward(&words).into_command(), json!({}));
    let error = json!({ "message": MARK, "cause": MARK });
    let script = [
        ("hostile_run", json!({ "do": "echo", "value": MARK })),
        (
            "hostile_run",
            json!({ "do": "error", "name": "hostile:m4rk", "value": error }),
        ),
        ("hostile_run", json!({ "do": [MARK] })),
        ("kv_counter", json!({ "action": "get", "counter": MARK })),
    ];
    for (number, (tool, arguments)) in script.iter().enumerate() {
        raw.call(number, tool, arguments);
        let answer = raw.answer(number);
        assert!(answer["result"].is_object(), "{answer}");
    }
    raw.said()
}

#[test]
fn each_call_that_ends_is_a_line_of_json_without_a_word_of_caller_and_driver() {
    let said = logged("--log-format json");
    assert!(!said.contains("m4rk"), "{said}");
    let lines = said.lines().filter(|line| line.starts_with('{'));
    let lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let calls = lines
        .iter()
        .filter(|line| line["target"] == "toolward_host::calls");
    let calls: Vec<&Value> = calls.collect();
    let ended: Vec<_> = calls
        .iter()
        .map(|call| [&call["tool"], &call["code"], &call["stage"]].map(|field| field.as_str()))
        .collect();
    let [ok, driver, unfit, denied] = ended[..] else {
        panic!("{said}");
    };
    let run = ok[0].filter(|tool| tool.starts_with("hostile.run@"));
    assert_eq!(ok, [run, Some("ok"), Some("run")]);
    assert!(run.is_some(), "{said}");
    assert_eq!(driver, [run, Some("driver"), Some("run")]);
    assert_eq!(unfit, [run, Some("input_invalid"), Some("validate")]);
    assert_eq!(
        (denied[1], denied[2]),
        (Some("unauthorised"), Some("authorise"))
    );

    let names = calls[0].as_object().unwrap().keys().map(String::as_str);
    let expected = [
        "at",
        "attempts",
        "code",
        "driver",
        "fuel",
        "invocation",
        "level",
        "memory",
        "message",
        "mutating",
        "principal",
        "stage",
        "target",
        "tool",
        "us",
        "violations",
    ];
    assert_eq!(names.collect::<BTreeSet<_>>(), BTreeSet::from(expected));
    assert!(calls[0]["fuel"].as_u64().unwrap() > 0 && calls[0]["us"].as_u64().unwrap() > 0);
    assert_eq!(calls[0]["attempts"], 1);
    assert_eq!(calls[2]["attempts"], 0);
    assert_eq!(
        (&calls[0]["mutating"], &calls[3]["mutating"]),
        (&json!(false), &json!(true))
    );
    assert!(calls[1]["class"].is_string());
    assert_ne!(calls[0]["principal"], "local");
    assert_eq!(calls[0]["principal"], calls[3]["principal"]);
}

#[test]
fn lines_of_calls_are_text_where_that_is_asked_for_and_are_left_out_by_default() {
    let said = logged("--log-format text");
    let lines = said
        .lines()
        .filter(|line| line.contains("toolward_host::calls"));
    assert_eq!(lines.count(), 4, "{said}");
    assert!(
        said.contains("code=\"unauthorised\"") && !said.contains("m4rk"),
        "{said}"
    );
    let said = logged("");
    assert!(!said.contains("a call has ended"), "{said}");
}
