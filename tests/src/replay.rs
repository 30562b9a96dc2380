//! `ledger replay`: recorded results from ledgers that the crate's own writer made.

pub(crate) mod cassettes;
pub(crate) mod runloop;

use std::fs;
use std::time::Duration;

use serde_json::Value;
use toolward_ledger::payload::{Keep, PayloadKind};
use toolward_ledger::record::{Ended, Event, Number, Opened, Refused, Started, Version, Word};
use toolward_ledger::{Durability, Entry, LedgerOptions, Recorder as _, Writer};

use crate::ledger::{call, invocation, outcome, place};
use crate::support::{Machine, Run};

/// Text that would hide itself, or look like another line.
const FORGED: &str = "ok\n       9  2026-01-01T00:00:00Z  notes.append\u{1b}[2K\u{202e}";

pub(crate) fn open(machine: &Machine, keep: Keep) -> Writer {
    fs::create_dir_all(place(machine).parent().unwrap()).unwrap();
    let mut options = LedgerOptions::new(place(machine));
    options.keep = keep;
    options.payloads.age = Duration::from_hours(1);
    let opened = Opened {
        build: Version::parse("0.1.0").unwrap(),
        bundles: Vec::new(),
        bundles_set: None,
        confinement: Word::parse("full").unwrap(),
        cut: Number::default(),
        policy: None,
    };
    Writer::open(options, opened).unwrap()
}

fn append(writer: &Writer, entry: Entry) {
    let entry = entry.principal("alice");
    writer.append(entry, Durability::Disk).wait().unwrap();
}

