//! `show` and its alternatives: a call without input, and `inspect` and `list` for installed
//! bundles.

use super::{BUNDLE, machine};
use crate::installing::installed;
use crate::support::Machine;

#[test]
fn a_tool_is_shown_with_all_that_one_asks_of_it() {
    let (machine, _) = installed();
    let shown = machine.toolward("show text.stats").ends(0).stdout;
    for part in [
        "text.stats@1 1.0.0",
        "publisher  acme",
        "state      allowed",
        "text: string, required",
        "top: integer",
        "words: integer, required",
        "declares   nothing",
        "approval   ",
        "bundle     text.stats-bundle 1.1.0 (sequence 1)",
        "b.toolbundle",
        "installed  2",
        "verified   2",
    ] {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
    let value = machine.toolward("show text.stats@1 --json").ends(0).json();
    assert_eq!(value["ok"], true);
    let tool = &value["tools"][0];
    assert_eq!(tool["tool"], "text.stats@1");
    assert_eq!(tool["state"], "allowed");
    assert_eq!(tool["bundle"], "text.stats-bundle");
    let mut inputs = tool["inputs"].as_array().unwrap().iter();
    let text = inputs.find(|input| input["name"] == "text").unwrap();
    assert_eq!(text["type"], "string");
    assert_eq!(text["required"], true);
    let listed = machine.toolward("list --json").ends(0).json();
    for key in ["digest", "source", "sequence", "publisher", "installed"] {
        assert_eq!(tool[key], listed[key], "{key}");
    }
}

#[test]
fn a_tool_that_lacks_a_grant_is_shown_as_blocked() {
    let machine = Machine::with_example("notes-append");
    let words = "show notes.append --bundle notes-append.toolbundle --trust-key example.pub.pem";
    let shown = machine.toolward(words).ends(0).stdout;
    assert!(
        shown.contains("state      BLOCKED: workspace:/notes"),
        "{shown}"
    );
    assert!(shown.contains("declares   workspace:/notes"), "{shown}");
    assert!(shown.contains("grants     nothing"), "{shown}");
}

#[test]
fn a_call_with_nothing_shows_the_tool() {
    let ended = machine()
        .toolward(&format!("call text.stats {BUNDLE}"))
        .ends(1);
    ended.says("input_invalid");
    assert!(ended.stderr.contains("text: string, required"), "{ended}");
    // A call with some input already knows the tool.
    let ended = machine()
        .toolward(&format!("call text.stats {BUNDLE} --set top=3"))
        .ends(1);
    assert!(!ended.stderr.contains("text: string, required"), "{ended}");
}

#[test]
fn what_is_installed_is_inspected_by_its_id_or_its_tools() {
    let (machine, _) = installed();
    for name in ["text.stats-bundle", "text.stats", "text.stats@1"] {
        let value = machine
            .toolward(&format!("inspect {name} --json"))
            .ends(0)
            .json();
        assert_eq!(value["verified"], true, "{name}");
        assert_eq!(value["manifest"]["id"], "text.stats-bundle");
    }
    machine.toolward("inspect text.stat").ends(2);
}

#[test]
fn tools_are_listed_below_their_bundles() {
    let (machine, _) = installed();
    let shown = machine.toolward("list").ends(0).stdout;
    assert!(shown.contains("\n  text.stats@1  allowed\n"), "{shown}");
    let value = machine.toolward("list --json").ends(0).json();
    assert_eq!(value["tools"][0]["tool"], "text.stats@1");
    assert_eq!(value["tools"][0]["state"], "allowed");
    machine.configure("[[deny]]\npublisher = \"acme\"\n");
    let shown = machine.toolward("list").ends(0).stdout;
    assert!(
        shown.contains("text.stats@1  BLOCKED: denied by"),
        "{shown}"
    );
    machine.configure("[[grants]]\n");
    let ended = machine.toolward("list").ends(2);
    assert!(
        ended.stderr.contains("error[policy-unknown-key]"),
        "{ended}"
    );
    assert!(ended.stdout.contains("text.stats@1  unknown"), "{ended}");
}
