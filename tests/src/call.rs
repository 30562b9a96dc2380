//! `toolward call`: how it reads its input, and what it writes to which stream.

mod beside;
mod cache;
mod dev;
mod failing;
mod files;
mod flags;

use serde_json::{Value, json};

use crate::support::Machine;

/// An input of `text.stats`.
const TEXT: &str = "The cat sat. The dog ran away!";

fn text_stats() -> Machine {
    Machine::with_example("text-stats")
}

const CALL: &str = "call text.stats --bundle text-stats.toolbundle --trust-key example.pub.pem";

#[test]
fn the_value_is_all_that_standard_output_gets() {
    let machine = text_stats();
    let ended = machine
        .toolward(CALL)
        .arg("--input")
        .arg(json!({ "text": TEXT, "top": 2 }).to_string())
        .ends(0);
    // The output of the contract's first example.
    let expected = r#"{
        "bytes": 30, "characters": 30, "characters_without_spaces": 24,
        "words": 7, "unique_words": 6, "sentences": 2, "paragraphs": 1,
        "lines": 1, "longest_line": 30, "longest_word": "away",
        "average_word_length": 3.14, "average_sentence_length": 3.5,
        "reading_seconds": 2,
        "most_frequent": [{ "word": "the", "count": 2 }, { "word": "away", "count": 1 }]
    }"#;
    let expected: Value = serde_json::from_str(expected).unwrap();
    assert_eq!(ended.json(), expected);
    ended.warns("this is the example key");
}

#[test]
fn every_form_of_the_input_gives_the_same_value() {
    let machine = text_stats();
    let input = json!({ "text": TEXT, "top": 2 }).to_string();
    machine.write("input.json", &input);
    machine.write("text.txt", TEXT);
    let expected = machine
        .toolward(CALL)
        .arg("--input")
        .arg(&input)
        .ends(0)
        .json();
    let call = |words: &str| machine.toolward(&format!("{CALL} {words}"));
    for run in [
        call("--input @input.json"),
        call("--input -").stdin(input),
        call("--set text=@text.txt --set top=2"),
        call("--set top=2 --set").arg(format!("text={TEXT}")),
    ] {
        assert_eq!(run.ends(0).json(), expected);
    }
}

#[test]
fn a_field_that_is_set_is_added_to_the_input() {
    let machine = text_stats();
    let ended = machine
        .toolward(&format!("{CALL} --set top=1 --input"))
        .arg(json!({ "text": TEXT }).to_string())
        .ends(0);
    assert_eq!(
        ended.json()["most_frequent"],
        json!([{ "word": "the", "count": 2 }])
    );
}

#[test]
fn the_envelope_says_what_was_called_and_what_it_took() {
    let machine = text_stats();
    let envelope = machine
        .toolward(&format!("{CALL} --json --input"))
        .arg(json!({ "text": TEXT }).to_string())
        .ends(0)
        .json();
    let bundle = machine
        .toolward("verify text-stats.toolbundle --trust-key example.pub.pem --json")
        .ends(0)
        .json();
    assert_eq!(envelope["ok"], true);
    assert_eq!(envelope["value"]["words"], 7);
    let meta = &envelope["meta"];
    assert_eq!(meta["tool"], "text.stats@1.0.0");
    assert_eq!(meta["driver"], "text-stats");
    assert_eq!(meta["bundle"], bundle["manifest_digest"]);
    assert_eq!(meta["publisher"], bundle["publisher"]);
    assert_eq!(meta["attempts"], 1);
    for taken in ["milliseconds", "fuel", "peak_memory"] {
        assert!(meta[taken].as_f64().unwrap() > 0.0, "{taken} of {meta}");
    }
    // A UUIDv7 (RFC 9562) has its version in the fifteenth character.
    let invocation = meta["invocation"].as_str().unwrap();
    assert_eq!((invocation.len(), invocation.as_bytes()[14]), (36, b'7'));
}

#[test]
fn two_calls_have_two_ids() {
    let machine = text_stats();
    let id = || {
        let run = machine.toolward(&format!("{CALL} --json --set text=a"));
        run.ends(0).json()["meta"]["invocation"].clone()
    };
    assert_ne!(id(), id());
}

#[test]
fn an_unpacked_bundle_is_called_as_its_archive_is() {
    let machine = text_stats();
    crate::support::Signed::of("text-stats").write_directory(&machine.path("unpacked"));
    let call = |bundle: &str| -> Value {
        let words = format!(
            "call text.stats --bundle {bundle} --trust-key example.pub.pem --json --set text=a"
        );
        machine.toolward(&words).ends(0).json()
    };
    let (archive, directory) = (call("text-stats.toolbundle"), call("unpacked"));
    assert_eq!(archive["value"], directory["value"]);
    assert_eq!(archive["meta"]["bundle"], directory["meta"]["bundle"]);
}

#[test]
fn a_reader_that_has_gone_is_no_failure() {
    use std::process::Stdio;
    let machine = text_stats();
    let mut command = machine
        .toolward(&format!("{CALL} --set text=a"))
        .into_command();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ended = command
        .stdin(Stdio::null())
        .stdout(writer)
        .output()
        .unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(0), "{stderr}");
    assert!(
        !stderr.contains("error") && !stderr.contains("panic"),
        "{stderr}"
    );
}