/// A read-only call with an input and an output of this text.
fn read(writer: &Writer, number: u8, text: &str) {
    let ended = Event::Ended(Box::new(Ended {
        call: Some(call()),
        invocation: invocation(number),
        outcome: outcome(None),
    }));
    let output = serde_json::json!({ "value": { "text": text } }).to_string();
    let entry = Entry::new(ended).payload(PayloadKind::Input, br#"{"n":1}"#.to_vec());
    append(
        writer,
        entry.payload(PayloadKind::Output, output.into_bytes()),
    );
}

fn replay(machine: &Machine, words: &str) -> Run {
    machine.toolward(&format!("ledger replay {words}"))
}

fn why(line: &Value) -> &str {
    line["missing"]["output"]["why"].as_str().unwrap()
}

/// Row 1 is a read; rows 2 and 3 are a call that changes something; row 4 is a failed call; row 5
/// is a refused call; row 6 is a call that only started.
pub(crate) fn filled(keep: Keep) -> Machine {
    let machine = Machine::new();
    let writer = open(&machine, keep);
    read(&writer, 1, FORGED);
    let start = |number| {
        Entry::new(Event::Started(Box::new(Started {
            call: call(),
            invocation: invocation(number),
        })))
    };
    append(&writer, start(2).matters());
    let ended = |number, code: Option<&str>, call| {
        Event::Ended(Box::new(Ended {
            call,
            invocation: invocation(number),
            outcome: outcome(code),
        }))
    };
    let entry = Entry::new(ended(2, None, None)).matters();
    append(
        &writer,
        entry.payload(PayloadKind::Output, br#"{"value":2}"#.to_vec()),
    );
    let entry = Entry::new(ended(3, Some("upstream_error"), Some(call())));
    let detail = br#"{"message":"the tool is tired"}"#.to_vec();
    append(&writer, entry.payload(PayloadKind::Detail, detail));
    let refused = Event::Refused(Box::new(Refused {
        call: call(),
        invocation: invocation(4),
        outcome: outcome(Some("unauthorised")),
    }));
    append(
        &writer,
        Entry::new(refused).payload(PayloadKind::Detail, br#"{"message":"no"}"#.to_vec()),
    );
    append(&writer, start(5).matters());
    writer.close().unwrap();
    machine
}

#[test]
fn recorded_results_come_back_and_nothing_runs() {
    let machine = filled(Keep::All);
    let ended = replay(&machine, "0..5 --json").ends(0);
    assert!(ended.stdout.is_ascii(), "{ended}");
    let lines = ended.json_lines();
    assert_eq!(lines.len(), 3);
    assert_eq!(lines[0]["output"]["value"]["text"], FORGED);
    assert_eq!(lines[0]["principal"], "alice");
    assert_eq!(lines[0]["tool"], "notes.append@1.0.0");
    assert_eq!(lines[0]["signed"], true, "closing signed all rows");
    assert_eq!(lines[0]["installed"], "missing");
    assert_eq!(lines[1]["rows"], serde_json::json!([2, 3]));
    assert_eq!(lines[1]["output"]["value"], 2);
    assert_eq!(lines[2]["ok"], false);
    assert_eq!(lines[2]["error"]["code"], "upstream_error");
    assert_eq!(lines[2]["error"]["message"], "the tool is tired");
    // The call that never ended has no result, and the exit code reports that.
    let all = replay(&machine, ".. --json").ends(1).json_lines();
    assert_eq!(all.len(), 5);
    assert_eq!(all[4]["end"], "unfinished");
    for words in [invocation(2).to_string(), "2".to_owned(), "3".to_owned()] {
        let one = replay(&machine, &format!("{words} --json")).ends(0).json();
        assert_eq!(one["output"]["value"], 2, "{words}");
    }
    let shown = replay(&machine, "1").ends(0);
    let hidden = |c: char| c == '\u{1b}' || c == '\u{202e}';
    assert!(!shown.stdout.contains(hidden), "{shown}");
    assert_eq!(shown.stdout.lines().count(), 3, "{shown}");
    assert!(
        shown.stdout.contains("the tool is not installed"),
        "{shown}"
    );
}

#[test]
fn what_names_no_call_is_an_error() {
    let machine = filled(Keep::All);
    replay(&machine, "0").ends(1).says("ledger-no-row");
    replay(&machine, "99").ends(1).says("ledger-no-row");
    replay(&machine, &invocation(99).to_string())
        .ends(1)
        .says("ledger-no-row");
    for words in ["", "x", "5..5", "5..4", "1..x", "-1.."] {
        replay(&machine, words).ends(2);
    }
    assert_eq!(replay(&machine, "90.. --json").ends(0).stdout, "");
    let nothing = Machine::new();
    replay(&nothing, "..").ends(1).says("ledger-missing");
}

#[test]
fn a_missing_result_says_why_and_which_setting_keeps_it() {
    let machine = filled(Keep::Asked);
    let lines = replay(&machine, ".. --json").ends(1).json_lines();
    assert_eq!(why(&lines[0]), "not-kept");
    let message = lines[0]["missing"]["output"]["message"].as_str().unwrap();
    assert!(message.contains("keep = \"all\""), "{message}");
    assert_eq!(lines[2]["error"]["code"], "upstream_error");
    assert_eq!(lines[2]["missing"]["detail"]["why"], "not-kept");
    let shown = replay(&machine, "1").ends(1);
    assert!(shown.stdout.contains("keep = \"all\""), "{shown}");
}

#[test]
fn what_was_too_large_erased_expired_or_changed_is_told_apart() {
    let machine = Machine::new();
    let writer = open(&machine, Keep::All);
    read(&writer, 1, &"x".repeat(70_000));
    read(&writer, 2, "erased");
    read(&writer, 3, "deleted");
    read(&writer, 4, "changed");
    writer.close().unwrap();
    let id = invocation(2);
    machine
        .toolward(&format!("ledger erase --invocation {id} --yes"))
        .ends(0);
    let sql = rusqlite::Connection::open(place(&machine).join("payloads.sqlite")).unwrap();
    let of = |number: u8| {
        let mut id = [0; 16];
        id[15] = number;
        id
    };
    sql.execute("DELETE FROM payload WHERE invocation = ?1", [of(3)])
        .unwrap();
    sql.execute(
        "UPDATE payload SET bytes = X'7B7D' WHERE invocation = ?1",
        [of(4)],
    )
    .unwrap();
    drop(sql);
    let lines = replay(&machine, ".. --json").ends(1).json_lines();
    let whys: Vec<&str> = lines.iter().map(why).collect();
    assert_eq!(whys, ["too-large", "erased", "displaced", "changed"]);
    // A missing payload has expired if its row is older than payloads are stored.
    machine.configure("[ledger]\nkeep = \"all\"\ndays = 1\n");
    let old = Machine::new();
    let writer = open(&old, Keep::All);
    let ended = Event::Ended(Box::new(Ended {
        call: Some(call()),
        invocation: invocation(1),
        outcome: outcome(None),
    }));
    let entry = Entry::new(ended).at(Number::from(1));
    append(&writer, entry.payload(PayloadKind::Output, b"1".to_vec()));
    writer.close().unwrap();
    fs::remove_file(place(&old).join("payloads.sqlite")).unwrap();
    let line = replay(&old, ".. --json").ends(1).json();
    assert_eq!(why(&line), "expired");
    assert_eq!(line["principal"], Value::Null);
}

#[test]
fn a_result_under_rows_that_were_changed_is_not_shown() {
    let machine = filled(Keep::All);
    let sql = rusqlite::Connection::open(place(&machine).join("records.sqlite")).unwrap();
    let record: Vec<u8> = sql
        .query_row("SELECT record FROM entry WHERE seq = 1", [], |row| {
            row.get(0)
        })
        .unwrap();
    let forged = String::from_utf8(record)
        .unwrap()
        .replace("\"us\":5", "\"us\":6");
    sql.execute(
        "UPDATE entry SET record = ?1 WHERE seq = 1",
        [forged.as_bytes()],
    )
    .unwrap();
    drop(sql);
    let ended = replay(&machine, "1").ends(1);
    ended.says("ledger-differs");
    assert_eq!(ended.stdout, "");
    // With a matching leaf, the checkpoint does not hold.
    let leaf = toolward_ledger::tree::leaf_hash(forged.as_bytes());
    let sql = rusqlite::Connection::open(place(&machine).join("records.sqlite")).unwrap();
    sql.execute("UPDATE entry SET leaf = ?1 WHERE seq = 1", [leaf.0])
        .unwrap();
    drop(sql);
    replay(&machine, "1").ends(1).says("ledger-differs");
}

#[test]
fn a_damaged_row_is_missing_and_the_other_calls_are_shown() {
    let machine = filled(Keep::All);
    let whole = replay(&machine, "0..5 --json").ends(0).json_lines();
    let sql = rusqlite::Connection::open(place(&machine).join("records.sqlite")).unwrap();
    sql.execute("UPDATE entry SET record = X'7B7D' WHERE seq = 1", [])
        .unwrap();
    drop(sql);
    let lines = replay(&machine, "0..5 --json").ends(1).json_lines();
    assert_eq!(lines.len(), whole.len());
    assert_eq!(lines[0]["rows"], serde_json::json!([1]));
    assert_eq!(lines[0]["missing"]["row"]["why"], "changed");
    assert_eq!(lines[1..], whole[1..]);
    let shown = replay(&machine, "0..5").ends(1);
    assert!(shown.stdout.contains("       1  row missing: "), "{shown}");
    // If the call is named, nothing else can be shown.
    let named = replay(&machine, "1").ends(1);
    assert!(named.stderr.contains("record-invalid"), "{named}");
}
