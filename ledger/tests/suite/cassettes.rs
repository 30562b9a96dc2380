//! Cassettes are accepted as a ledger wrote them, and refused after any change.

use serde_json::{Value, json};
use toolward_ledger::cassette::{Cassette, CassetteError as E, MAX_CASSETTE_ROWS};
use toolward_ledger::payload::{Keep, PayloadKind};
use toolward_ledger::{Recorder as _, Selection, Writer};

use crate::support::{
    Place, durable, ended, filled, invocation, opened, queued, read_only, refused, started,
};

const INPUT: PayloadKind = PayloadKind::Input;
const OUTPUT: PayloadKind = PayloadKind::Output;

fn with(entry: toolward_ledger::Entry, kind: PayloadKind, text: &str) -> toolward_ledger::Entry {
    entry.payload(kind, text.as_bytes().to_vec())
}

/// Rows 1 to 6: a read (1), a call that changes something (2, 4), a read in between (3), a refusal
/// (5), a nested call (6).
fn recorded() -> Place {
    let place = Place::new();
    let mut options = place.options();
    options.keep = Keep::All;
    let writer = Writer::open(options, opened()).unwrap();
    let read = |number| with(read_only(invocation(number)), INPUT, r#"{"n":1}"#);
    queued(&writer, with(read(1), OUTPUT, r#"{"value":1}"#));
    durable(&writer, with(started(invocation(2)), INPUT, r#"{"n":2}"#)).unwrap();
    queued(&writer, with(read(3), OUTPUT, r#"{"value":3}"#));
    durable(
        &writer,
        with(ended(invocation(2)), OUTPUT, r#"{"value":2}"#),
    )
    .unwrap();
    queued(&writer, refused(invocation(4), "no_route"));
    let mut nested = crate::support::call(false);
    nested.parent = Some(invocation(1));
    let nested = toolward_ledger::record::Ended {
        call: Some(nested),
        invocation: invocation(5),
        outcome: crate::support::outcome(None),
    };
    let nested =
        toolward_ledger::Entry::new(toolward_ledger::record::Event::Ended(Box::new(nested)));
    queued(&writer, with(with(nested, INPUT, "{}"), OUTPUT, "{}"));
    writer.flush().wait().unwrap();
    writer.close().unwrap();
    place
}

fn export(place: &Place) -> Vec<u8> {
    place
        .reader()
        .cassette(&Selection::default())
        .unwrap()
        .bytes
}

#[test]
fn calls_come_back_in_the_order_in_which_they_ended() {
    let place = recorded();
    let verifier = place.reader().verifier().clone();
    let bytes = export(&place);
    let cassette = Cassette::read(&bytes, Some(&verifier)).unwrap();
    assert!(cassette.is_verified);
    assert_eq!(cassette.origin, verifier.origin());
    let calls: Vec<_> = cassette
        .calls
        .iter()
        .map(|call| {
            (
                call.invocation,
                call.input.as_slice(),
                call.output.as_deref().unwrap(),
            )
        })
        .collect();
    let (one, two): (&[u8], &[u8]) = (br#"{"n":1}"#, br#"{"n":2}"#);
    let value = |text: &'static str| text.as_bytes();
    assert_eq!(
        calls,
        [
            (invocation(1), one, value(r#"{"value":1}"#)),
            (invocation(3), one, value(r#"{"value":3}"#)),
            (invocation(2), two, value(r#"{"value":2}"#)),
        ]
    );
    // Without a key, a cassette of any ledger is read, and marked as unverified.
    let unverified = Cassette::read(&bytes, None).unwrap();
    assert!(!unverified.is_verified);
    assert_eq!(unverified.calls, cassette.calls);
}

#[test]
fn a_call_that_asked_is_copied_with_its_answer_alone() {
    let place = Place::new();
    let mut options = place.options();
    options.keep = Keep::All;
    let writer = Writer::open(options, opened()).unwrap();
    let start = |number| with(started(invocation(number)), INPUT, r#"{"n":1}"#);
    let asks = |number| {
        let body = toolward_ledger::record::Ended {
            call: None,
            invocation: invocation(number),
            outcome: crate::support::outcome(Some("toolward:input_required")),
        };
        toolward_ledger::Entry::new(toolward_ledger::record::Event::Ended(Box::new(body)))
    };
    for number in [1, 2] {
        durable(&writer, start(number)).unwrap();
        durable(&writer, asks(number)).unwrap();
    }
    durable(&writer, start(1)).unwrap();
    durable(
        &writer,
        with(ended(invocation(1)), OUTPUT, r#"{"value":1}"#),
    )
    .unwrap();
    writer.close().unwrap();
    let verifier = place.reader().verifier().clone();
    let export = place.reader().cassette(&Selection::default()).unwrap();
    assert_eq!((export.calls, export.left_out.len()), (1, 0));
    let calls = Cassette::read(&export.bytes, Some(&verifier))
        .unwrap()
        .calls;
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].invocation, invocation(1));
    assert_eq!(
        calls[0].output.as_deref(),
        Some(br#"{"value":1}"#.as_slice())
    );
}

#[test]
fn what_was_not_kept_or_not_signed_is_left_out_and_counted() {
    let place = filled(3);
    let export = place.reader().cassette(&Selection::default()).unwrap();
    assert_eq!((export.calls, export.left_out.get("input")), (0, Some(&3)));
    let empty = Cassette::read(&export.bytes, None).unwrap();
    assert!(empty.calls.is_empty());
    let unsigned = Place::new();
    let writer = unsigned.open();
    queued(&writer, read_only(invocation(1)));
    writer.flush().wait().unwrap();
    let error = unsigned
        .reader()
        .cassette(&Selection::default())
        .unwrap_err();
    assert_eq!(error.code(), "ledger-no-checkpoint");
}

#[test]
fn one_cassette_holds_one_principal_unless_all_are_asked_for() {
    let place = Place::new();
    let mut options = place.options();
    options.keep = Keep::All;
    let writer = Writer::open(options, opened()).unwrap();
    for (number, name) in [(1, "alice"), (2, "bob")] {
        let entry = read_only(invocation(number)).principal(name);
        let entry = entry.payload(INPUT, b"{}".to_vec());
        queued(&writer, entry.payload(OUTPUT, b"{}".to_vec()));
    }
    writer.close().unwrap();
    let reader = place.reader();
    let error = reader.cassette(&Selection::default()).unwrap_err();
    assert_eq!(error.code(), "cassette-principals");
    let all = Selection {
        all: true,
        ..Selection::default()
    };
    assert_eq!(reader.cassette(&all).unwrap().calls, 2);
    let person = reader.person_of("bob").unwrap();
    let one = Selection {
        person,
        ..Selection::default()
    };
    let bytes = reader.cassette(&one).unwrap().bytes;
    let calls = Cassette::read(&bytes, None).unwrap().calls;
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].person, person);
    assert!(
        !String::from_utf8(bytes).unwrap().contains("bob"),
        "a name is in the ledger only"
    );
}

type Change = fn(&mut Vec<Value>);

/// Changes of the lines of [`recorded`], and the error of each.
const CHANGES: &[(&str, Change, E)] = &[
    (
        "a row twice",
        |l| {
            l.insert(2, l[1].clone());
            l[0]["rows"] = json!(5);
        },
        E::Rows(3),
    ),
    ("rows swapped", |l| l.swap(1, 2), E::Rows(3)),
    (
        "the end of a call is missing",
        |l| {
            l.pop();
            l[0]["rows"] = json!(3);
        },
        E::Rows(4),
    ),
    (
        "the start of a call is missing",
        |l| {
            l.remove(2);
            l[0]["rows"] = json!(3);
        },
        E::Rows(4),
    ),
    (
        "a line is missing",
        |l| {
            l.pop();
        },
        E::Form(5),
    ),
    (
        "a line too many",
        |l| {
            let last = l[4].clone();
            l.push(last);
        },
        E::Form(6),
    ),
    (
        "another number of a row",
        |l| l[4]["seq"] = json!(5),
        E::Proof(5),
    ),
    (
        "a row behind the checkpoint",
        |l| l[4]["seq"] = json!(9999),
        E::Proof(5),
    ),
    (
        "another proof",
        |l| l[1]["proof"] = l[2]["proof"].clone(),
        E::Proof(2),
    ),
    ("no proof", |l| l[1]["proof"] = json!([]), E::Proof(2)),
    (
        "an endless proof",
        |l| l[1]["proof"] = json!(vec!["AA=="; 65]),
        E::Proof(2),
    ),
    (
        "a proof of no hashes",
        |l| l[1]["proof"] = json!(["AA=="]),
        E::Form(2),
    ),
    (
        "another record",
        |l| {
            let record = l[1]["record"]
                .as_str()
                .unwrap()
                .replace("\"us\":2345", "\"us\":2346");
            l[1]["record"] = json!(record);
        },
        E::Proof(2),
    ),
    (
        "another output",
        |l| l[1]["payloads"][0]["bytes"] = json!("e30="),
        E::Payload(2),
    ),
    (
        "another salt",
        |l| l[1]["payloads"][0]["salt"] = json!("0".repeat(64)),
        E::Payload(2),
    ),
    (
        "an output as input",
        |l| l[1]["payloads"][0]["kind"] = json!("input"),
        E::Payload(2),
    ),
    (
        "another row's payloads",
        |l| l[1]["payloads"] = l[3]["payloads"].clone(),
        E::Payload(2),
    ),
    (
        "a payload twice",
        |l| {
            let one = l[1]["payloads"][0].clone();
            l[1]["payloads"].as_array_mut().unwrap().push(one);
        },
        E::Payload(2),
    ),
    (
        "no payloads",
        |l| l[1]["payloads"] = json!([]),
        E::Payload(2),
    ),
    (
        "a payload of no kind",
        |l| l[1]["payloads"][0]["kind"] = json!("name"),
        E::Form(2),
    ),
    ("a field too many", |l| l[1]["more"] = json!(1), E::Form(2)),
    (
        "a version that comes",
        |l| l[0]["cassette"] = json!(2),
        E::Version(2),
    ),
    (
        "more rows than are read",
        |l| l[0]["rows"] = json!(MAX_CASSETTE_ROWS + 1),
        E::Large,
    ),
    (
        "no checkpoint",
        |l| l[0]["checkpoint"] = json!(""),
        E::Form(1),
    ),
    (
        "another root",
        |l| {
            let note = l[0]["checkpoint"].as_str().unwrap().to_owned();
            let root = note.lines().nth(2).unwrap();
            let zero = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
            l[0]["checkpoint"] = json!(note.replace(root, zero));
        },
        E::Checkpoint,
    ),
    ("no key", |l| l[0]["key"] = json!("k"), E::Form(1)),
];

#[test]
fn what_others_change_of_a_cassette_is_refused() {
    let place = recorded();
    let verifier = place.reader().verifier().clone();
    let bytes = export(&place);
    let text = String::from_utf8(bytes.clone()).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for (what, change, error) in CHANGES {
        let mut changed = lines.clone();
        change(&mut changed);
        let changed: String = changed.iter().map(|line| format!("{line}\n")).collect();
        for key in [Some(&verifier), None] {
            let found = Cassette::read(changed.as_bytes(), key);
            assert_eq!(found.unwrap_err(), *error, "{what}");
        }
    }
    // The unchanged lines, serialised in the same way, are a cassette.
    let same: String = lines.iter().map(|line| format!("{line}\n")).collect();
    Cassette::read(same.as_bytes(), Some(&verifier)).unwrap();
}

#[test]
fn rows_of_the_ledger_that_are_not_whole_calls_are_refused_with_their_proofs() {
    let place = recorded();
    let reader = place.reader();
    let bytes = export(&place);
    let text = String::from_utf8(bytes).unwrap();
    let head: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let proofs = reader.proofs(0..7).unwrap();
    // The session's opening, a refusal, and a nested call.
    for (seq, error) in [
        (0, "cassette-rows"),
        (5, "cassette-rows"),
        (6, "cassette-payload"),
    ] {
        let record = String::from_utf8(reader.row(seq).unwrap().record.unwrap()).unwrap();
        let proof: Vec<String> = proofs.rows[&seq]
            .iter()
            .map(|hash| base64::Engine::encode(&base64::engine::general_purpose::STANDARD, hash.0))
            .collect();
        let row = json!({ "payloads": [], "proof": proof, "record": record, "seq": seq });
        let mut head = head.clone();
        head["rows"] = json!(1);
        let file = format!("{head}\n{row}\n");
        let found = Cassette::read(file.as_bytes(), None).unwrap_err();
        assert_eq!(found.code(), error, "row {seq}");
    }
}

#[test]
fn a_cassette_of_another_ledger_or_of_garbage_is_refused() {
    let (one, other) = (recorded(), recorded());
    let verifier = other.reader().verifier().clone();
    let bytes = export(&one);
    let found = Cassette::read(&bytes, Some(&verifier)).unwrap_err();
    assert_eq!((found, found.code()), (E::Key, "cassette-key"));
    // The key of the other ledger has not signed the checkpoint.
    let text = String::from_utf8(bytes.clone()).unwrap();
    let key = one.reader().verifier().to_vkey();
    let forged = text.replace(&key, &verifier.to_vkey());
    let found = Cassette::read(forged.as_bytes(), Some(&verifier)).unwrap_err();
    assert_eq!(found.code(), "cassette-checkpoint");
    for garbage in [
        &b""[..],
        b"\n",
        b"{}\n",
        b"\xff\xfe\n",
        b"[1]\n",
        &bytes[..bytes.len() - 1],
    ] {
        let found = Cassette::read(garbage, None).unwrap_err();
        assert_eq!(found.code(), "cassette-invalid");
    }
    let long = format!("{{\"cassette\":\"{}\"}}\n", "x".repeat(600 * 1024));
    let found = Cassette::read(long.as_bytes(), None).unwrap_err();
    assert_eq!(found.code(), "cassette-too-large");
}
