//! Tools and calls as records of Agent Tool 0.2.0, made by the real command: each object of a
//! script of calls matches its schema.

#[path = "../../adapters/tests/suite/objects.rs"]
mod objects;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::mcp::raw::Raw;
use crate::support::{Ended, Machine, Session, copy, root};
use objects::{all, are_published, are_valid, objects};

const TRUST: &str = "--trust-key example.pub.pem";

/// A machine with the example `notes.append` under work, whose calls a person approves, and with
/// the hostile driver next to signed examples.
fn machine() -> Machine {
    let machine = Machine::with_example("text-stats");
    machine.add_example("kv-counter");
    crate::hostile::add(&machine, "hostile");
    for part in ["bundle.toml", "tools", "drivers"] {
        let from = root().join("examples/notes-append").join(part);
        copy(&from, &machine.path(&format!("notes-append/{part}")));
    }
    std::fs::create_dir(machine.path("my-notes")).unwrap();
    let directory = machine.path("notes-append").canonicalize().unwrap();
    let publisher = format!("dev:{}", directory.display());
    machine.write(
        "notes.toml",
        format!(
            "[[workspace]]\npath = \"/notes\"\ndirectory = {:?}\n\n[[grant]]\npublisher = \
             {publisher:?}\ntool = \"notes.append\"\nmutates = [\"workspace:/notes\"]\n",
            machine.path("my-notes")
        ),
    );
    machine
}

const STATS: &str = "call text.stats --bundle text-stats.toolbundle";
const NOTES: &str = "call notes.append --dev notes-append --policy-file notes.toml \
                     --set note=journal --set text=Tea";
const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const HOSTILE: &str = "call hostile.run --dev hostile";

/// The records of one call.
#[track_caller]
fn called(machine: &Machine, words: &str, input: Option<&Value>, exit: i32) -> Value {
    let mut run = machine.toolward(&format!("{words} --format agent-tool"));
    if let Some(input) = input {
        run = run.arg("--input").arg(input.to_string());
    }
    run.ends(exit).json()
}

/// A call that a person approves.
fn approved(machine: &Machine) -> Value {
    let command = machine.toolward(&format!("{NOTES} --format agent-tool"));
    let mut session = Session::start(command.into_command(), 100, "");
    session.sees("? [y/N] ");
    session.types("y\r");
    let left = session.leaves();
    assert_eq!(left.code, Some(0), "{left:?}");
    serde_json::from_str(&left.stdout).unwrap()
}

/// A search in a catalogue whose tools are loaded later, and a call to a tool before it is loaded.
fn deferred(machine: &Machine) -> [Value; 2] {
    let words = format!(
        "serve --bundle text-stats.toolbundle --bundle kv-counter.toolbundle {TRUST} \
         --defer-above 0"
    );
    let mut raw = Raw::open(machine.toolward(&words).into_command(), json!({}));
    let wanted = json!({ "names": ["text.stats", "kv.counter"] });
    raw.call(1, "search_tools", &wanted);
    let found = raw.answer(1)["result"]["structuredContent"].clone();
    raw.call(2, "text_stats", &json!({ "text": "a" }));
    let refused = raw.answer(2)["result"]["_meta"]["toolward/error"].clone();
    [found, refused]
}

/// Returns the output of `serve --events` for calls that end in each way.
fn told(machine: &Machine) -> Vec<(&'static str, Value)> {
    let words = "serve --dev hostile --events events.jsonl";
    let mut raw = Raw::open(machine.toolward(words).into_command(), json!({}));
    for (id, input) in [
        (1, json!({ "do": "progress", "n": 2 })),
        (2, json!({ "do": "trap" })),
        (3, json!({ "do": 7 })),
    ] {
        let meta = json!({ "tool_call_id": "call_1", "traceparent": TRACE });
        let params = json!({ "name": "hostile_run", "arguments": input, "_meta": meta });
        raw.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
        raw.answer(id);
    }
    raw.call(4, "no_tool", &json!({}));
    raw.answer(4);
    raw.said();
    let text = machine.text("events.jsonl");
    let lines = text.lines();
    let lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let events: Vec<_> = lines.map(|event| ("tool_event", event)).collect();
    assert!(events.len() > 20, "{text}");
    let trace = json!([{ "trace_id": TRACE.get(3..35), "span_id": TRACE.get(36..52) }]);
    let (_, first) = &events[0];
    assert_eq!(first["native_call_id"], "1");
    assert_eq!(first["tool_call_id"], "call_1");
    assert_eq!(first["trace_refs"], trace);
    events
}

/// Returns the status, class and behaviour of a call, with `-` for a missing one.
fn ending(records: &Value) -> [&str; 3] {
    [
        &records["tool_invocation"]["status"],
        &records["tool_error"]["error_class"],
        &records["tool_permission_decision"]["behavior"],
    ]
    .map(|value| value.as_str().unwrap_or("-"))
}

