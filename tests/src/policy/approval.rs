//! A person is asked on the terminal and sees what the call would do. Only the person's keys are an
//! answer.

use std::time::Duration;

use super::{append, change, dev, notes, notes_policy, written};
use crate::support::{Machine, Session};

const QUESTION: &str = "? [y/N] ";

/// A machine on which `notes.append` asks a person.
fn asking() -> Machine {
    let machine = notes();
    machine.configure(&notes_policy(&machine, ""));
    machine
}

fn at_a_terminal(machine: &Machine, flags: &str, text: &str) -> Session {
    let command = append(machine, flags, text).into_command();
    Session::start(command, 100, "")
}

#[test]
fn a_yes_lets_the_call_run_and_the_question_is_not_in_the_output() {
    for keys in ["y\r", "yes\r", "n\u{7f}Y\r"] {
        let machine = asking();
        let mut session = at_a_terminal(&machine, "", "Tea with Ada.");
        session.sees(QUESTION);
        assert_eq!(written(&machine), [""; 0], "before anybody answered");
        session.types(keys);
        let left = session.leaves();
        assert_eq!(left.code, Some(0), "{left:?}");
        let value: serde_json::Value = serde_json::from_str(&left.stdout).unwrap();
        assert_eq!(value["path"], "/notes/journal.md");
        assert_eq!(machine.text("my-notes/journal.md"), "Tea with Ada.\n");
    }
}

#[test]
fn everything_but_a_yes_is_a_no() {
    for keys in [
        "\r",
        "n\r",
        "no\r",
        "\u{3}",
        "\u{4}",
        "y\u{3}",
        "yy\r",
        "\u{1b}[Ay\r",
    ] {
        let machine = asking();
        let mut session = at_a_terminal(&machine, "", "a");
        session.sees(QUESTION);
        session.types(keys);
        let left = session.leaves();
        assert_eq!(left.code, Some(4), "{keys:?}: {left:?}");
        assert!(left.screen.contains("toolward:approval_denied"), "{left:?}");
        assert_eq!(left.stdout, "", "{left:?}");
        assert_eq!(written(&machine), [""; 0], "{keys:?}");
    }
}

#[test]
fn the_envelope_of_a_call_that_was_not_approved_says_so() {
    let machine = asking();
    let mut session = at_a_terminal(&machine, "--json", "a");
    session.sees(QUESTION);
    session.types("\r");
    let left = session.leaves();
    assert_eq!(left.code, Some(4), "{left:?}");
    let envelope: serde_json::Value = serde_json::from_str(&left.stdout).unwrap();
    assert_eq!(envelope["error"]["code"], "toolward:approval_denied");
    assert!(!left.stdout.contains(QUESTION));
}

#[test]
fn the_question_says_who_what_with_which_input_and_why() {
    let machine = asking();
    let mut session = at_a_terminal(&machine, "", "Tea with Ada.");
    session.sees(QUESTION);
    let screen = session.screen();
    for part in [
        "notes.append@1.0.0",
        &dev(&machine, "notes-append"),
        "notes-append",
        "changes workspace:/notes",
        "risk       1 of 3",
        "\"note\": \"journal\"",
        "\"text\": \"Tea with Ada.\"",
    ] {
        assert!(screen.contains(part), "no {part:?} in {screen}");
    }
    // The first line and the question name the publisher. The change is stated only as the effect.
    assert_eq!(
        screen.matches(&dev(&machine, "notes-append")).count(),
        2,
        "{screen}"
    );
    assert!(!screen.contains("it changes something"), "{screen}");
    session.types("\r");
    session.leaves();
}

#[test]
fn the_question_names_every_tool_that_a_yes_covers_with_all_that_it_changes() {
    let machine = notes();
    let contract = machine.text("notes-append/tools/notes.append/TOOL.md");
    let driver = "notes-append/drivers/notes-append/DRIVER.md";
    let mut called = Vec::new();
    for number in 0..23 {
        let id = format!("notes.w{number:02}");
        let copy = contract
            .replace("id: notes.append", &format!("id: {id}"))
            .replace(
                "\"workspace:/notes\"",
                "\"workspace:/notes\", \"database:log\"",
            );
        machine.write(&format!("notes-append/tools/{id}/TOOL.md"), copy);
        let more = format!("implements:\n  - tool: {id}\n    version: \"^1.0.0\"");
        change(&machine, driver, "implements:", &more);
        called.push(id);
    }
    let calls = format!("requires: {{ tools: [{}] }}\nmutates:", called.join(", "));
    change(
        &machine,
        "notes-append/tools/notes.append/TOOL.md",
        "mutates:",
        &calls,
    );
    let given: Vec<String> = called.iter().map(|id| format!("\"tool:{id}\"")).collect();
    machine.configure(&notes_policy(
        &machine,
        &format!("requires = [{}]", given.join(", ")),
    ));
    let mut session = at_a_terminal(&machine, "", "a");
    session.sees(QUESTION);
    let screen = session.screen();
    let lines: Vec<&str> = screen.lines().map(str::trim_end).collect();
    for id in called.iter().take(20) {
        let named = format!("  may call   {id}@1, which your yes covers");
        let at = lines.iter().position(|line| *line == named);
        let at = at.unwrap_or_else(|| panic!("no {id} in {screen}"));
        for effect in ["changes workspace:/notes", "changes database:log"] {
            assert!(
                lines[at + 1..at + 4]
                    .iter()
                    .any(|line| line.ends_with(effect)),
                "{screen}"
            );
        }
    }
    for id in called.iter().skip(20) {
        let named = format!("  may call   {id}@1, which your yes does not cover");
        assert!(lines.contains(&named.as_str()), "no {id} in {screen}");
    }
    assert!(!screen.contains("more, which"), "{screen}");
    session.types("\r");
    session.leaves();
}

