//! `ledger export --cassette` and `serve --replay`: a server that answers from a record.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use toolward_ledger::payload::{Keep, PayloadKind};
use toolward_ledger::record::{Call, Ended, Event, Hex, Id, Part, Tool};
use toolward_ledger::{Durability, Entry, Recorder as _, Writer};

use super::open;
use crate::ledger::{call, invocation, outcome, place};
use crate::mcp::raw::Raw;
use crate::support::Machine;

const BUNDLE: &str = "--bundle text-stats.toolbundle --trust-key example.pub.pem";

/// A machine with the example, and the parts of a record of its tool's calls.
fn machine() -> (Machine, Call, Value) {
    let machine = Machine::with_example("text-stats");
    let live = machine.toolward(&format!("call text.stats {BUNDLE} --json --set text=one"));
    let live = live.ends(0).json();
    let publisher = live["meta"]["publisher"]
        .as_str()
        .unwrap()
        .replace(':', "_");
    let tool = Part {
        bundle: Hex([1; 32]),
        id: Tool::parse(live["meta"]["tool"].as_str().unwrap()).unwrap(),
        publisher: Id::parse(&publisher).unwrap(),
    };
    let recorded = Call {
        tool: Some(tool),
        ..call()
    };
    (machine, recorded, live["value"].clone())
}

fn record(
    writer: &Writer,
    (number, principal): (u8, &str),
    of: &Call,
    input: &Value,
    output: &Value,
) {
    let event = Event::Ended(Box::new(Ended {
        call: Some(of.clone()),
        invocation: invocation(number),
        outcome: outcome(None),
    }));
    let entry = Entry::new(event).principal(principal);
    let entry = entry.payload(PayloadKind::Input, input.to_string().into_bytes());
    let output = json!({ "value": output }).to_string();
    let entry = entry.payload(PayloadKind::Output, output.into_bytes());
    writer.append(entry, Durability::Disk).wait().unwrap();
}

/// The example's output with another number of words, which no driver would return.
fn words(of: &Value, words: u64) -> Value {
    let mut output = of.clone();
    output["words"] = json!(words);
    output
}

/// A cassette `c` of two calls with one input.
pub(crate) fn recorded() -> Machine {
    let (machine, call, output) = machine();
    let writer = open(&machine, Keep::All);
    let input = json!({ "text": "one" });
    for number in [1, 2] {
        let output = words(&output, 900 + u64::from(number));
        record(&writer, (number, "alice"), &call, &input, &output);
    }
    writer.close().unwrap();
    machine.toolward("ledger export --cassette c").ends(0);
    machine
}

pub(crate) fn serve(machine: &Machine, flags: &str) -> Raw {
    let words = format!("serve {BUNDLE} --replay c {flags}");
    Raw::open(machine.toolward(&words).into_command(), json!({}))
}

/// Returns the result of a tool call with this text.
fn ask(server: &mut Raw, id: u64, text: &str) -> Value {
    server.call(id, "text_stats", &json!({ "text": text }));
    server.answer(id)["result"].clone()
}