#[test]
fn a_script_of_calls_makes_valid_records_of_every_object() {
    let machine = machine();
    let stats = format!("{STATS} {TRUST}");
    let text = json!({ "text": "To be or not to be." });
    let steps = json!({ "do": "progress", "n": 3 });
    let late = json!({ "do": "sleep", "n": 600_000 });
    let short = format!("{HOSTILE} --timeout 200");
    let missing = format!("call text.none --bundle text-stats.toolbundle {TRUST}");
    let blocked = format!("call kv.counter --bundle kv-counter.toolbundle {TRUST}");
    let script = [
        (
            called(&machine, &stats, Some(&text), 0),
            ["succeeded", "-", "allow"],
        ),
        (
            called(&machine, HOSTILE, Some(&steps), 0),
            ["succeeded", "-", "allow"],
        ),
        (
            called(
                &machine,
                &blocked,
                Some(&json!({ "action": "get", "counter": "a" })),
                4,
            ),
            ["blocked", "capability_gap", "deny"],
        ),
        (
            called(&machine, NOTES, None, 4),
            ["denied", "approval_rejected", "deny"],
        ),
        (
            called(&machine, &missing, Some(&text), 1),
            ["failed", "unknown_tool", "-"],
        ),
        (
            called(&machine, &stats, Some(&json!({ "text": 7 })), 1),
            ["schema_parse_failed", "schema_validation_failed", "-"],
        ),
        (
            called(&machine, &short, Some(&late), 1),
            ["timed_out", "timeout", "allow"],
        ),
        (approved(&machine), ["succeeded", "-", "allow"]),
    ];
    let mut found = Vec::new();
    for (records, expected) in &script {
        assert_eq!(ending(records), *expected, "{records:#}");
        found.extend(objects(records));
    }
    assert_eq!(script[1].0["tool_progress"].as_array().unwrap().len(), 3);
    let source = |records: &Value| records["tool_permission_decision"]["source"].clone();
    assert_eq!(source(&script[3].0), "nobody");
    assert_eq!(source(&script[7].0), "person");
    assert_eq!(machine.text("my-notes/journal.md"), "Tea\n");

    let [references, refused] = deferred(&machine);
    assert_eq!(refused["class"], "schema_not_loaded");
    for list in ["matches", "blocked_tools"] {
        let several = json!({ "deferred_tools": references[list] });
        let several = objects(&several);
        assert_eq!(several.len(), 1, "{list}: {references:#}");
        found.extend(several);
    }

    let mut described = BTreeSet::new();
    for words in [
        format!("show text.stats --as agent-tool --bundle text-stats.toolbundle {TRUST}"),
        format!("show kv.counter --as agent-tool --bundle kv-counter.toolbundle {TRUST}"),
        "show notes.append --as agent-tool --dev notes-append --policy-file notes.toml".to_owned(),
        "show hostile.run --as agent-tool --dev hostile".to_owned(),
    ] {
        let records = machine.toolward(&words).ends(0).json();
        described.extend(objects(&records).iter().map(|(object, _)| *object));
        found.extend(objects(&records));
    }
    let left_out = [
        "tool_hook",
        "tool_scheduler_policy",
        "tool_result_persistence",
    ];
    for object in left_out {
        assert!(
            !described.contains(object) && !all().contains(object),
            "{object}"
        );
    }
    found.extend(told(&machine));
    are_valid(&found);
    are_published(&found);
    let made: BTreeSet<&str> = found.iter().map(|(object, _)| *object).collect();
    assert_eq!(made, all());
}

#[test]
fn the_records_of_a_call_name_its_rows_in_the_ledger() {
    let machine = machine();
    // A confined process can't read the ledger, so the recorder reports the rows.
    let stats = format!("{STATS} {TRUST}");
    let unconfined = format!("{stats} --no-confine");
    let input = json!({ "text": "a" });
    for (words, input, exit) in [
        (&stats, &input, 0),
        (&stats, &json!({ "text": 7 }), 1),
        (&unconfined, &input, 0),
    ] {
        let records = called(&machine, words, Some(input), exit);
        let rows = records["tool_result"]["evidence_refs"].clone();
        assert_eq!(records["tool_invocation"]["evidence_refs"], rows);
        let [row] = rows.as_array().unwrap().as_slice() else {
            panic!("{records:#}");
        };
        let (origin, seq) = row.as_str().unwrap().rsplit_once('/').unwrap();
        assert!(origin.starts_with("ledger:toolward.ledger/"), "{row}");
        let shown = machine.toolward(&format!("ledger show {seq} --json"));
        let shown = shown.ends(0).json();
        let call = &records["tool_invocation"]["invocation_id"];
        assert_eq!(
            shown["rows"][0]["record"]["body"]["invocation"], *call,
            "{shown:#}"
        );
        if exit != 0 {
            assert_eq!(records["tool_error"]["evidence_refs"], rows);
        }
    }
    machine.configure("[ledger]\noff = true\n");
    let records = called(&machine, &stats, Some(&input), 0);
    assert_eq!(records["tool_result"]["evidence_refs"], json!([]));
}

