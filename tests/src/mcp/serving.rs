//! A server whose tools are under work, and one that is asked to end.

use std::time::Duration;

use serde_json::{Value, json};

use super::raw::{PATIENCE, Raw};
use super::served::{machine, stdio};
use crate::support::Run;

const TOOL_MD: &str = "conformance/tools/conformance.sum/TOOL.md";

fn description(raw: &mut Raw, id: &str) -> String {
    raw.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}));
    let answer = raw.answer(id);
    let tools = answer["result"]["tools"].as_array().unwrap();
    let sum = tools.iter().find(|tool| tool["name"] == "test_sum");
    sum.unwrap()["description"].as_str().unwrap().to_owned()
}

#[test]
fn an_edit_in_a_directory_under_work_is_served_and_clients_are_told() {
    let machine = machine("");
    let serve = machine.toolward("serve --dev conformance");
    let mut raw = Raw::open(serve.into_command(), json!({}));
    assert!(description(&mut raw, "before").contains("Adds whole numbers."));

    let text = machine.text(TOOL_MD);
    machine.write(
        TOOL_MD,
        text.replace("Adds whole numbers.", "Adds them up."),
    );
    let changed = |message: &Value| message["method"] == "notifications/tools/list_changed";
    while !changed(&raw.next(PATIENCE).expect("word of the change")) {}
    assert!(description(&mut raw, "after").contains("Adds them up."));
}

#[test]
fn a_server_that_is_told_to_end_answers_what_it_was_asked_and_ends_well() {
    let machine = machine("");
    let mut raw = Raw::open(stdio(&machine), json!({}));
    raw.call("sum", "test_sum", &json!({"numbers": [1, 2]}));
    assert_eq!(raw.answer("sum")["result"]["isError"], false);
    raw.call("endless", "test_endless", &json!({}));
    let mut kill = machine.program("kill");
    kill.args(["-TERM", &raw.process().to_string()]);
    Run::new(kill).ends(0);
    let ended = raw
        .ended(Duration::from_secs(30))
        .expect("it ends, though a call does not");
    assert_eq!(ended.code(), Some(0), "{ended}");
}
