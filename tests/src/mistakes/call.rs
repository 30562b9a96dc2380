//! Mistakes in calls, and in the flags for keys.

use super::{BUNDLE, hints, machine, told};
use crate::support::{Ended, Machine};

#[track_caller]
fn call(words: &str, exit: i32) -> Ended {
    let words = format!("call text.stats {BUNDLE} {words}");
    machine().toolward(&words).ends(exit)
}

/// A call with one more argument, which may have spaces.
#[track_caller]
fn call_with(argument: &str, exit: i32) -> Ended {
    let machine = machine();
    let run = machine.toolward(&format!("call text.stats {BUNDLE} --input"));
    run.arg(argument).ends(exit)
}

#[test]
fn a_tool_id_with_a_slip_gets_the_near_one() {
    let machine = machine();
    for command in [
        "call",
        "show",
        "show --drivers",
        "show --as mcp",
        "show --policy",
        "policy suggest",
    ] {
        let ended = machine
            .toolward(&format!("{command} text.stat {BUNDLE}"))
            .ends(1);
        let code = if command == "call" {
            "not_found"
        } else {
            "tool-missing"
        };
        told(&ended, code, "`text.stat`", "did you mean `text.stats`?");
    }
    let other = machine
        .toolward(&format!("call weather.now {BUNDLE}"))
        .ends(1);
    told(
        &other,
        "not_found",
        "`weather.now`",
        "the tools are: text.stats@1",
    );
}

#[test]
fn where_nothing_is_installed_one_hears_how_to_install() {
    let ended = Machine::new()
        .toolward("call text.stats --set text=a")
        .ends(2);
    told(
        &ended,
        "bundle-missing",
        "none is installed",
        "toolward install SOURCE",
    );
}

#[test]
fn a_bundle_that_is_not_there_is_named() {
    let machine = machine();
    for words in [
        "call text.stats --bundle nope.toolbundle --trust-key example.pub.pem",
        "call text.stats --bundle nope.toolbundle",
        "verify nope.toolbundle",
    ] {
        let ended = machine.toolward(words).ends(2);
        told(
            &ended,
            "file-unreadable",
            "nope.toolbundle",
            "name a file that is there",
        );
    }
}

#[test]
fn who_trusts_nobody_hears_of_trust_add() {
    let words = "call text.stats --bundle text-stats.toolbundle --set text=a";
    let ended = machine().toolward(words).ends(2);
    told(
        &ended,
        "nobody-trusted",
        "no publisher is trusted",
        "toolward trust add",
    );
    assert!(
        hints(&ended)
            .iter()
            .any(|hint| hint.contains("--trust-key")),
        "{ended}"
    );
}

#[test]
fn a_file_that_is_no_bundle_is_none_for_who_trusts_nobody() {
    let machine = machine();
    machine.write("README.md", "# Not a bundle\n");
    let ended = machine.toolward("verify README.md").ends(3);
    told(
        &ended,
        "archive-format",
        "zstd",
        "name a bundle's directory",
    );
    // A file that is a bundle needs a trusted publisher.
    let ended = machine.toolward("verify text-stats.toolbundle").ends(2);
    told(
        &ended,
        "nobody-trusted",
        "no publisher is trusted",
        "toolward trust add",
    );
}

#[test]
fn a_private_key_is_not_what_bundles_are_verified_with() {
    let machine = machine();
    machine.toolward("publisher keys new --out me.pem").ends(0);
    let ended = machine
        .toolward("verify text-stats.toolbundle --trust-key me.pem")
        .ends(2);
    told(
        &ended,
        "key-invalid",
        "me.pem",
        "name the public key's file",
    );
}

#[test]
fn a_text_without_a_key_is_called_that() {
    let machine = machine();
    machine.write("README.md", "# Not a key\n");
    let ended = machine
        .toolward("verify text-stats.toolbundle --trust-key README.md")
        .ends(2);
    told(
        &ended,
        "key-invalid",
        "README.md",
        "name the publisher's public key file",
    );
    assert!(!ended.stderr.contains("ASN.1"), "{ended}");
}

#[test]
fn another_publishers_key_sends_one_to_the_publisher() {
    let machine = machine();
    machine.toolward("publisher keys new --out me.pem").ends(0);
    let ended = machine
        .toolward("verify text-stats.toolbundle --trust-key me.pub.pem")
        .ends(3);
    told(
        &ended,
        "unknown-publisher",
        "manifest.dsse.json",
        "from the publisher itself",
    );
}

#[test]
fn a_setting_of_another_type_says_which_type() {
    let ended = call("--set text=a --set top=three", 2);
    told(
        &ended,
        "setting-invalid",
        "top: expected integer",
        "--set top=VALUE with a value of type integer",
    );
}