#[test]
fn what_changes_something_has_at_least_a_medium_risk() {
    let machine = machine();
    let words = "show notes.append --as agent-tool --dev notes-append --policy-file notes.toml";
    let contract = "notes-append/tools/notes.append/TOOL.md";
    let text = machine.text(contract);
    let (before, rest) = text.split_once("risk_level:").unwrap();
    let (_, after) = rest.split_once('\n').unwrap();
    machine.write(contract, format!("{before}{after}"));
    let records = machine.toolward(words).ends(0).json();
    let profile = &records["tool_permission_profiles"][0];
    assert_ne!(profile["write_effects"], json!([]), "{profile:#}");
    assert_eq!(profile["risk_level"], "medium");
}

#[test]
fn a_blocked_tool_is_described_and_defined_for_no_model() {
    let machine = machine();
    let words = format!("show kv.counter --as agent-tool --bundle kv-counter.toolbundle {TRUST}");
    let records = machine.toolward(&words).ends(0).json();
    assert_eq!(records["tool_declaration"]["lifecycle"], "requires_setup");
    let blocked = &records["tool_surface"]["blocked_tools"][0];
    assert_eq!(blocked["reason"], "capability_gap");
    for form in ["mcp", "openai", "amplifier"] {
        let words = words.replace("agent-tool", form);
        machine.toolward(&words).ends(4).says("unauthorised");
    }
}

#[test]
fn a_tool_is_defined_as_the_server_lists_it() {
    let machine = machine();
    let source = format!("--bundle text-stats.toolbundle {TRUST}");
    let mut raw = Raw::open(
        machine.toolward(&format!("serve {source}")).into_command(),
        json!({}),
    );
    raw.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    let listed = raw.answer(1)["result"]["tools"][0].clone();
    let describe = |format: &str| -> Ended {
        let words = format!("show text.stats {source} --as {format}");
        machine.toolward(&words).ends(0)
    };
    assert_eq!(describe("mcp").json(), listed);
    let function = describe("openai").json();
    assert_eq!(function["type"], "function");
    assert_eq!(function["function"]["name"], listed["name"]);
    assert_eq!(function["function"]["description"], listed["description"]);
    assert_eq!(function["function"]["parameters"], listed["inputSchema"]);
    let spec = describe("amplifier").json();
    assert_eq!(spec["parameters"], listed["inputSchema"]);
    let records = describe("agent-tool").json();
    assert_eq!(records["tool_declaration"]["name"], listed["name"]);
}

#[test]
fn amplifier_gets_its_own_result_and_the_exit_code_stays() {
    let machine = machine();
    let call = |words: &str, exit: i32| {
        let words = format!("{words} --format amplifier");
        machine.toolward(&words).ends(exit).json()
    };
    let found = call(&format!("{STATS} {TRUST} --set text=a"), 0);
    assert_eq!(found["success"], true);
    assert_eq!(found["output"]["words"], 1);
    assert_eq!(found["error"], Value::Null);
    let found = call(NOTES, 4);
    assert_eq!(found["success"], false);
    assert_eq!(found["output"], Value::Null);
    assert_eq!(found["error"]["type"], "toolward:approval_denied");
    assert_eq!(found["error"]["class"], "approval_rejected");
    assert_eq!(found["error"]["retryable"], false);
}

#[test]
fn people_are_told_beside_a_form_what_they_are_told_without_one() {
    let machine = machine();
    let words = format!("{STATS} {TRUST} --set text=a --format amplifier");
    let quiet = machine.toolward(&words).ends(0);
    assert!(!quiet.stderr.contains("attempt(s)"), "{quiet}");
    let told = machine.toolward(&format!("{words} --verbose")).ends(0);
    assert!(told.stderr.contains("attempt(s)"), "{told}");
    assert_eq!(told.json()["success"], true);
}

#[test]
fn a_form_is_one_line_for_programs() {
    let machine = machine();
    for words in [
        format!("show text.stats --as agent-tool --bundle text-stats.toolbundle {TRUST}"),
        format!("{STATS} {TRUST} --set text=a --format agent-tool"),
    ] {
        let ended = machine.toolward(&format!("{words} --json")).ends(0);
        assert_eq!(ended.stdout.lines().count(), 1, "{ended}");
        assert_eq!(ended.json()["schema_version"], "0.2.0");
    }
    let ended = machine.toolward(&format!(
        "show text.none --as agent-tool --bundle text-stats.toolbundle {TRUST}"
    ));
    ended.ends(1).says("tool-missing");
}
