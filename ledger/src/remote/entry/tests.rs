use sha2::{Digest as _, Sha256};

use super::*;
use crate::record::{Answer, Attempt, Hex, Id, Invocation, Number, Record, Rule, Tool, Word};
use crate::remote::PROTOCOL;

/// A line of each kind with all fields.
fn lines() -> Vec<String> {
    let [hash, half] = [64, 32].map(|digits| "3a".repeat(digits / 2));
    let id = "0192a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b";
    let content = format!(r#"{{"commitment":"{hash}","size":5}}"#);
    let part = |id| format!(r#"{{"bundle":"{hash}","id":"{id}","publisher":"acme"}}"#);
    let call = [
        format!(
            r#"{{"context":{content},"cut":1,"driver":{}"#,
            part("text-stats")
        ),
        format!(r#""input":{content},"mutates":["storage:commit","@acme/notes"]"#),
        r#""native":{"call_id":"-7","tool_call_id":"functions.sum:0|fc_9/A+b=@""#.to_owned(),
        r#""traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}"#.to_owned(),
        format!(r#""parent":"{id}","person":"{half}","policy":"{hash}""#),
        r#""rejected":[{"driver":"other","why":"no_route"}]"#.to_owned(),
        format!(r#""rerun_of":"{id}","root":"{id}","rules":["grant:3"],"surface":"{hash}""#),
        format!(r#""tool":{}}}"#, part("text.stats@1.4.0")),
    ];
    let outcome = [
        r#"{"attempts":[{"code":"tired","driver":"text-stats","us":1234}]"#.to_owned(),
        r#""cancel_reason":"caller","class":"execution_failed","code":"toolward:canceled""#
            .to_owned(),
        format!(r#""cut":1,"detail":{content},"fuel":123456,"late":true,"limit":"wall_ms""#),
        format!(r#""memory":70000,"origin":"host","output":{content},"repeats":"{id}""#),
        r#""stage":"run","us":9007199254740991,"violations":{"fs":1,"net":3}}"#.to_owned(),
    ];
    let (call, outcome) = (call.join(","), outcome.join(","));
    let ended = format!(r#""call":{call},"invocation":"{id}""#);
    let bodies = [
        format!(
            r#""build":"0.1.0","bundles":["{hash}"],"bundles_set":"{hash}","confinement":"full","cut":1,"policy":"{hash}""#
        ),
        ended.clone(),
        format!(r#"{ended},"outcome":{outcome}"#),
        format!(r#"{ended},"outcome":{outcome}"#),
        format!(r#"{ended},"ledger":"{half}","of":"{id}","outcome":{outcome}"#),
        format!(r#""codes":{{"a":1,"no_route":99}},"cut":2,"person":"{half}","since":7"#),
        format!(
            r#""action":"rolled-back","bundle":"{hash}","id":"text-stats","publisher":"acme","sequence":7,"version":"1.0.0-rc.1+b""#
        ),
        format!(
            r#""answer":"denied","event":"expired","invocation":"{id}","person":"{half}","rule":"grant:1","scope":"session","tool":"text.stats@1","until":7"#
        ),
        format!(
            r#""invocation":"{id}","of":"{}","why":"not-dispatched""#,
            "00".repeat(16)
        ),
        r#""missing":4,"since":7,"why":"ledger-full""#.to_owned(),
        format!(r#""before":7,"invocation":"{id}","payloads":2,"person":"{half}""#),
        r#""to":256"#.to_owned(),
        r#""why":"frame-invalid""#.to_owned(),
    ];
    let session = "00".repeat(16);
    let kinds = bodies.iter().zip(Event::KINDS);
    let lines = kinds.map(|(body, kind)| {
        format!(
            r#"{{"at":1795000000000000,"body":{{{body}}},"kind":"{kind}","session":"{session}","v":1}}"#
        )
    });
    lines.collect()
}

fn records() -> Vec<Record> {
    let read = |line: String| Record::parse(line.as_bytes()).expect(&line);
    lines().into_iter().map(read).collect()
}

/// Entries of all kinds that a recording process may state, with all fields that it may set.
fn entries() -> Vec<Entry> {
    let records = lines().into_iter().map(|line| {
        let mut line = line.replace(r#""late":true,"#, "");
        for (field, digits) in [("commitment", 64), ("person", 32)] {
            let field = format!(r#""{field}":"{}","#, "3a".repeat(digits / 2));
            line = line.replace(&field, "");
        }
        Record::parse(line.as_bytes()).expect(&line)
    });
    let given = Given {
        principal: "alice".into(),
        tool: Tool::parse("text.stats@1").unwrap(),
        id: Invocation::from_bytes([7; 16]),
        input: Hex([8; 32]),
    };
    let stated = records.filter(|record| stated(record.event.clone()).is_ok());
    let entries = stated.map(|record| {
        let mut entry = Entry::new(record.event).at(record.at).principal("älice");
        entry = entry.matters().given(given.clone());
        for kind in PayloadKind::ALL.iter().copied() {
            entry = entry.payload(kind, b"12345".to_vec());
        }
        entry
    });
    entries.collect()
}

fn written(entry: &Entry) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes, entry).unwrap();
    bytes
}

/// The entry, if all bytes are one.
fn whole(bytes: &[u8]) -> Option<Entry> {
    read(&mut FrameBody(bytes)).ok()
}

/// Checks that the bytes are refused, or are the only form of an entry. Returns whether they are an
/// entry.
fn is_entry(bytes: &[u8]) -> bool {
    let entry = whole(bytes);
    if let Some(entry) = &entry {
        assert_eq!(written(entry), bytes);
    }
    entry.is_some()
}

#[test]
fn each_kind_has_one_form_with_all_its_fields() {
    for record in records() {
        let mut bytes = Vec::new();
        record.event.put(&mut bytes);
        let mut left = bytes.as_slice();
        assert_eq!(Event::take(&mut left).as_ref(), Some(&record.event));
        assert!(left.is_empty());
        assert!(bytes.len() < record.encode().len());
        for end in 0..bytes.len() {
            assert!(Event::take(&mut &bytes[..end]).is_none());
        }
    }
}

#[test]
fn each_kind_of_entry_is_read_as_it_was_written() {
    let entries = entries();
    assert_eq!(entries.len(), 10);
    for entry in entries {
        let read = whole(&written(&entry)).unwrap();
        assert_eq!((&read.event, read.at), (&entry.event, entry.at));
        assert_eq!((&read.given, read.matters), (&entry.given, entry.matters));
        assert_eq!(read.principal, entry.principal);
        assert_eq!(read.payloads, entry.payloads);
    }
}

#[test]
fn a_cut_or_changed_entry_is_refused_or_another_entry() {
    // Each change of a bit or, as `cargo xtask long` has it, each change of a byte.
    let changes = match std::env::var_os("TOOLWARD_LONG") {
        None => (0..8).map(|bit| 1 << bit).collect(),
        Some(_) => (1..=u8::MAX).collect::<Vec<_>>(),
    };
    for entry in entries() {
        let good = written(&entry);
        for end in 0..good.len() {
            is_entry(&good[..end]);
        }
        let mut taken = 0;
        for at in 0..good.len() {
            let mut changed = good.clone();
            for change in &changes {
                changed[at] = good[at] ^ change;
                taken += usize::from(is_entry(&changed));
            }
        }
        // Digits of hashes and numbers, and letters of names.
        assert!(taken > 0);
    }
}

#[test]
fn values_in_another_form_are_refused() {
    fn all<T: Wire>(bytes: &[u8]) -> Option<T> {
        let mut left = bytes;
        T::take(&mut left).filter(|_| left.is_empty())
    }
    type Counts = std::collections::BTreeMap<Code, Number>;
    let most = (1_u64 << 53) - 1;
    assert!(all::<Number>(&most.to_le_bytes()).is_some());
    assert!(all::<Number>(&(most + 1).to_le_bytes()).is_none());
    assert_eq!(all(&[1]), Some(true));
    assert!(all::<bool>(&[2]).is_none());
    assert!(all::<Option<bool>>(&[2, 0]).is_none());
    assert!(all::<Code>(&[2, b'a', b'A']).is_none());
    assert!(all::<Code>(&[2, 0xc3, 0xa4]).is_none());
    assert!(all::<Code>(&[0]).is_none());
    assert!(all::<Answer>(&[1]).is_some());
    assert!(all::<Answer>(&[2]).is_none());
    assert!(all::<Event>(&[13, 0]).is_none());
    // Counts far beyond the bytes.
    assert!(all::<Vec<Code>>(&[0xff; 8]).is_none());
    assert!(all::<Vec<Code>>(&[&[0xff; 8][..], &[1, b'a']].concat()).is_none());
    assert!(all::<Counts>(&[0xff; 8]).is_none());
    let counts = |keys: &[u8; 2]| {
        let mut bytes = 2_u64.to_le_bytes().to_vec();
        for key in keys {
            bytes.extend([1, *key, 7, 0, 0, 0, 0, 0, 0, 0]);
        }
        all::<Counts>(&bytes).is_some()
    };
    assert!(counts(b"ab"));
    assert!(!counts(b"ba") && !counts(b"aa"));
}

#[test]
fn a_record_with_long_lists_is_shortened_and_no_more_than_its_line() {
    let attempt = Attempt {
        code: None,
        driver: Id::parse("d").unwrap(),
        us: Number::from(0),
    };
    for count in (0..1400).step_by(31).chain([20_000]) {
        for record in records() {
            let mut event = record.event;
            let (call, outcome) = event.parts_mut();
            if let Some(call) = call {
                call.rules = vec![Rule::parse("r").unwrap(); count];
            }
            if let Some(outcome) = outcome {
                outcome.attempts = vec![attempt.clone(); count / 3];
                let name =
                    |number: usize| (Word::parse(&number.to_string()).unwrap(), Number::default());
                outcome.violations = (0..count.min(5000)).map(name).collect();
            }
            match &mut event {
                Event::Opened(body) => body.bundles = vec![Hex([1; 32]); count],
                Event::RefusedMore(body) => {
                    let name = |number: usize| {
                        (Code::parse(&number.to_string()).unwrap(), Number::default())
                    };
                    body.codes = (0..count).map(name).collect();
                }
                _ => {}
            }
            let entry = Entry::new(event).at(record.at);
            let mut bytes = Vec::new();
            write_event(&mut bytes, &entry).unwrap();
            assert!(bytes.len() <= MAX_EVENT_BYTES);
            let mut left = bytes.as_slice();
            let at = Number::take(&mut left).unwrap();
            let read = Event::take(&mut left).unwrap();
            let line = entry.event.encode(entry.at, NO_SESSION);
            assert!(line.len() <= MAX_RECORD_BYTES);
            assert_eq!(read.encode(at, NO_SESSION), line);
        }
    }
}

#[test]
fn the_longest_entry_fits_into_a_frame() {
    let mut longest = 0;
    for entry in entries() {
        let mut entry = entry.principal("p".repeat(MAX_NAME_BYTES));
        if let Some(given) = &mut entry.given {
            given.principal = "p".repeat(MAX_NAME_BYTES).into();
            given.tool = Tool::parse(&format!("{}@{}", "t".repeat(80), "1".repeat(64))).unwrap();
        }
        entry.payloads.clear();
        for kind in PayloadKind::ALL.iter().copied() {
            entry = entry.payload(kind, vec![0; MAX_PAYLOAD_BYTES]);
        }
        if let Some(call) = entry.event.parts_mut().0 {
            call.rules = vec![Rule::parse(&"r".repeat(24)).unwrap(); 270];
        }
        let bytes = written(&entry);
        assert!(whole(&bytes).is_some());
        longest = longest.max(bytes.len());
    }
    assert!(
        (MAX_ENTRY_BYTES - 8 - 4096..=MAX_ENTRY_BYTES - 8).contains(&longest),
        "{longest}"
    );
}

/// Two builds with the same protocol exchange entries, so the form changes only with the protocol.
#[test]
fn the_form_of_entries_belongs_to_the_protocol() {
    let mut all = Sha256::new();
    for record in records() {
        let mut bytes = Vec::new();
        record.event.put(&mut bytes);
        all.update(bytes);
    }
    let form = Hex::<32>(all.finalize().into()).to_string();
    assert_eq!(
        (PROTOCOL, form.as_str()),
        (
            3,
            "3301f3b4efb7d235fd9c49cc5c325468e6c807d05f18a2438360e6ca8f56ed28"
        ),
        "raise `PROTOCOL`"
    );
}
