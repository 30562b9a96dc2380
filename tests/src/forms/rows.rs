//! The ledger's rows, the output of its commands, events of calls, and lines of the log.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use toolward_ledger::payload::Keep;
use toolward_ledger::record::{Event, Record};
use toolward_ledger::{Durability, Entry, Recorder as _};

use super::Forms;
use super::commands::Script;
use super::wire::{POLICY, answer};
use crate::ledger::filled;
use crate::mcp::raw::{PATIENCE, Raw};
use crate::replay;
use crate::support::Machine;

/// Rows with every field of their kind. Each line has a kind and a body. Words in capitals are
/// placeholders.
const RECORDS: &str = r#"
opened {"build":"1.0.0","bundles":["DIGEST"],"bundles_set":"DIGEST","confinement":"full","cut":1,"policy":"DIGEST"}
started {"call":CALL,"invocation":"ID"}
ended {"call":CALL,"invocation":"ID","outcome":OUTCOME}
refused {"call":CALL,"invocation":"ID","outcome":OUTCOME}
replayed {"call":CALL,"invocation":"ID","ledger":"PERSON","of":"ID","outcome":OUTCOME}
refused-more {"codes":{"input_invalid":2},"cut":1,"person":"PERSON","since":1}
trust {"action":"rolled-back","bundle":"DIGEST","id":"text.stats-bundle","publisher":"acme","sequence":2,"version":"1.0.0"}
approval {"answer":"approved","event":"answered","invocation":"ID","person":"PERSON","rule":"grant:1","scope":"session","tool":"notes.append@1.0.0","until":1}
abandoned {"invocation":"ID","of":"PERSON","why":"not-dispatched"}
gap {"missing":3,"since":1,"why":"ledger-full"}
erased {"before":1,"invocation":"ID","payloads":2,"person":"PERSON"}
pruned {"to":256}
closed {"why":"ledger-full"}
"#;

const CALL: &str = r#"{"context":CONTENT,"cut":1,"driver":{"bundle":"DIGEST","id":"notes","publisher":"acme"},"input":CONTENT,"mutates":["workspace:/notes"],"native":{"call_id":"7","tool_call_id":"call_1","traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},"parent":"ID","person":"PERSON","policy":"DIGEST","rejected":[{"driver":"other","why":"not-bound"}],"rerun_of":"ID","root":"ID","rules":["grant:1"],"surface":"DIGEST","tool":{"bundle":"DIGEST","id":"notes.append@1.0.0","publisher":"acme"}}"#;

const OUTCOME: &str = r#"{"attempts":[{"code":"timeout","driver":"notes","us":5}],"cancel_reason":"caller","class":"timeout","code":"timeout","cut":1,"detail":CONTENT,"fuel":5,"late":true,"limit":"timeout_ms","memory":65536,"origin":"host","output":CONTENT,"repeats":"ID","stage":"run","us":5,"violations":{"path":2}}"#;

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A row of a kind, with this body.
fn record(kind: &str, body: &str) -> Record {
    let content = r#"{"commitment":"DIGEST","size":7}"#;
    let body = body
        .replace("CALL", CALL)
        .replace("OUTCOME", OUTCOME)
        .replace("CONTENT", content)
        .replace("DIGEST", &"d1".repeat(32))
        .replace("PERSON", &"e2".repeat(16))
        .replace("ID", "00000000-0000-0000-0000-000000000001");
    let session = "a0".repeat(16);
    let line = format!(r#"{{"at":1,"body":{body},"kind":"{kind}","session":"{session}","v":1}}"#);
    let read = Record::parse(line.as_bytes());
    read.unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// Collects the fields of a value, at all depths.
fn fields(value: &Value, fields: &mut String) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                *fields += key;
                self::fields(member, fields);
            }
        }
        Value::Array(all) => all.iter().for_each(|one| self::fields(one, fields)),
        _ => {}
    }
    fields.push(' ');
}

