//! A blocked tool, and the lines that would let it run. The shown lines are added to the file, and
//! must have the stated effect.

use std::fs;

use serde_json::json;

use super::{
    append, change, chosen, dev, is_blocked, lines, notes, notes_policy, signed, state, under_work,
    users_file, written,
};
use crate::support::Machine;

/// The examples that declare capabilities.
const ASKING: [&str; 5] = [
    "files-search",
    "http-fetch",
    "kv-counter",
    "notes-append",
    "text-digest",
];

/// Returns a tool of each, and a valid input.
fn call(example: &str) -> (&'static str, serde_json::Value) {
    match example {
        "files-search" => ("files.search", json!({ "pattern": "a+" })),
        "http-fetch" => ("http.fetch", json!({ "url": "https://docs.rs/" })),
        "kv-counter" => ("kv.counter", json!({ "action": "list" })),
        "notes-append" => ("notes.append", json!({ "note": "a", "text": "b" })),
        _ => ("text.digest", json!({ "text": "A text. Another." })),
    }
}

#[test]
fn the_lines_of_a_blocked_call_unblock_it_once_they_are_in_the_file() {
    for example in ASKING {
        let machine = Machine::new();
        under_work(&machine, example);
        let (tool, input) = call(example);
        let source = format!("--dev {example}");
        assert_eq!(state(&machine, tool, &source), "blocked", "{example}");
        let words = format!("call {tool} {source} --input");
        let ended = machine.toolward(&words).arg(input.to_string()).ends(4);
        ended.says("unauthorised");
        let file = users_file(&machine);
        assert!(ended.stderr.contains(file.to_str().unwrap()), "{ended}");

        machine.configure(&chosen(&lines(&ended.stderr), &machine.path("chosen")));
        machine.toolward("policy check").ends(0);
        let state = state(&machine, tool, &source);
        assert!(state == "allowed" || state == "asks", "{example}: {state}");
    }
}

#[test]
fn lines_that_give_a_folder_and_a_bucket_are_all_that_a_call_needs() {
    let machine = Machine::new();
    for (example, before) in [("files-search", "allowed"), ("kv-counter", "asks")] {
        under_work(&machine, example);
        let (tool, input) = call(example);
        let words = format!("call {tool} --dev {example} --policy-file {example}.toml --input");
        machine.write(&format!("{example}.toml"), "");
        let ended = machine.toolward(&words).arg(input.to_string()).ends(4);
        let lines = chosen(&lines(&ended.stderr), &machine.path("chosen"));
        machine.write(&format!("{example}.toml"), &lines);
        let source = format!("--dev {example} --policy-file {example}.toml");
        assert_eq!(state(&machine, tool, &source), before);
        // The lines end with the grant, to which one line is added.
        let more = if before == "asks" {
            "preapproved = true\n"
        } else {
            ""
        };
        machine.write(&format!("{example}.toml"), format!("{lines}{more}"));
        machine.toolward(&words).arg(input.to_string()).ends(0);
    }
}

#[test]
fn an_envelope_never_holds_lines_of_a_policy() {
    let machine = notes();
    let ended = append(&machine, "--json", "a").end();
    is_blocked(&ended);
    for text in [&ended.stdout, &ended.stderr] {
        for part in [
            "[[",
            "my-notes",
            "publisher =",
            "preapproved",
            "toolward.toml",
        ] {
            assert!(!text.contains(part), "{part} in {ended}");
        }
    }
    assert_eq!(written(&machine), [""; 0]);
}

#[test]
fn a_signed_tool_is_named_by_its_publisher_in_the_lines() {
    let machine = notes();
    let publisher = signed(&machine, "notes-append", "acme");
    let call = || {
        machine
            .toolward("call notes.append --bundle acme.toolbundle --trust-key acme.pub.pem --input")
            .arg(json!({ "note": "journal", "text": "a" }).to_string())
    };
    let ended = call().ends(4);
    let lines = lines(&ended.stderr);
    assert!(
        lines.contains(&format!("publisher = \"{publisher}\"")),
        "{ended}"
    );
    let lines = chosen(&lines, &machine.path("chosen"));
    machine.configure(&format!("{lines}preapproved = true\n"));
    call().ends(0);
    assert_eq!(
        fs::read_to_string(machine.path("chosen/notes/journal.md")).unwrap(),
        "a\n"
    );
}