#[test]
fn an_unknown_property_gets_the_near_one_and_the_list() {
    for ended in [
        call("--set text=a --set tops=3", 1),
        call_with(r#"{"text": "a", "tops": 3}"#, 1),
    ] {
        told(
            &ended,
            "input_invalid",
            "did you mean `top`?",
            "`text` (string, required), `top` (integer)",
        );
        assert!(
            hints(&ended)
                .iter()
                .any(|hint| hint.contains("toolward show text.stats")),
            "{ended}"
        );
    }
    let ended = call("--set text=a --set colour=red", 1);
    told(
        &ended,
        "input_invalid",
        "'colour' was unexpected",
        "the input takes `text` (string, required), `top` (integer)",
    );
    // Each input is named once, in words instead of a schema path.
    assert_eq!(
        ended.stderr.matches("`min_word_length`").count(),
        1,
        "{ended}"
    );
    assert!(!ended.stderr.contains("schema_path"), "{ended}");
}

#[test]
fn a_missing_property_is_named_with_its_type() {
    let ended = call("--set top=3", 1);
    told(
        &ended,
        "input_invalid",
        "\"text\" is a required property",
        "`text` (string, required)",
    );
}

#[test]
fn a_value_out_of_range_is_named_with_the_range() {
    let ended = call("--set text=a --set top=100000", 1);
    told(
        &ended,
        "input_invalid",
        "`/top`: 100000 is greater than the maximum of 1000",
        "the input takes",
    );
}

#[test]
fn all_that_is_wrong_with_an_input_is_said_at_once() {
    let ended = call_with(r#"{"top": 100000, "tops": 3}"#, 1);
    for wrong in [
        "`/top`: 100000",
        "\"text\" is a required property",
        "'tops' was unexpected",
    ] {
        told(&ended, "input_invalid", wrong, "the input takes");
    }
}

#[test]
fn an_input_that_is_not_json_says_how_to_write_it() {
    let ended = call_with("{text:a}", 1);
    told(
        &ended,
        "input_invalid",
        "line 1, column 2",
        "--input '{\"KEY\": \"TEXT\"}'",
    );
    let machine = machine();
    let both = format!("call text.stats {BUNDLE} --set top=3 --input {{text:a}}");
    told(
        &machine.toolward(&both).ends(2),
        "json-syntax",
        "--input: line 1, column 2",
        "--input '{\"KEY\": \"TEXT\"}'",
    );
}

#[test]
fn a_setting_without_a_value_says_how_to_give_one() {
    let ended = call("--set text", 2);
    told(
        &ended,
        "setting-invalid",
        "--set \"text\"",
        "write --set KEY=VALUE",
    );
}

#[test]
fn a_setting_without_its_flag_gets_the_flag() {
    let ended = call("text=Ada", 2);
    told(
        &ended,
        "setting-invalid",
        "found \"text=Ada\"",
        "write --set text=Ada",
    );
    let ended = machine()
        .toolward(&format!("call text.stats {BUNDLE}"))
        .arg(r#"{"text":"a"}"#)
        .ends(2);
    told(
        &ended,
        "setting-invalid",
        "expected flags",
        r#"write --input '{"text":"a"}'"#,
    );
    let ended = call("Ada", 2);
    told(
        &ended,
        "setting-invalid",
        "found \"Ada\"",
        "toolward show text.stats",
    );
}

#[test]
fn an_unknown_command_or_flag_gets_the_near_one() {
    let machine = machine();
    for (words, near) in [
        ("cal text.stats", "'call'"),
        ("call text.stats --bundel x", "'--bundle'"),
        ("serve --htpp 127.0.0.1:0", "'--http'"),
    ] {
        let ended = machine.toolward(words).ends(2);
        assert!(
            ended.stdout.is_empty() && ended.stderr.contains(near),
            "{ended}"
        );
    }
}

#[test]
fn wrong_usage_is_json_for_who_asked_for_json() {
    let machine = machine();
    for (words, message, next) in [
        ("call text.stats --bundel x --json", "--bundel", "--bundle"),
        ("--json bogus", "bogus", "--help"),
        ("verify --json", "<BUNDLE>", "Usage: toolward verify"),
        ("serve --http localhost --json", "localhost", "--help"),
        ("publisher keys --json", "", "Usage"),
    ] {
        let ended = machine.toolward(words).ends(2);
        let error = &ended.json();
        assert_eq!(error["ok"], false, "{ended}");
        let error = &error["error"];
        assert_eq!(error["code"], "usage-invalid", "{ended}");
        assert!(
            error["message"].as_str().unwrap().contains(message),
            "{ended}"
        );
        let said = error.to_string();
        assert!(said.contains(next), "no {next:?} in {ended}");
        assert_eq!(ended.stderr, "", "{ended}");
    }
    // An argument after two dashes is not a flag.
    let ended = machine.toolward("bogus -- --json").ends(2);
    assert!(
        ended.stdout.is_empty() && ended.stderr.contains("bogus"),
        "{ended}"
    );
}

#[test]
fn a_driver_that_traps_is_named_and_the_call_fails() {
    let machine = Machine::new();
    crate::hostile::add(&machine, "b");
    let ended = machine
        .toolward("call hostile.run --dev b --set do=trap")
        .ends(1);
    ended.says("upstream_error");
    assert!(
        hints(&ended).iter().any(|hint| hint.contains("publisher")),
        "{ended}"
    );
}
