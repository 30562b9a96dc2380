//! Prompts and resources in the command's view of a policy, and in the lists of a server.

use serde_json::{Value, json};

use super::dev;
use crate::mcp::raw::Raw;
use crate::support::Machine;

const PROMPT: &str = "---\nid: acme.notes.sum\nname: Sum up\ndescription: Sums up.\n\
                      metadata: { mcp: { name: sum } }\n---\nSum up.\n\n\
                      [style](resources/style.txt)\n";

/// A machine with a bundle that has a prompt and a file, and no tool.
fn machine() -> Machine {
    let machine = Machine::new();
    machine.write(
        "notes/bundle.toml",
        "id = \"acme.notes\"\nversion = \"1.0.0\"\nsequence = 1\npublisher = \"acme\"\n\
         created = \"2026-11-01T00:00:00Z\"\n",
    );
    machine.write("notes/prompts/sum.md", PROMPT);
    machine.write("notes/resources/style.txt", "Short.");
    machine
}

/// Returns the state and the reasons of each document in `policy list`.
fn states(machine: &Machine) -> Vec<(String, String, Value)> {
    let lines = machine
        .toolward("policy list --dev notes --json")
        .ends(0)
        .json_lines();
    let text = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
    let lines = lines.iter().map(|line| {
        let reasons = line["reasons"].clone();
        (text(line, "document"), text(line, "state"), reasons)
    });
    lines.collect()
}

/// Returns the names of the prompts that a client sees.
fn prompts(machine: &Machine) -> Vec<String> {
    let serve = machine.toolward("serve --dev notes");
    let mut raw = Raw::open(serve.into_command(), json!({}));
    raw.send(&json!({"jsonrpc": "2.0", "id": "list", "method": "prompts/list"}));
    let answer = raw.answer("list");
    let prompts = answer["result"]["prompts"].as_array().unwrap();
    let names = prompts
        .iter()
        .map(|prompt| prompt["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

#[test]
fn documents_that_no_table_gives_are_named_with_the_lines_that_give_them() {
    let machine = machine();
    let hidden = || json!(["no [[document]] is about it"]);
    let state = |id: &str, state: &str, reasons: Value| (id.to_owned(), state.to_owned(), reasons);
    assert_eq!(
        states(&machine),
        [
            state("style.txt", "hidden", hidden()),
            state("acme.notes.sum", "hidden", hidden())
        ]
    );
    assert_eq!(prompts(&machine), [""; 0]);

    let suggested = machine
        .toolward("policy suggest --dev notes")
        .ends(0)
        .stdout;
    machine.configure(&suggested);
    let checked = machine.toolward("policy check").ends(0);
    assert!(checked.stdout.contains("1 document rule"), "{checked}");
    assert_eq!(
        states(&machine),
        [
            state("style.txt", "served", json!([])),
            state("acme.notes.sum", "served", json!([]))
        ]
    );
    // The name `sum`, which the prompt requests, needs a separate grant.
    assert_eq!(prompts(&machine), ["acme.notes.sum"]);
    let again = machine.toolward("policy suggest --dev notes").ends(0);
    assert!(again.stdout.contains("# No line is missing."), "{again}");
    assert!(!again.stdout.contains("[[document]]"), "{again}");
}

#[test]
fn explain_says_of_a_document_or_a_bundle_why_it_is_not_served() {
    let machine = machine();
    let document = format!("[[document]]\npublisher = {:?}\n", dev(&machine, "notes"));
    machine.configure(&format!("{document}prompts = [\"*\"]\nnames = [\"sum\"]\n"));
    let explain = |name: &str| {
        let explain = format!("show {name} --policy --dev notes --json");
        machine.toolward(&explain).ends(0).json()
    };
    let prompt = &explain("acme.notes.sum")["documents"];
    assert_eq!(prompt[0]["name"], "sum");
    let why = "it embeds resources/style.txt, which is not served";
    assert_eq!(prompt[0]["reasons"], json!([why]));
    assert_eq!(prompts(&machine), [""; 0]);
    let bundle = explain("acme.notes");
    assert_eq!(bundle["documents"].as_array().unwrap().len(), 2);
    let lines = bundle["lines_to_add"].as_str().unwrap();
    assert!(lines.contains("resources = [\"style.txt\"]"), "{lines}");
    assert!(!lines.contains("prompts ="), "{lines}");
    let file = explain("resources/style.txt");
    assert_eq!(file["documents"][0]["document"], "style.txt");

    machine.configure(&format!(
        "{document}prompts = [\"*\"]\nresources = [\"*\"]\n[[deny]]\npublisher = {:?}\n",
        dev(&machine, "notes")
    ));
    let unknown = machine.toolward("show other --policy --dev notes").ends(1);
    unknown.says("tool-missing");
    let known = "prompts and resources are: style.txt, acme.notes.sum";
    assert!(unknown.stderr.contains(known), "{unknown}");
    let denied = machine.toolward("show sum --policy --dev notes").ends(0);
    assert!(
        denied.stdout.contains("a [[deny]] is about everything"),
        "{denied}"
    );
    assert!(!denied.stdout.contains("add to the policy"), "{denied}");
    assert_eq!(prompts(&machine), [""; 0]);
}
