//! `toolward test`: examples run in a scratch directory. They run under the operator's grants only
//! if that is requested.

use std::fs;

use serde_json::Value;

use super::{change, notes, notes_policy, under_work, written};
use crate::support::{Machine, tree};

const CONTRACT: &str = "notes-append/tools/notes.append/TOOL.md";

fn states(lines: &[Value]) -> Vec<&str> {
    lines
        .iter()
        .map(|line| line["state"].as_str().unwrap())
        .collect()
}

#[test]
fn examples_of_a_tool_that_writes_run_in_a_scratch_workspace() {
    let machine = notes();
    let temporary = machine.path("tmp");
    fs::create_dir(&temporary).unwrap();
    // The policy would grant the real notes.
    machine.configure(&notes_policy(&machine, "preapproved = true"));
    let before = tree(&machine.work());
    let ended = machine
        .toolward("test --dev notes-append --json")
        .env("TMPDIR", &temporary)
        .ends(0);
    assert_eq!(states(&ended.json_lines()), ["passed", "passed"], "{ended}");
    assert_eq!(tree(&machine.work()), before, "nothing is left");
}

#[test]
fn each_example_finds_the_scratch_workspace_empty() {
    let machine = notes();
    // The same example again: if its note still existed, the note would not be new.
    change(
        &machine,
        CONTRACT,
        "  - name: A note in a folder",
        "  - name: The same again\n    input: { note: journal, text: \"Tea with Ada.\" }\n    \
         output: { path: /notes/journal.md, created: true, bytes: 14 }\n  - name: A note in a folder",
    );
    let ended = machine.toolward("test --dev notes-append").ends(0);
    assert_eq!(ended.stdout.matches("ok    ").count(), 3, "{ended}");
}

#[test]
fn each_example_finds_its_buckets_empty() {
    let machine = Machine::new();
    under_work(&machine, "kv-counter");
    let contract = machine.text("kv-counter/tools/kv.counter/TOOL.md");
    let one = "    input: { action: add, counter: a }\n    \
               output: { counters: [{ name: a, value: 1 }], truncated: false }\n";
    let examples =
        format!("examples:\n  - name: First\n{one}  - name: Again\n{one}---\n\n## Description");
    machine.write(
        "kv-counter/tools/kv.counter/TOOL.md",
        contract.replacen("---\n\n## Description", &examples, 1),
    );
    let lines = machine
        .toolward("test --dev kv-counter --json")
        .ends(0)
        .json_lines();
    assert_eq!(states(&lines), ["passed", "passed"], "{lines:?}");
    assert!(!machine.home().join(".local").exists());
}

#[test]
fn an_example_that_needs_the_network_or_a_secret_is_skipped_and_says_why() {
    let machine = notes();
    change(
        &machine,
        CONTRACT,
        "approval: on-mutate",
        "requires: { secrets: [token] }\napproval: on-mutate",
    );
    let ended = machine.toolward("test --dev notes-append").ends(4);
    assert_eq!(ended.stdout.matches("skip  ").count(), 2, "{ended}");
    assert!(ended.stdout.contains("secret:token"), "{ended}");
    assert!(
        ended.stderr.contains("0 examples run, 0 failed, 2 skipped"),
        "{ended}"
    );
    let lines = machine
        .toolward("test --dev notes-append --json")
        .ends(4)
        .json_lines();
    assert_eq!(states(&lines), ["skipped", "skipped"]);
    assert!(
        lines[0]["problem"]
            .as_str()
            .unwrap()
            .contains("secret:token")
    );
}

#[test]
fn with_grants_the_examples_run_under_the_policy() {
    let machine = notes();
    let test = |flags: &str| machine.toolward(&format!("test --dev notes-append {flags}"));
    test("--with-grants").ends(4);
    assert_eq!(written(&machine), [""; 0]);
    // No person can be asked.
    machine.configure(&notes_policy(&machine, ""));
    test("--with-grants").ends(4);
    assert_eq!(written(&machine), [""; 0]);
    machine.configure(&notes_policy(&machine, "preapproved = true"));
    test("--with-grants").ends(0);
    assert_eq!(written(&machine), ["journal.md", "work"]);
    // Now the notes are not new any more.
    test("--with-grants").ends(1);
    machine.write("deny.toml", "[[deny]]\n");
    test("--with-grants --policy-file deny.toml").ends(4);
    test("").ends(0);
}

#[test]
fn a_wrong_example_fails_whatever_was_skipped() {
    let machine = notes();
    change(&machine, CONTRACT, "bytes: 14", "bytes: 15");
    let ended = machine.toolward("test --dev notes-append").ends(1);
    assert!(ended.stdout.contains("FAILED notes.append@1"), "{ended}");
}

#[test]
fn a_test_takes_a_bundle_in_both_spellings() {
    let machine = Machine::with_example("text-stats");
    for bundle in ["text-stats.toolbundle", "--bundle text-stats.toolbundle"] {
        machine
            .toolward(&format!("test {bundle} --trust-key example.pub.pem"))
            .ends(0);
    }
}

#[test]
fn an_example_with_an_input_that_the_driver_dropped_is_skipped_and_says_so() {
    let machine = Machine::new();
    under_work(&machine, "text-stats");
    let count = |ended: &crate::support::Ended, word: &str| ended.stdout.matches(word).count();
    let whole = machine.toolward("test --dev text-stats").ends(0);
    assert_eq!(count(&whole, "skip  "), 0, "{whole}");
    let driver = "text-stats/drivers/text-stats/DRIVER.md";
    let narrowed = "implements:\n  - schema_narrowing: { drop_inputs: [top] }\n    tool:";
    change(&machine, driver, "implements:\n  - tool:", narrowed);
    // A driver may drop an input. That is neither a failure nor a denial.
    let ended = machine.toolward("test --dev text-stats").ends(0);
    let skipped = count(&ended, "skip  ");
    assert!(skipped > 0, "{ended}");
    let reason = "the driver does not take the input `top`";
    assert_eq!(count(&ended, reason), skipped, "{ended}");
    assert_eq!(count(&ended, "ok    ") + skipped, count(&whole, "ok    "));
    assert!(!ended.stderr.contains("--with-grants"), "{ended}");
    let lines = machine.toolward("test --dev text-stats --json").ends(0);
    let left_out = states(&lines.json_lines())
        .into_iter()
        .filter(|state| *state == "skipped")
        .count();
    assert_eq!(left_out, skipped);
}
