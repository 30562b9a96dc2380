//! `call --grant`: a workspace or a host for one call.

use std::fs;

use super::{append, dev, notes, notes_policy, written};
use crate::support::{Machine, Session};

const GIVEN: &str = "--grant workspace:/notes=my-notes";
const QUESTION: &str = "? [y/N] ";

/// Makes a call at a terminal and answers its question with these keys. Returns the exit code.
fn answered(machine: &Machine, keys: &str) -> Option<i32> {
    let command = append(machine, GIVEN, "a").into_command();
    let mut session = Session::start(command, 100, "y\r");
    session.sees(QUESTION);
    assert_eq!(written(machine), [""; 0], "before anybody answered");
    session.types(keys);
    session.leaves().code
}

#[test]
fn a_workspace_is_there_for_the_call_once_a_person_said_yes_and_not_for_the_next() {
    let machine = notes();
    append(&machine, "", "a").ends(4);
    let unasked = append(&machine, GIVEN, "a").stdin("y\n").ends(4);
    assert!(
        unasked.stderr.contains("toolward:approval_denied"),
        "{unasked}"
    );
    assert_eq!(answered(&machine, "n\r"), Some(4));
    assert_eq!(written(&machine), [""; 0]);
    assert_eq!(answered(&machine, "y\r"), Some(0));
    assert_eq!(written(&machine), ["journal.md"]);
    append(&machine, "", "a").ends(4);
    assert!(
        !machine
            .home()
            .join(".config/toolward/toolward.toml")
            .exists()
    );
}

#[test]
fn what_was_approved_before_is_no_approval_of_what_is_mapped_now() {
    let machine = notes();
    let policy = notes_policy(&machine, "preapproved = true");
    let grant = policy.split("[[grant]]").nth(1).unwrap();
    machine.configure(&format!("[[grant]]{grant}"));
    append(&machine, GIVEN, "a").ends(4);
    assert_eq!(answered(&machine, "y\r"), Some(0));
    assert_eq!(written(&machine), ["journal.md"]);
}

#[test]
fn a_deny_wins() {
    let machine = notes();
    for capabilities in ["", "capabilities = [\"workspace:/notes\"]\n"] {
        let publisher = dev(&machine, "notes-append");
        machine.configure(&format!(
            "[[deny]]\npublisher = {publisher:?}\n{capabilities}"
        ));
        let ended = append(&machine, GIVEN, "a").ends(4);
        assert!(ended.stderr.contains("unauthorised"), "{ended}");
    }
    assert_eq!(written(&machine), [""; 0]);
}

#[test]
fn protected_and_mapped_directories_stay_what_they_are() {
    let machine = notes();
    machine.configure(&notes_policy(&machine, ""));
    let config = machine.home().join(".config/toolward");
    for (grant, code) in [
        (
            format!("workspace:/other={}", config.display()),
            "workspace-refused",
        ),
        (
            format!("workspace:/other={}", machine.home().display()),
            "workspace-refused",
        ),
        ("workspace:/notes=elsewhere".to_owned(), "policy-"),
        ("workspace:/other=my-notes".to_owned(), "policy-"),
    ] {
        let ended = append(&machine, &format!("--grant {grant}"), "a").ends(2);
        assert!(
            ended.stderr.contains(&format!("error[{code}")),
            "{grant}: {ended}"
        );
    }
    // Programs in the toolchain directory run with the rights of the person who builds.
    let tools = machine.path("tools");
    fs::create_dir(&tools).unwrap();
    append(&machine, "--grant workspace:/other=tools", "a")
        .env("TOOLWARD_TOOLCHAIN", &tools)
        .ends(2)
        .says("workspace-refused");
    assert_eq!(written(&machine), [""; 0]);
    assert_eq!(fs::read_dir(config).unwrap().count(), 1);
}

#[test]
fn nothing_but_named_hosts_and_workspaces_is_given() {
    let machine = notes();
    for grant in [
        "secret:token",
        "tool:notes.append",
        "database:notes",
        "*",
        "network:*",
        "network:*.example",
        "network:127.0.0.1",
        "network:10.1:8080",
        "network:0x7f000001",
        "network:2130706433",
        "network:[::1]",
        "network:[::1]:443",
        "network:::1",
        "network:http://a.example",
        "workspace:/notes",
        "workspace:/notes=",
        "workspace:notes=my-notes",
        "workspace:/*=my-notes",
        "preapproved",
    ] {
        let ended = append(&machine, &format!("--grant {grant}"), "a").ends(2);
        assert!(
            ended.stderr.contains("error[grant-refused]"),
            "{grant}: {ended}"
        );
    }
    // Granting a host that the tool does not declare has no effect.
    append(&machine, "--grant network:a.example", "a").ends(4);
    machine.toolward("serve --grant network:a.example").ends(2);
}