#[test]
fn what_no_line_can_give_is_said_and_no_lines_are_shown() {
    let machine = notes();
    let policy = notes_policy(
        &machine,
        "preapproved = true\n[[deny]]\ntool = \"notes.*\"\n",
    );
    machine.configure(&policy);
    let ended = append(&machine, "", "a").ends(4);
    ended.says("unauthorised");
    // Shown only on the operator's own terminal.
    assert!(ended.stderr.contains("denied by"), "{ended}");
    assert!(ended.stderr.contains("[[deny]] 1"), "{ended}");
    let json = append(&machine, "--json", "a").ends(4).stdout;
    assert!(!json.contains("[[deny]]"), "{json}");
    assert!(!ended.stderr.contains("add these lines"), "{ended}");
    assert_eq!(written(&machine), [""; 0]);

    let contract = "notes-append/tools/notes.append/TOOL.md";
    change(
        &machine,
        contract,
        "mutates: [\"workspace:/notes\"]",
        "mutates: [\"moon:/notes\"]",
    );
    machine.configure("");
    let ended = append(&machine, "", "a").ends(4);
    assert!(ended.stderr.contains("moon:/notes"), "{ended}");
    // No grant covers such a class. It can only be accepted by its name.
    assert!(ended.stderr.contains("accepts = [\"moon\"]"), "{ended}");
    assert!(!ended.stderr.contains("mutates = "), "{ended}");
    assert_eq!(written(&machine), [""; 0]);
}

#[test]
fn a_directory_that_still_waits_for_a_choice_gives_nothing() {
    let machine = notes();
    let ended = append(&machine, "", "a").ends(4);
    let lines = format!("{}preapproved = true\n", lines(&ended.stderr));
    machine.configure(&lines);
    let ended = append(&machine, "", "a").end();
    assert_ne!(ended.code, Some(0), "{ended}");
    assert!(!std::path::Path::new("/path/to/choose").exists());
    machine
        .toolward("policy check")
        .ends(0)
        .warns("still waits");
}

#[test]
fn a_secret_and_a_service_that_wait_for_a_choice_give_nothing() {
    let machine = notes();
    change(
        &machine,
        "notes-append/tools/notes.append/TOOL.md",
        "mutates: [",
        "requires: { secrets: [home] }\nmutates: [\"external:mail\", ",
    );
    let shown = lines(&append(&machine, "", "a").ends(4).stderr);
    assert!(shown.contains("env = \"TOOLWARD_CHOOSE\""), "{shown}");
    machine.configure(&format!(
        "{}preapproved = true\n",
        chosen(&shown, &machine.path("chosen"))
    ));
    let call = append(&machine, "--json", "a").env("TOOLWARD_CHOOSE", "a-value-to-steal");
    is_blocked(&call.end());
    assert!(!machine.path("chosen/notes/journal.md").exists());
    let check = machine.toolward("policy check").ends(0);
    check.warns("the secret home of");
    check.warns("the service mail");
    let doctor = machine.toolward("doctor").ends(0);
    for waits in [
        "nobody has chosen yet where it comes from",
        "mail: nobody has chosen its hosts",
    ] {
        assert!(doctor.stdout.contains(waits), "{doctor}");
    }
}

#[test]
fn a_grant_is_for_its_publisher_and_no_other() {
    let machine = notes();
    machine.configure(&notes_policy(&machine, "preapproved = true"));
    append(&machine, "", "a").ends(0);
    // The same bundle in another directory has another publisher.
    crate::support::copy(&machine.path("notes-append"), &machine.path("other"));
    assert_ne!(dev(&machine, "other"), dev(&machine, "notes-append"));
    let ended = machine
        .toolward("call notes.append --dev other --json --input")
        .arg(json!({ "note": "stolen", "text": "a" }).to_string())
        .end();
    is_blocked(&ended);
    assert_eq!(written(&machine), ["journal.md"]);
}
