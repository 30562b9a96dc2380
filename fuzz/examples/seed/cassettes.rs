//! Cassettes of a ledger with a few calls, and such as were changed afterwards.

use std::fs;

use toolward_ledger::payload::{Keep, PayloadKind};
use toolward_ledger::record::{
    Action, Call, Code, Ended, Event, Hex, Id, Invocation, Native, Number, Opened, Outcome, Part,
    Started, Tool, Version, Word,
};
use toolward_ledger::{Durability, Entry, LedgerOptions, Reader, Recorder as _, Selection, Writer};

fn invocation(number: u8) -> Invocation {
    let mut bytes = [0; 16];
    bytes[15] = number;
    Invocation::from_bytes(bytes)
}

fn call(mutates: bool) -> Call {
    Call {
        context: None,
        cut: Number::default(),
        driver: None,
        input: None,
        mutates: match mutates {
            true => vec![Action::parse("storage:commit").expect("an action")],
            false => Vec::new(),
        },
        native: Native::default(),
        parent: None,
        person: None,
        policy: Some(Hex([2; 32])),
        rejected: Vec::new(),
        rerun_of: None,
        root: None,
        rules: Vec::new(),
        surface: None,
        tool: Some(Part {
            bundle: Hex([1; 32]),
            id: Tool::parse("text.stats@1.4.0").expect("a tool"),
            publisher: Id::parse("acme").expect("a publisher"),
        }),
    }
}

fn ended(number: u8, call: Option<Call>, code: Option<&str>) -> Entry {
    let outcome = Outcome {
        attempts: Vec::new(),
        cancel_reason: None,
        class: None,
        code: code.map(|code| Code::parse(code).expect("a code")),
        cut: Number::default(),
        detail: None,
        fuel: Number::from(7),
        late: false,
        limit: None,
        memory: Number::default(),
        origin: None,
        output: None,
        repeats: None,
        stage: Word::parse("run").expect("a stage"),
        us: Number::from(5),
        violations: Default::default(),
    };
    let event = Event::Ended(Box::new(Ended {
        call,
        invocation: invocation(number),
        outcome,
    }));
    Entry::new(event).principal("alice")
}

fn started(number: u8) -> Entry {
    let event = Event::Started(Box::new(Started {
        call: call(true),
        invocation: invocation(number),
    }));
    let entry = Entry::new(event).principal("alice").matters();
    entry.payload(PayloadKind::Input, br#"{"n":2}"#.to_vec())
}

/// What a ledger of four calls exports: two that read, one of which failed, one that changed something, and one that
/// asked a question first.
fn exported() -> Vec<u8> {
    let folder = std::env::temp_dir().join(format!("toolward-seed-{}", std::process::id()));
    let mut options = LedgerOptions::new(folder.clone());
    options.keep = Keep::All;
    let opened = Opened {
        build: Version::parse("0.1.0").expect("a version"),
        bundles: Vec::new(),
        bundles_set: None,
        confinement: Word::parse("full").expect("a word"),
        cut: Number::default(),
        policy: None,
    };
    let writer = Writer::open(options, opened).expect("a ledger");
    let with = |entry: Entry, kind, text: &str| entry.payload(kind, text.as_bytes().to_vec());
    let (input, output) = (PayloadKind::Input, PayloadKind::Output);
    let value = r#"{"value":{"words":2}}"#;
    let read = with(ended(1, Some(call(false)), None), input, r#"{"n":1}"#);
    let failed = ended(2, Some(call(false)), Some("upstream_error"));
    let failed = with(failed, input, "{}");
    for entry in [
        with(read, output, value),
        with(failed, PayloadKind::Detail, r#"{"message":"tired"}"#),
        started(3),
        with(ended(3, None, None), output, value),
        started(4),
        ended(4, None, Some("toolward:input_required")),
        started(4),
        with(ended(4, None, None), output, value),
    ] {
        let appended = writer.append(entry, Durability::Disk);
        appended.wait().expect("a row");
    }
    writer.close().expect("a checkpoint");
    let reader = Reader::open(&folder, None).expect("a ledger");
    let exported = reader.cassette(&Selection::default()).expect("a cassette");
    fs::remove_dir_all(folder).expect("the folder goes");
    exported.bytes
}

/// Names and bytes. Only `several` and `fewer` are cassettes.
pub(super) fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let several = exported();
    let text = String::from_utf8(several.clone()).expect("text");
    let lines: Vec<&str> = text.lines().collect();
    let joined = |lines: &[&str]| (lines.join("\n") + "\n").into_bytes();
    let rows = |count: usize| {
        let said = format!("\"rows\":{}", lines.len() - 1);
        lines[0].replace(&said, &format!("\"rows\":{count}"))
    };
    let mut swapped = lines.clone();
    swapped.swap(1, 2);
    vec![
        ("fewer", joined(&[&rows(1), lines[1]])),
        ("half-a-call", joined(&[&rows(1), lines[3]])),
        ("swapped", joined(&swapped)),
        ("cut", several[..several.len() - 100].to_vec()),
        (
            "changed",
            text.replace("\\\"us\\\":5", "\\\"us\\\":6").into_bytes(),
        ),
        (
            "another-version",
            text.replacen("\"cassette\":1", "\"cassette\":2", 1)
                .into_bytes(),
        ),
        ("several", several),
    ]
}