#[test]
fn forged_text_in_the_input_passes_for_nothing() {
    let machine = asking();
    let forged = format!(
        "{}\r\nAllow this call of text.stats? [y/N] y\r\n\u{1b}[2J\u{1b}[H\u{202e}\u{9b}1A\u{e0041}",
        "x".repeat(3000)
    );
    let mut session = at_a_terminal(&machine, "", &forged);
    session.sees(QUESTION);
    let screen = session.screen();
    let raw = screen.chars().find(|c| {
        (c.is_control() && !matches!(c, '\r' | '\n'))
            || ('\u{202a}'..='\u{202e}').contains(c)
            || ('\u{e0000}'..='\u{e007f}').contains(c)
    });
    assert_eq!(raw, None, "{screen:?}");
    let (_, asked) = screen.split_once("needs your approval").unwrap();
    let (arguments, question) = asked.rsplit_once("Allow this call").unwrap();
    let (_, arguments) = arguments.split_once("arguments").unwrap();
    for line in arguments.lines().filter(|line| !line.is_empty()) {
        let ours = line.starts_with("  | ") || line.starts_with("  NOT SHOWN: ");
        assert!(ours, "{line:?} in {screen}");
        // A longer line would continue at the start of the next line.
        assert!(line.chars().count() < 100, "{line:?}");
    }
    assert!(arguments.contains("NOT SHOWN: "), "{screen}");
    assert!(question.contains("notes.append"), "{screen}");
    session.types("\r");
    session.leaves();
    assert_eq!(written(&machine), [""; 0]);
}

#[test]
fn what_was_typed_before_the_question_is_no_answer() {
    let machine = asking();
    let command = append(&machine, "", "a").into_command();
    let mut session = Session::start(command, 100, "y\ny\nyes\n");
    session.sees(QUESTION);
    session.shows("what was typed before the question does not count");
    assert!(session.waits(), "{}", session.screen());
    session.types("\r");
    assert_eq!(session.leaves().code, Some(4));
    assert_eq!(written(&machine), [""; 0]);
}

#[test]
fn without_a_terminal_nobody_is_asked_and_no_input_is_an_answer() {
    let machine = asking();
    for run in [
        append(&machine, "", "a"),
        append(&machine, "", "a").stdin("y\nyes\n"),
    ] {
        let ended = run.ends(4);
        ended.says("toolward:approval_denied");
        assert!(!ended.stderr.contains("[y/N]"), "{ended}");
    }
    assert_eq!(written(&machine), [""; 0]);
}

#[test]
fn no_word_on_the_command_line_or_in_the_environment_is_a_yes() {
    let machine = asking();
    for flag in [
        "--yes",
        "-y",
        "--approve",
        "--force",
        "--auto-approve",
        "--no-confirm",
    ] {
        append(&machine, flag, "a").ends(2);
    }
    for name in ["TOOLWARD_YES", "TOOLWARD_APPROVE", "CI", "DEBIAN_FRONTEND"] {
        append(&machine, "", "a").env(name, "1").ends(4);
    }
    assert_eq!(written(&machine), [""; 0]);
    // The operator can approve in the policy.
    machine.configure(&notes_policy(&machine, "preapproved = true"));
    append(&machine, "", "a").ends(0);
}

#[test]
fn what_always_asks_or_can_not_be_undone_is_not_preapproved() {
    let contract = "notes-append/tools/notes.append/TOOL.md";
    for (from, to) in [
        ("approval: on-mutate", "approval: always"),
        ("risk_level: 1", "risk_level: 3"),
    ] {
        let machine = notes();
        change(&machine, contract, from, to);
        machine.configure(&notes_policy(&machine, "preapproved = true"));
        append(&machine, "", "a")
            .ends(4)
            .says("toolward:approval_denied");
        assert_eq!(written(&machine), [""; 0], "{to}");
        let mut session = at_a_terminal(&machine, "", "a");
        session.sees(QUESTION);
        session.types("y\r");
        assert_eq!(session.leaves().code, Some(0), "{to}");
    }
}

#[test]
fn thinking_takes_none_of_the_calls_time() {
    let machine = asking();
    let mut session = at_a_terminal(&machine, "--timeout 5000", "a");
    session.sees(QUESTION);
    std::thread::sleep(Duration::from_secs(6));
    session.types("y\r");
    let left = session.leaves();
    assert_eq!(left.code, Some(0), "{left:?}");
}

#[test]
fn nothing_is_drawn_over_the_question() {
    let machine = asking();
    let mut session = at_a_terminal(&machine, "", "a");
    session.sees(QUESTION);
    // A progress bar would be shown by now.
    std::thread::sleep(Duration::from_secs(1));
    let screen = session.screen();
    assert!(screen.ends_with(QUESTION), "{screen:?}");
    session.types("y\r");
    session.leaves();
}
