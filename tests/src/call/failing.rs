//! Calls that fail: the exit code, the error's code, the next step.

use serde_json::json;

use super::{CALL, text_stats};
use crate::support::{Machine, tree};

#[test]
fn a_tool_that_is_not_there_is_not_found() {
    let machine = text_stats();
    let words = "call text.nothing --bundle text-stats.toolbundle --trust-key example.pub.pem";
    let ended = machine.toolward(&format!("{words} --input {{}}")).ends(1);
    ended.says("not_found");
    assert!(ended.stderr.contains("text.nothing"), "{ended}");
    let envelope = machine
        .toolward(&format!("{words} --input {{}} --json"))
        .ends(1)
        .json();
    assert_eq!(envelope["ok"], false);
    assert_eq!(envelope["error"]["code"], "not_found");
    assert_eq!(envelope["error"]["class"], "unknown_tool");
    assert_eq!(envelope["meta"]["attempts"], 0);
}

#[test]
fn input_that_misses_the_schema_never_reaches_the_driver() {
    let machine = text_stats();
    for (input, place) in [
        (json!({ "text": 7 }), "/text"),
        (json!({}), "text"),
        (json!({ "text": "a", "colour": "red" }), "colour"),
        (json!({ "text": "a", "top": -1 }), "/top"),
        (json!([]), "object"),
    ] {
        let call = |flag: &str| {
            machine
                .toolward(&format!("{CALL} {flag} --input"))
                .arg(input.to_string())
        };
        let ended = call("").ends(1);
        ended.says("input_invalid");
        assert!(ended.stderr.contains(place), "{place} in {ended}");
        let envelope = call("--json").ends(1).json();
        assert_eq!(envelope["error"]["code"], "input_invalid", "{envelope}");
        assert_eq!(envelope["error"]["class"], "schema_validation_failed");
        assert_eq!(envelope["error"]["origin"], "host");
        assert_eq!(envelope["meta"]["attempts"], 0, "{envelope}");
        assert_eq!(envelope["meta"]["fuel"], 0, "{envelope}");
    }
}

#[test]
fn input_that_two_parsers_could_read_differently_is_refused() {
    let machine = text_stats();
    let deep = format!(r#"{{"text": {}{}}}"#, "[".repeat(100), "]".repeat(100));
    for input in [
        r#"{"text": "a", "text": "b"}"#,
        r#"{"text": "a"} {}"#,
        r#"{"text": "a",}"#,
        r#"{"text": "a", "top": 9007199254740993}"#,
        "",
        "text",
        &deep,
    ] {
        let envelope = machine
            .toolward(&format!("{CALL} --json --input"))
            .arg(input)
            .ends(1)
            .json();
        assert_eq!(envelope["error"]["code"], "input_invalid", "{envelope}");
        assert_eq!(envelope["meta"]["attempts"], 0, "{envelope}");
    }
}

#[test]
fn an_input_file_that_is_not_there_is_wrong_usage() {
    let machine = text_stats();
    for words in ["--input @missing.json", "--set text=@missing.txt"] {
        let ended = machine.toolward(&format!("{CALL} {words}")).ends(2);
        assert!(ended.stderr.contains("missing."), "{ended}");
        ended.says("file-unreadable");
    }
}

#[test]
fn a_bundle_that_is_not_there_is_wrong_usage() {
    let machine = text_stats();
    let words = "call text.stats --bundle gone.toolbundle --trust-key example.pub.pem";
    let ended = machine.toolward(words).ends(2);
    assert!(ended.stderr.contains("gone.toolbundle"), "{ended}");
    ended.says("file-unreadable");
}

#[test]
fn without_anybody_trusted_nothing_is_called() {
    let machine = Machine::with_example("text-stats").with_own_cache();
    let before = tree(&machine.home());
    let words = "call text.stats --bundle text-stats.toolbundle --set text=a";
    machine.toolward(words).ends(2).says("nobody-trusted");
    assert_eq!(tree(&machine.home()), before);
}

#[test]
fn an_error_of_the_tools_own_is_the_tools() {
    let machine = Machine::with_example("json-query");
    let words = "call json.query --bundle json-query.toolbundle --trust-key example.pub.pem";
    let ended = machine.toolward(&format!("{words} --set query=.[")).ends(1);
    assert!(ended.stderr.contains("json:query_invalid"), "{ended}");
    let envelope = machine
        .toolward(&format!("{words} --set query=.[ --json"))
        .ends(1)
        .json();
    assert_eq!(envelope["error"]["code"], "json:query_invalid");
    assert_eq!(envelope["error"]["origin"], "driver");
    assert_eq!(envelope["meta"]["attempts"], 1);
}

#[test]
fn input_and_bundle_are_needed() {
    let machine = text_stats();
    for words in ["call", "call text.stats", "call text.stats --input {}"] {
        let ended = machine.toolward(words).ends(2);
        assert_eq!(ended.stdout, "", "{ended}");
        assert!(ended.stderr.contains("--"), "{ended}");
    }
}

#[test]
fn input_beyond_the_limit_is_not_parsed() {
    let machine = text_stats();
    machine.write("large.txt", "x".repeat(3 << 20));
    let ended = machine
        .toolward(&format!("{CALL} --set text=@large.txt"))
        .ends(1);
    ended.says("input_invalid");
    assert!(ended.stderr.contains("1048576"), "{ended}");
    assert!(ended.stderr.contains("input_bytes"), "{ended}");
}
