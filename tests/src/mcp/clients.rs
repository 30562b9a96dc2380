//! The official clients, over both transports and in both eras.

use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::official::{node, packages, python, script};
use super::served::{Served, machine, stdio};
use crate::support::{Machine, Run};

/// One call at a time: a cancelled call that still ran would keep all others from starting.
const ONE_AT_A_TIME: &str = "[limits]\nconcurrency = 1\n\n";

/// The eras, each with the version that clients negotiate.
const ERAS: [(&str, &str); 2] = [("legacy", "2025-11-25"), ("2026-07-28", "2026-07-28")];

/// A server that the client starts itself, as `{"command", "args"}`.
pub(super) fn started(machine: &Machine) -> Value {
    let command = stdio(machine);
    let text = |word: &std::ffi::OsStr| word.to_str().unwrap().to_owned();
    let args: Vec<String> = command.get_args().map(text).collect();
    json!({ "command": text(command.get_program()), "args": args })
}

/// Returns what the session's script saw.
fn session(machine: &Machine, command: &[PathBuf], target: &Value, era: &str) -> Value {
    let (program, arguments) = command.split_first().unwrap();
    let mut command: Command = machine.program(program);
    command.args(arguments).arg(target.to_string()).arg(era);
    let ended = Run::new(command).ends(0);
    // SDKs log it there if the end of a session looks like a failure.
    assert!(!ended.stderr.contains("termination failed"), "{ended}");
    ended.json()
}

/// Asserts everything that a session must see with any client.
#[track_caller]
fn saw_it_all(seen: &Value, version: &str) {
    assert_eq!(seen["protocol"], version, "{seen}");
    assert_eq!(seen["server"], "toolward", "{seen}");
    let tools = seen["tools"].as_object().unwrap();
    assert_eq!(tools.len(), 27, "{seen}");
    let description = tools["test_simple_text"].as_str().unwrap();
    assert!(description.contains("Returns one text."), "{description}");

    let text = "This is a simple text response for testing.";
    assert_eq!(seen["simple"]["text"], json!([text]), "{seen}");
    assert_eq!(
        seen["simple"]["structured"],
        json!({ "text": text }),
        "{seen}"
    );
    let sum = json!({ "sum": 42, "count": 3 });
    assert_eq!(seen["sum"]["structured"], sum, "{seen}");
    let said: Value = serde_json::from_str(seen["sum"]["text"][0].as_str().unwrap()).unwrap();
    assert_eq!(said, sum, "{seen}");
    assert_eq!(seen["sum"]["error"], false, "{seen}");

    let failed = &seen["failed"];
    assert_eq!(failed["error"], true, "{failed}");
    let said = failed["text"][0].as_str().unwrap();
    assert!(said.contains("intentionally returns an error"), "{failed}");
    assert!(
        failed["meta"]
            .to_string()
            .contains("\"conformance:intended\""),
        "{failed}"
    );

    let steps = json!([[0.0, 100.0], [50.0, 100.0], [100.0, 100.0]]);
    let floats =
        |steps: &Value| -> Vec<Vec<f64>> { serde_json::from_value(steps.clone()).unwrap() };
    assert_eq!(floats(&seen["progress"]), floats(&steps), "{seen}");

    assert_eq!(seen["ended"], json!([]), "{seen}");
    assert_eq!(
        seen["after"]["structured"],
        json!({ "sum": 4, "count": 1 }),
        "{seen}"
    );

    assert_eq!(seen["accepted"]["text"], json!(["Hello, Ada!"]), "{seen}");
    assert_eq!(
        seen["declined"]["text"],
        json!(["Hello, whoever you are!"]),
        "{seen}"
    );
    let forms = seen["forms"].as_array().unwrap();
    assert_eq!(forms.len(), 2, "{seen}");
    for form in forms {
        // The asking tool is named before its question.
        let message = form["message"].as_str().unwrap();
        let (before, _) = message.split_once("What is your name?").unwrap();
        assert!(
            before.contains("conformance.input-elicitation"),
            "{message}"
        );
        assert_eq!(
            form["schema"]["properties"]["name"]["type"], "string",
            "{form}"
        );
    }
}

/// Runs a session over each transport in each era.
fn sessions(command: &[PathBuf]) {
    let machine = machine(ONE_AT_A_TIME);
    let served = Served::start(&machine);
    for target in [json!({ "url": served.url }), started(&machine)] {
        for (era, version) in ERAS {
            saw_it_all(&session(&machine, command, &target, era), version);
        }
    }
}

#[test]
fn the_python_client_holds_a_session_over_each_transport_in_each_era() {
    sessions(&[python(), script("session.py")]);
}

#[test]
fn the_typescript_client_holds_a_session_over_each_transport_in_each_era() {
    sessions(&[node(), script("session.mjs"), packages()]);
}

/// The Inspector's command line, which does one thing in each run.
fn inspector(machine: &Machine, target: &Value, era: &str, words: &[&str]) -> Run {
    machine.write(
        "inspector.json",
        json!({ "mcpServers": { "tested": target } }).to_string(),
    );
    let mut command = machine.program(node());
    command
        .arg(packages().join(".bin/mcp-inspector"))
        .args(["--cli", "--config", "inspector.json", "--server", "tested"])
        .args(["--protocol-era", era, "--format", "json", "--quiet"])
        .args(words);
    Run::new(command)
}

#[test]
fn the_inspector_lists_and_calls_over_each_transport_in_each_era() {
    let machine = machine("");
    let served = Served::start(&machine);
    let http = json!({ "type": "streamable-http", "url": served.url });
    for target in [http, started(&machine)] {
        for era in ["legacy", "modern"] {
            let run = |words: &[&str]| inspector(&machine, &target, era, words);
            let list = run(&["--method", "tools/list"]).ends(0).json();
            assert_eq!(
                list["result"]["tools"].as_array().unwrap().len(),
                27,
                "{list}"
            );

            let call = ["--method", "tools/call", "--tool-name"];
            let input = ["test_sum", "--tool-args-json", r#"{"numbers":[1,2,39]}"#];
            let sum = run(&[&call[..], &input].concat()).ends(0).json();
            assert_eq!(
                sum["result"]["structuredContent"],
                json!({ "sum": 42, "count": 3 }),
                "{sum}"
            );

            // Five is its exit code for a tool's own error.
            let failed = run(&[&call[..], &["test_error_handling"]].concat()).ends(5);
            assert!(failed.stdout.contains("conformance:intended"), "{failed}");

            let prompt = [
                "--method",
                "prompts/get",
                "--prompt-name",
                "test_prompt_with_arguments",
                "--prompt-args",
                "arg1=hello",
                "arg2=world",
            ];
            let prompt = run(&prompt).ends(0).json();
            assert_eq!(
                prompt["result"]["messages"][0]["content"]["text"],
                "Prompt with arguments: arg1='hello', arg2='world'",
                "{prompt}"
            );
        }
    }
}
