//! Runs the tutorial of three tools: its commands at a terminal, then an agent whose client shows
//! questions.

use std::fs;

use serde_json::{Value, json};

use super::markdown::Page;
use super::session::steps;
use super::shell::shell;
use crate::mcp::raw::{PATIENCE, Raw};
use crate::support::{Left, Machine, Session, root};

/// Returns the commands that a reader of the page types, including those at a terminal.
fn commands() -> Vec<String> {
    let page = Page::read(&root().join("docs/src/three-tools.md"));
    let blocks = page.blocks();
    let typed = blocks.iter().filter(|block| {
        let first = block.lines.first();
        first.is_some_and(|line| line.starts_with("$ "))
    });
    typed.flat_map(steps).map(|step| step.command).collect()
}

/// Types these commands into a shell at a terminal.
fn types(machine: &Machine, commands: &[String]) -> Session {
    let script = machine.path("typed.sh");
    fs::write(&script, commands.join("\n") + "\n").unwrap();
    let mut command = shell(machine);
    command.args(["--foreground", "600", "bash"]).arg(script);
    Session::showing_both(command, 120)
}

/// Starts the server from the client's file, with a client of this name.
fn agent(machine: &Machine, name: &str) -> Raw {
    let file = machine.home().join(".cursor/mcp.json");
    let file: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let entry = &file["mcpServers"]["toolward-demo"];
    let mut command = machine.program(entry["command"].as_str().unwrap());
    let flags = entry["args"].as_array().unwrap().iter();
    command.args(flags.map(|flag| flag.as_str().unwrap()));
    Raw::open_as(name, command, json!({"elicitation": {}}))
}

fn ended(left: &Left) {
    assert_eq!(left.code, Some(0), "{left:?}");
}

#[test]
fn the_tutorial_ends_with_a_note_that_a_person_approved() {
    let machine = Machine::new();
    let all = commands();
    let end = all.iter().position(|one| one.contains("demo --remove"));
    let (before, after) = all.split_at(end.unwrap());
    let mut session = types(&machine, before);
    session.sees("+    \"toolward-demo\": {");
    session.types("y\r");
    session.sees("+may_approve = [\"cursor-vscode\"]");
    session.types("y\r");
    let left = session.leaves();
    ended(&left);
    assert!(left.screen.contains("\"words\": 3"), "{left:?}");

    let notes = machine.home().join(".local/state/toolward-demo/notes");
    let note = json!({"text": "3 words"});
    // The person did not name this client.
    let mut other = agent(&machine, "another");
    other.call(1, "demo_note", &note);
    let answer = other.answer(1);
    let error = &answer["result"]["_meta"]["toolward/error"];
    assert_eq!(error["code"], "toolward:approval_denied", "{answer}");
    let hint = error["hint"].as_str().unwrap();
    for part in ["may_approve = [\"another\"]", "[clients]", "preapproved"] {
        assert!(hint.contains(part), "{part}: {hint}");
    }
    drop(other);
    assert_eq!(fs::read_dir(&notes).unwrap().count(), 0);

    let mut cursor = agent(&machine, "cursor-vscode");
    cursor.call(1, "demo_words", &json!({"text": "one two three"}));
    let answer = cursor.answer(1);
    assert_eq!(
        answer["result"]["structuredContent"]["words"], 3,
        "{answer}"
    );
    cursor.call(2, "demo_note", &note);
    let question = cursor.next(PATIENCE).expect("a question");
    assert_eq!(question["method"], "elicitation/create", "{question}");
    cursor.send(&json!({
        "jsonrpc": "2.0", "id": question["id"],
        "result": {"action": "accept", "content": {"decision": "allow this call"}},
    }));
    let answer = cursor.answer(2);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    drop(cursor);
    assert_eq!(fs::read_dir(&notes).unwrap().count(), 1);

    ended(&types(&machine, after).leaves());
    assert!(!notes.exists());
    assert!(!machine.home().join(".cursor/mcp.json").exists());
}
