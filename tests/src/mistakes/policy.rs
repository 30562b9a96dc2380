//! Mistakes in policies.

use super::told;
use crate::support::{Ended, Machine};

const CALL: &str = "call notes.append --bundle notes-append.toolbundle --trust-key example.pub.pem";

fn machine() -> Machine {
    Machine::with_example("notes-append")
}

/// Calls under a policy, and asserts the exit code.
#[track_caller]
fn call_under(policy: &str, exit: i32) -> Ended {
    let machine = machine();
    machine.write("policy.toml", policy);
    let run = machine.toolward(&format!(
        "{CALL} --policy-file policy.toml --set note=a --set text=a"
    ));
    let ended = run.ends(exit);
    let check = machine.toolward("policy check policy.toml").end();
    // `policy check` must refuse exactly the policies whose form the call refuses.
    assert_eq!(exit == 2, check.code != Some(0), "{check}");
    ended
}

/// Returns the lines that grant the tool its declared capabilities, with its notes in a directory.
pub(crate) fn granting(machine: &Machine, directory: &str) -> String {
    let suggest = "policy suggest --bundle notes-append.toolbundle --trust-key example.pub.pem";
    let lines = machine.toolward(suggest).ends(0).stdout;
    assert!(
        lines.contains("\"/path/to/choose/notes\" # choose"),
        "{lines}"
    );
    lines.replace(
        "\"/path/to/choose/notes\" # choose",
        &format!("{directory:?}"),
    )
}

#[test]
fn a_missing_grant_comes_with_the_lines_to_add() {
    let ended = machine()
        .toolward(&format!("{CALL} --set note=a --set text=a"))
        .ends(4);
    told(
        &ended,
        "unauthorised",
        "workspace:/notes",
        "toolward show notes.append --policy",
    );
    told(
        &ended,
        "unauthorised",
        "[[workspace]]",
        "add these lines to",
    );
}

#[test]
fn a_policy_that_is_not_toml_gets_line_and_column() {
    let ended = call_under("[[grant]\npublisher = \"x\"\n", 2);
    told(
        &ended,
        "policy-syntax",
        "policy.toml:1:9",
        "correct the line that is named",
    );
}

#[test]
fn an_unknown_key_gets_the_near_one() {
    for (policy, place, near) in [
        ("[[grants]]\n", "policy.toml:1:3", "did you mean `grant`?"),
        (
            "[[grant]]\npublisher = \"dev:b\"\nmutatess = [\"workspace:/notes\"]\n",
            "policy.toml:3:1",
            "did you mean `mutates`?",
        ),
    ] {
        told(&call_under(policy, 2), "policy-unknown-key", place, near);
    }
}

#[test]
fn a_value_of_another_type_gets_line_and_type() {
    let ended = call_under("[[grant]]\npublisher = 3\n", 2);
    told(
        &ended,
        "policy-wrong-type",
        "policy.toml:2:13",
        "correct the line that is named",
    );
    assert!(
        ended.stderr.contains("expected `publisher` to be a text"),
        "{ended}"
    );
}

#[test]
fn a_bad_capability_gets_the_form_of_one() {
    for (capability, place, next) in [
        ("workspace", "policy.toml:3:12", "`workspace:/notes`"),
        (
            "wrkspace:/notes",
            "policy.toml:1:1",
            "the classes are: network, workspace",
        ),
    ] {
        let policy = format!("[[grant]]\npublisher = \"dev:b\"\nmutates = [\"{capability}\"]\n");
        told(&call_under(&policy, 2), "policy-capability", place, next);
    }
}

#[test]
fn a_workspace_whose_directory_is_missing_is_named_with_what_to_do() {
    let machine = machine();
    let gone = machine.path("gone/notes");
    machine.write("policy.toml", granting(&machine, gone.to_str().unwrap()));
    let words = format!("{CALL} --policy-file policy.toml --set note=a --set text=a");
    let ended = machine.toolward(&words).ends(4);
    told(
        &ended,
        "unauthorised",
        "workspace:/notes",
        "toolward show notes.append --policy",
    );
    let explain =
        "show notes.append --policy --bundle notes-append.toolbundle --trust-key example.pub.pem";
    let shown = machine
        .toolward(&format!("{explain} --policy-file policy.toml"))
        .ends(0)
        .stdout;
    assert!(shown.contains(gone.to_str().unwrap()), "{shown}");
}

#[test]
fn a_tilde_is_not_a_directory() {
    let machine = machine();
    machine.write("policy.toml", granting(&machine, "~/notes"));
    let words = format!("{CALL} --policy-file policy.toml --set note=a --set text=a");
    let ended = machine.toolward(&words).ends(2);
    told(
        &ended,
        "policy-workspace",
        "~/notes",
        "write the whole path",
    );
}