#[test]
fn a_server_answers_from_a_cassette_and_says_so_to_the_model() {
    let machine = recorded();
    let mode = fs::metadata(machine.path("c"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut server = serve(&machine, "");
    for words in [901, 902] {
        let result = ask(&mut server, words, "one");
        assert_eq!(result["structuredContent"]["words"], words, "{result}");
        let replayed = &result["_meta"]["toolward/call"]["replayed"];
        assert_eq!(
            replayed["invocation"],
            invocation(u8::try_from(words - 900).unwrap()).to_string()
        );
        let said = result["content"].as_array().unwrap().last().unwrap();
        let said = said["text"].as_str().unwrap();
        assert!(said.contains("replayed from a record"), "{said}");
    }
    let none = ask(&mut server, 3, "one");
    assert_eq!(none["isError"], true);
    assert_eq!(
        none["_meta"]["toolward/error"]["code"], "no_route",
        "{none}"
    );
    // The caller learns only about the record of its own principal.
    let other = ask(&mut server, 4, "two");
    assert_eq!(
        other["_meta"]["toolward/error"]["cause"]["left"], 0,
        "{other}"
    );
}

#[test]
fn a_loose_server_takes_the_next_call_of_the_tool() {
    let machine = recorded();
    let mut server = serve(&machine, "--loose");
    let result = ask(&mut server, 1, "something else");
    assert_eq!(result["structuredContent"]["words"], 901, "{result}");
    let replayed = &result["_meta"]["toolward/call"]["replayed"];
    assert_eq!(replayed["differs"], json!(["text"]));
    let said = result["content"].as_array().unwrap().last().unwrap();
    assert!(
        said["text"].as_str().unwrap().contains("another input"),
        "{result}"
    );
}

#[test]
fn a_cassette_is_served_under_a_key_that_the_operator_names_or_knows() {
    let machine = recorded();
    let key = machine.toolward("ledger info --json").ends(0).json();
    let key = key["key"].as_str().unwrap().to_owned();
    // Another machine has no such ledger.
    let other = Machine::with_example("text-stats");
    fs::copy(machine.path("c"), other.path("c")).unwrap();
    let serve_words = format!("serve {BUNDLE} --replay c");
    other.toolward(&serve_words).ends(1);
    for flags in [format!("--cassette-key {key}"), "--unverified".to_owned()] {
        let mut server = serve(&other, &flags);
        let result = ask(&mut server, 1, "one");
        assert_eq!(
            result["structuredContent"]["words"], 901,
            "{flags}: {result}"
        );
    }
    // The other machine has its own ledger, and the cassette comes from another one.
    open(&other, Keep::All).close().unwrap();
    other.toolward(&serve_words).ends(3).says("cassette-key");
    // An unverified cassette is not accepted if other people are served.
    other
        .toolward(&format!(
            "{serve_words} --unverified --http 127.0.0.1:0 --no-token"
        ))
        .ends(2);
    other
        .toolward(&format!("serve {BUNDLE} --unverified"))
        .ends(2);
    // One byte of the cassette is changed.
    let text = fs::read_to_string(machine.path("c")).unwrap();
    machine.write("c", text.replace("\"us\\\":5", "\"us\\\":6"));
    machine
        .toolward(&serve_words)
        .ends(3)
        .says("cassette-proof");
}

#[test]
fn over_http_principals_get_their_own_calls_only_and_one_without_a_name_none() {
    let machine = recorded();
    // All its calls are alice's, and the only caller here is `local`.
    let served = format!("serve {BUNDLE} --replay c --http 127.0.0.1:0 --no-token");
    machine
        .toolward("ledger erase --principal alice --yes")
        .ends(0);
    machine.toolward(&served).ends(2).says("cassette-unnamed");
}

#[test]
fn an_export_holds_one_principal_and_overwrites_nothing() {
    let (machine, call, output) = machine();
    let writer = open(&machine, Keep::All);
    for (number, name) in [(1, "alice"), (2, "bob")] {
        let input = json!({ "text": name });
        record(&writer, (number, name), &call, &input, &output);
    }
    writer.close().unwrap();
    let export = |words: &str| machine.toolward(&format!("ledger export --cassette {words}"));
    export("c").ends(1).says("cassette-principals");
    assert!(!machine.path("c").exists());
    export("c --principal eve").ends(1).says("ledger-no-row");
    let one = export("c --principal bob --json").ends(0).json();
    assert_eq!(one["calls"], 1);
    export("c --principal bob").ends(1).says("output-exists");
    assert_eq!(export("all --all --json").ends(0).json()["calls"], 2);
    // Rows 0 to 2 belong to the live call, whose input was not stored.
    assert_eq!(export("rows --rows ..5 --json").ends(0).json()["calls"], 1);
    assert!(place(&machine).exists());
    // The command reports what a cassette lacks.
    let poor = Machine::new();
    let writer = open(&poor, Keep::Asked);
    record(&writer, (1, "alice"), &call, &json!({}), &output);
    writer.close().unwrap();
    let said = poor.toolward("ledger export --cassette c").ends(0);
    assert!(said.stderr.contains("keep = \"all\""), "{said}");
}
