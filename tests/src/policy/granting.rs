//! `policy grant` adds the suggested lines to the policy's file, after a person has seen them and
//! typed a yes.

use std::fs;
use std::os::unix::fs::symlink;

use super::{append, change, dev, notes, written};
use crate::support::{Left, Machine, Session};

const GRANT: &str = "policy grant notes.append --dev notes-append";
const QUESTION: &str = "Write this? [y/N] ";

fn typed(machine: &Machine, command: &str, keys: &str) -> Left {
    let mut session = Session::start(machine.toolward(command).into_command(), 120, "y\r");
    session.sees(QUESTION);
    session.types(keys);
    session.leaves()
}

fn config(machine: &Machine) -> String {
    let path = machine.home().join(".config/toolward/toolward.toml");
    fs::read_to_string(path).unwrap_or_default()
}

/// A policy that maps the workspace of the notes but grants nothing.
fn mapped(machine: &Machine) -> String {
    format!(
        "# mine\n[[workspace]]   # where notes go\npath = \"/notes\"\ndirectory = {:?}",
        machine.path("my-notes")
    )
}

#[test]
fn a_typed_yes_adds_the_lines_and_nothing_else_does() {
    let machine = notes();
    let before = mapped(&machine);
    machine.configure(&before);
    append(&machine, "", "a").ends(4);
    for keys in ["\r", "n\r", "\u{3}"] {
        let left = typed(&machine, GRANT, keys);
        assert_eq!(left.code, Some(4), "{left:?}");
        assert!(
            left.screen.contains("error[change-unconfirmed]"),
            "{left:?}"
        );
        assert_eq!(config(&machine), before);
    }
    let piped = machine.toolward(GRANT).stdin("y\n").ends(4);
    assert!(
        piped.stderr.contains("error[change-unconfirmed]"),
        "{piped}"
    );
    machine.toolward(&format!("{GRANT} --yes")).ends(2);
    assert_eq!(config(&machine), before);

    let left = typed(&machine, GRANT, "y\r");
    assert_eq!(left.code, Some(0), "{left:?}");
    let after = config(&machine);
    let added = after.strip_prefix(&before).unwrap();
    let lines = format!(
        "\n\n[[grant]]\npublisher = {:?}\ntool = \"notes.append@1\"\nmutates = [\"workspace:/notes\"]\n",
        dev(&machine, "notes-append")
    );
    assert_eq!(added, lines);
    let asked = left.screen.split(QUESTION).next().unwrap();
    for line in lines.lines().filter(|line| !line.is_empty()) {
        assert!(asked.contains(&format!("+{line}")), "{line}: {asked}");
    }
    let backup = machine
        .home()
        .join(".config/toolward/toolward.toml.toolward-backup");
    assert_eq!(fs::read_to_string(backup).unwrap(), before);
    // Calls still ask, and no person can be asked here.
    let call = append(&machine, "", "a").ends(4);
    assert!(call.stderr.contains("toolward:approval_denied"), "{call}");
    let again = machine.toolward(GRANT).ends(0);
    assert!(again.stdout.contains("nothing is missing"), "{again}");
    let doctor = machine.toolward("doctor").end();
    assert!(
        doctor
            .stdout
            .contains("`policy grant` granted what notes.append declares"),
        "{doctor}"
    );
}

#[test]
fn preapproved_calls_run_without_a_person_as_far_as_the_risk_allows_it() {
    let machine = notes();
    machine.configure(&mapped(&machine));
    let left = typed(&machine, &format!("{GRANT} --preapprove"), "y\r");
    assert_eq!(left.code, Some(0), "{left:?}");
    assert!(
        config(&machine).ends_with("\npreapproved = true\n"),
        "{}",
        config(&machine)
    );
    append(&machine, "", "a").ends(0);
    assert_eq!(written(&machine), ["journal.md"]);

    for (from, to) in [
        ("risk_level: 1", "risk_level: 3"),
        ("approval: on-mutate", "approval: always"),
    ] {
        let machine = notes();
        let before = mapped(&machine);
        machine.configure(&before);
        change(
            &machine,
            "notes-append/tools/notes.append/TOOL.md",
            from,
            to,
        );
        let refused = machine.toolward(&format!("{GRANT} --preapprove")).ends(4);
        assert!(
            refused.stderr.contains("error[grant-impossible]"),
            "{refused}"
        );
        assert_eq!(config(&machine), before);
    }
}

#[test]
fn a_deny_wins_and_an_unknown_tool_or_a_link_is_refused() {
    let machine = notes();
    let deny = format!(
        "[[deny]]\npublisher = {:?}\n",
        dev(&machine, "notes-append")
    );
    // A denial of the whole tool, or of a capability that it needs.
    for more in ["", "capabilities = [\"workspace:/notes\"]\n"] {
        let before = mapped(&machine) + "\n" + &deny + more;
        machine.configure(&before);
        let refused = machine.toolward(GRANT).ends(4);
        assert!(
            refused.stderr.contains("error[grant-impossible]"),
            "{refused}"
        );
        assert_eq!(config(&machine), before);
    }
    machine
        .toolward("policy grant notes.apend --dev notes-append")
        .ends(1);

    let path = machine.home().join(".config/toolward/toolward.toml");
    fs::write(machine.path("elsewhere.toml"), mapped(&machine)).unwrap();
    fs::remove_file(&path).unwrap();
    symlink(machine.path("elsewhere.toml"), &path).unwrap();
    let refused = machine.toolward(GRANT).ends(1);
    assert!(refused.stderr.contains("error[file-unfit]"), "{refused}");
    assert_eq!(machine.text("elsewhere.toml"), mapped(&machine));
}