/// Adds the first value for each set of fields, named by the word in its field `of`.
fn add_each(forms: &mut Forms, file: &str, of: &str, values: impl IntoIterator<Item = Value>) {
    let mut seen = BTreeSet::new();
    let mut all: Vec<(String, Vec<Value>)> = Vec::new();
    for value in values {
        let word = value.pointer(of).unwrap().as_str().unwrap().to_owned();
        let mut fields = word.clone();
        self::fields(&value, &mut fields);
        if !seen.insert(fields) {
            continue;
        }
        match all.iter_mut().find(|(other, _)| *other == word) {
            Some((_, values)) => values.push(value),
            None => all.push((word, vec![value])),
        }
    }
    for (word, values) in all {
        forms.add(file, &word, values.into());
    }
}

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub(super) fn ledger(forms: &mut Forms) {
    let records = RECORDS
        .trim()
        .lines()
        .map(|line| line.split_once(' ').unwrap());
    let kinds: BTreeSet<&str> = records.clone().map(|(kind, _)| kind).collect();
    assert_eq!(kinds, Event::KINDS.iter().copied().collect());
    for (kind, body) in records.clone() {
        let line = record(kind, body).encode();
        let value = serde_json::from_slice(&line).unwrap();
        forms.add("ledger-records", kind, value);
    }
    let machine = Machine::new();
    let writer = replay::open(&machine, Keep::All);
    for (kind, body) in records {
        let entry = Entry::new(record(kind, body).event).principal("alice");
        // Only the writer itself records that a session opens or closes.
        if !matches!(entry.event(), Event::Opened(_) | Event::Closed(_)) {
            writer.append(entry, Durability::Disk).wait().unwrap();
        }
    }
    writer.close().unwrap();
    let exported = machine.toolward("ledger export").ends(0).json_lines();
    add_each(forms, "ledger-exported", "/record/kind", exported);

    let mut script = Script::new(&machine, forms);
    script.run("ledger show 1");
    script.run("ledger list --limit 2");
    let machine = filled();
    let mut script = Script::new(&machine, forms);
    script.run("ledger info");
    script.run("ledger list --principal alice");
    script.run("ledger show 4");
    script.run("ledger show 9999");
    script.run("ledger verify");
    script.run("ledger checkpoint");
    script.run("ledger prove 2");
    script.run("ledger export --tiles tiles");
    script.run("ledger erase --principal alice");
    script.run("ledger erase --principal alice --yes");
    script.run("ledger prune --before 300 --yes");
    script.run("ledger verify --checkpoints none.txt");

    let machine = replay::filled(Keep::All);
    let mut script = Script::new(&machine, forms);
    script.run("ledger replay ..");
    script.run("ledger replay 99");
    let machine = replay::filled(Keep::Asked);
    Script::new(&machine, forms).run("ledger replay 1..3");
    let machine = replay::runloop::recorded();
    Script::new(&machine, forms).run("ledger export --format runloop");
    let machine = replay::cassettes::recorded();
    Script::new(&machine, forms).run("ledger export --cassette again");
    forms.add("cassette", "lines", lines(&machine.text("c")).into());
    let mut server = replay::cassettes::serve(&machine, "");
    server.call(1, "text_stats", &json!({ "text": "one" }));
    forms.add("cassette", "replayed over MCP", server.answer(1));
}

/// Starts a server with the hostile tool, and with a tool that changes something.
fn serve(machine: &Machine) -> Raw {
    crate::hostile::add(machine, "hostile");
    let contract = "hostile/tools/hostile.run/TOOL.md";
    let text = machine
        .text(contract)
        .replace("timeout_ms: 5000", "timeout_ms: 400");
    machine.write(contract, text);
    machine.toolward("publisher keys new --out key.pem").ends(0);
    let pack = "pack hostile --output hostile.toolbundle --key key.pem";
    machine.toolward(pack).ends(0);
    machine.write("policy.toml", POLICY);
    let words = "serve --bundle hostile.toolbundle --trust-key key.pub.pem --bundle kv-counter.toolbundle \
        --trust-key example.pub.pem --policy-file policy.toml --trust-client --events events.jsonl --log-format json";
    let capabilities = json!({ "elicitation": {} });
    Raw::open(machine.toolward(words).into_command(), capabilities)
}

pub(super) fn events(forms: &mut Forms) {
    let machine = Machine::with_example("kv-counter");
    let mut raw = serve(&machine);
    let error = json!({ "message": "m", "cause": "c" });
    let add = json!({ "action": "add", "counter": "visits" });
    for (id, (tool, arguments)) in [
        ("hostile_run", json!({ "do": "echo", "value": 1 })),
        ("hostile_run", json!({ "do": "progress", "n": 1 })),
        ("hostile_run", json!({ "do": "log", "n": 1 })),
        ("hostile_run", json!({ "do": "trap" })),
        (
            "hostile_run",
            json!({ "do": "error", "name": "upstream_error", "value": error }),
        ),
        ("hostile_run", json!({ "do": "sleep", "n": 600_000 })),
        ("hostile_run", json!({ "do": 7 })),
        ("kv_counter", add.clone()),
        ("kv_counter", add),
        ("no_tool", json!({})),
    ]
    .into_iter()
    .enumerate()
    {
        let meta = json!({ "tool_call_id": "call_1", "traceparent": TRACE });
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        raw.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
        if tool == "kv_counter" {
            let mut messages = std::iter::from_fn(|| raw.next(PATIENCE));
            let asked = messages
                .find(|one| one["method"] == "elicitation/create")
                .unwrap();
            let mut result = answer(&asked);
            result["action"] = if id == 7 { "accept" } else { "decline" }.into();
            raw.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }));
        }
        raw.answer(id);
    }
    let said = raw.said();
    let events = fs::read_to_string(machine.path("events.jsonl")).unwrap();
    add_each(forms, "events", "/event_type", lines(&events));
    // The targets of other lines are modules.
    let calls = lines(&said)
        .into_iter()
        .filter(|line| line["target"] == "toolward_host::calls");
    add_each(forms, "log-lines", "/target", calls);
    let rows = machine.toolward("ledger export").ends(0).json_lines();
    add_each(forms, "ledger-rows", "/record/kind", rows);
}
