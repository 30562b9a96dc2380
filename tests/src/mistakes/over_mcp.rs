//! Errors for a model, over MCP: every error uses the words of the schema that the model has, and
//! reveals nothing about the operator's machine.

use serde_json::{Value, json};

use crate::mcp::raw::Raw;
use crate::support::Machine;

fn served(examples: &[&str]) -> (Machine, Raw) {
    let machine = Machine::new();
    for example in examples {
        machine.add_example(example);
    }
    let raw = serving(&machine, examples);
    (machine, raw)
}

fn serving(machine: &Machine, examples: &[&str]) -> Raw {
    let mut serve = "serve --trust-key example.pub.pem".to_owned();
    for example in examples {
        serve += &format!(" --bundle {example}.toolbundle");
    }
    Raw::open(machine.toolward(&serve).into_command(), json!({}))
}

/// Returns the text of a failed call that a model reads.
#[track_caller]
fn read(answer: &Value) -> String {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Asserts that the text has no command, flag, path of the machine or line of a policy.
#[track_caller]
fn is_for_a_model(machine: &Machine, text: &str) {
    for told in [
        "`toolward ",
        "--",
        "[[",
        "toolward.toml",
        machine.home().to_str().unwrap(),
    ] {
        assert!(!text.contains(told), "{told:?} in {text}");
    }
}

#[test]
fn all_violations_are_in_the_text_with_what_is_allowed() {
    let (machine, mut raw) = served(&["text-stats"]);
    raw.call(1, "text_stats", &json!({"top": 100_000, "tops": 3}));
    let text = read(&raw.answer(1));
    for part in [
        "input_invalid",
        "`/top`: 100000 is greater than the maximum of 1000",
        "\"text\" is a required property",
        "'tops' was unexpected",
        "did you mean `top`?",
        "`text` (string, required), `top` (integer)",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    is_for_a_model(&machine, &text);
}

#[test]
fn an_unknown_tool_gets_the_near_one() {
    let (_machine, mut raw) = served(&["text-stats", "notes-append"]);
    raw.call(1, "text_stat", &json!({}));
    let answer = raw.answer(1);
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("did you mean \"text_stats\"?"),
        "{message}"
    );
    raw.call(2, "weather", &json!({}));
    let answer = raw.answer(2);
    let message = answer["error"]["message"].as_str().unwrap();
    assert_eq!(message, "there is no tool \"weather\"");
}

#[test]
fn a_blocked_tool_is_counted_and_says_whom_to_ask() {
    let (machine, mut raw) = served(&["text-stats", "notes-append"]);
    let instructions = raw.instructions().to_owned();
    assert!(
        instructions.contains("One more tool is blocked by the operator's policy"),
        "{instructions}"
    );
    is_for_a_model(&machine, &instructions);
    raw.call(1, "notes_append", &json!({"note": "a", "text": "b"}));
    let text = read(&raw.answer(1));
    assert!(
        text.contains("ask the operator of this host to grant it (code `unauthorised`)"),
        "{text}"
    );
    is_for_a_model(&machine, &text);
    let (_machine, raw) = served(&["text-stats"]);
    assert!(!raw.instructions().contains("blocked"));
}

#[test]
fn a_tool_that_lacks_nothing_and_is_denied_does_not_name_the_rule() {
    let machine = Machine::new();
    machine.add_example("text-stats");
    machine.configure("[[deny]]\ntool = \"text.*\"\n");
    let mut raw = serving(&machine, &["text-stats"]);
    is_for_a_model(&machine, raw.instructions());
    raw.call(1, "text_stats", &json!({"text": "a"}));
    let answer = raw.answer(1);
    let text = read(&answer);
    assert!(text.contains("the policy denies `text.stats@1`"), "{text}");
    is_for_a_model(&machine, &answer.to_string());
}

#[test]
fn a_workspace_without_its_directory_is_for_the_operator_to_repair() {
    let machine = Machine::new();
    machine.add_example("notes-append");
    let missing = machine.path("no-directory");
    machine.configure(&super::granting(&machine, missing.to_str().unwrap()));
    let mut raw = serving(&machine, &["notes-append"]);
    raw.call(1, "notes_append", &json!({"note": "a", "text": "b"}));
    let answer = raw.answer(1);
    let text = read(&answer);
    assert!(
        text.contains("ask the operator of this host to repair"),
        "{text}"
    );
    is_for_a_model(&machine, &answer.to_string());
    assert!(!answer.to_string().contains("no-directory"), "{answer}");
}