#[test]
fn where_there_is_no_policy_one_is_made_with_what_was_chosen() {
    // The choice is made by a flag, or at the question.
    for asked in [false, true] {
        let machine = notes();
        fs::create_dir_all(machine.path("my-notes")).unwrap();
        let command = match asked {
            true => GRANT.to_owned(),
            false => format!("{GRANT} --workspace /notes=my-notes"),
        };
        let mut session = Session::start(machine.toolward(&command).into_command(), 120, "y\r");
        if asked {
            session.sees("Which directory?");
            session.types("my-notes\r");
        }
        session.sees(QUESTION);
        session.types("y\r");
        let left = session.leaves();
        assert_eq!(left.code, Some(0), "{left:?}");
        let directory = machine.path("my-notes").canonicalize().unwrap();
        let written = config(&machine);
        assert!(
            written.contains(&format!("directory = {directory:?}\n")),
            "{written}"
        );
        assert!(!written.contains("# choose"), "{written}");
        machine.toolward("policy check").ends(0);
    }
}

#[test]
fn what_is_not_chosen_is_in_no_file_and_a_choice_without_a_line_is_refused() {
    let machine = notes();
    fs::create_dir_all(machine.path("my-notes")).unwrap();
    let refused = machine.toolward(&format!("{GRANT} --json")).ends(4).json();
    assert_eq!(refused["error"]["code"], "choice-open", "{refused}");
    let hint = refused["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("--workspace /notes=DIRECTORY"), "{refused}");
    // An empty answer makes no choice.
    let mut session = Session::start(machine.toolward(GRANT).into_command(), 120, "");
    session.sees("Which directory?");
    session.types("\r");
    assert_eq!(session.leaves().code, Some(4));
    for (flags, code) in [
        ("--workspace /notes=missing", "setting-invalid"),
        ("--workspace /notes", "setting-invalid"),
        ("--secret token=env:TOKEN", "setting-invalid"),
        (
            "--workspace /notes=my-notes --host a.example",
            "setting-invalid",
        ),
        ("--workspace /other=my-notes", "setting-invalid"),
        // The placeholder of the hint is not a choice.
        ("--workspace /notes=DIRECTORY", "setting-invalid"),
        (
            "--secret token=env:VARIABLE@https://HOST",
            "setting-invalid",
        ),
        (
            "--secret token=env:T@https://host.invalid",
            "setting-invalid",
        ),
        ("--host mail=HOST", "setting-invalid"),
    ] {
        machine
            .toolward(&format!("{GRANT} {flags}"))
            .ends(2)
            .says(code);
    }
    assert_eq!(config(&machine), "");
}

#[test]
fn each_service_of_a_tool_gets_its_own_host() {
    let machine = notes();
    change(
        &machine,
        "notes-append/tools/notes.append/TOOL.md",
        "mutates: [\"workspace:/notes\"]",
        "mutates: [\"workspace:/notes\", \"external:mail\", \"external:chat\"]",
    );
    fs::create_dir_all(machine.path("my-notes")).unwrap();
    let all = format!("{GRANT} --workspace /notes=my-notes");
    let refused = machine.toolward(&format!("{all} --host a.example")).ends(2);
    refused.says("setting-invalid");
    assert!(refused.stderr.contains("SERVICE=a.example"), "{refused}");
    let refused = machine.toolward(&format!("{all} --host mail=a.example --json"));
    let refused = refused.ends(4).json();
    let hint = refused["error"]["hint"].as_str().unwrap();
    assert!(
        hint.contains("--host chat=HOST") && !hint.contains("mail"),
        "{hint}"
    );
    // At a terminal each service has its own answer.
    let mut session = Session::start(machine.toolward(&all).into_command(), 120, "");
    for (service, host) in [("chat", "c.example\r"), ("mail", "m.example\r")] {
        session.sees(&format!("The service {service} needs a host."));
        session.sees("Which host?");
        session.types(host);
    }
    session.sees(QUESTION);
    session.types("y\r");
    let left = session.leaves();
    assert_eq!(left.code, Some(0), "{left:?}");
    let written = config(&machine);
    assert!(
        written.contains("name = \"chat\"\nhosts = [\"c.example\"]"),
        "{written}"
    );
    assert!(
        written.contains("name = \"mail\"\nhosts = [\"m.example\"]"),
        "{written}"
    );
}

#[test]
fn where_nobody_can_be_asked_the_refusal_has_the_lines() {
    let machine = notes();
    let before = mapped(&machine);
    machine.configure(&before);
    let refused = machine.toolward(&format!("{GRANT} --json")).ends(4).json();
    assert_eq!(refused["error"]["code"], "change-unconfirmed", "{refused}");
    let lines = refused["error"]["lines"].as_str().unwrap();
    assert!(
        lines.contains("mutates = [\"workspace:/notes\"]"),
        "{lines}"
    );
    assert_eq!(config(&machine), before);
}

#[test]
fn a_second_grant_leaves_the_backup_of_what_was_there_first() {
    let machine = notes();
    let before = mapped(&machine);
    machine.configure(&before);
    assert_eq!(typed(&machine, GRANT, "y\r").code, Some(0));
    change(
        &machine,
        "notes-append/tools/notes.append/TOOL.md",
        "mutates: [\"workspace:/notes\"]",
        "mutates: [\"workspace:/notes\", \"database:seen\"]",
    );
    let left = typed(&machine, GRANT, "y\r");
    assert_eq!(left.code, Some(0), "{left:?}");
    assert!(config(&machine).contains("database:seen"));
    assert!(left.screen.contains("before the first change"), "{left:?}");
    let backup = ".config/toolward/toolward.toml.toolward-backup";
    let kept = fs::read_to_string(machine.home().join(backup)).unwrap();
    assert_eq!(kept, before);
}
