//! Records: one line, one spelling, and no text that people wrote.

use proptest::prelude::*;
use toolward_ledger::record::{
    Abandoned, Action, Answer, Approval, ApprovalEvent, Attempt, Closed, Code, Content, Erased,
    Event, Gap, Hex, Id, MAX_RECORD_BYTES, Native, NativeId, Number, Pruned, Record, RecordError,
    RefusedMore, Rejected, Rule, Session, Tool, TraceParent, Trust, TrustAction, Version, Word,
};

use crate::support::{call, invocation, opened, outcome, read_only, refused, started};

const AT: u64 = 1_795_000_000_000_000;
const SESSION: Session = Hex([5; 16]);

fn record(event: Event) -> Record {
    Record {
        at: Number::from(AT),
        session: SESSION,
        event,
    }
}

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn native() -> Native {
    Native {
        call_id: NativeId::parse("-7").ok(),
        tool_call_id: NativeId::parse("functions.sum:0|fc_9/A+b=@").ok(),
        traceparent: TraceParent::parse(TRACE).ok(),
    }
}

/// A record of each kind, with every field.
fn all() -> Vec<Record> {
    let content = Some(Content {
        commitment: Some(Hex([4; 32])),
        size: Number::from(5),
    });
    let mut call = call(true);
    call.context.clone_from(&content);
    call.input.clone_from(&content);
    call.cut = Number::from(1);
    call.native = native();
    call.parent = Some(invocation(1));
    call.root = Some(invocation(2));
    call.person = Some(Hex([6; 16]));
    let why = Code::parse("no_route").unwrap();
    call.rejected = vec![Rejected {
        driver: Id::parse("other").unwrap(),
        why: why.clone(),
    }];
    let mut outcome = outcome(Some("toolward:canceled"));
    outcome.cancel_reason = Some(Word::parse("caller").unwrap());
    outcome.cut = Number::from(1);
    outcome.detail.clone_from(&content);
    outcome.output = content;
    outcome.late = true;
    outcome.limit = Some(Word::parse("wall_ms").unwrap());
    outcome.origin = Some(Word::parse("host").unwrap());
    outcome.violations = [(Word::parse("net").unwrap(), Number::from(3))].into();
    let id = invocation(3);
    let ended = toolward_ledger::record::Ended {
        call: Some(call.clone()),
        invocation: id,
        outcome: outcome.clone(),
    };
    let refused = toolward_ledger::record::Refused {
        call: call.clone(),
        invocation: id,
        outcome: outcome.clone(),
    };
    let replayed = toolward_ledger::record::Replayed {
        call: call.clone(),
        invocation: id,
        ledger: Hex([7; 16]),
        of: invocation(4),
        outcome,
    };
    let started = toolward_ledger::record::Started {
        call,
        invocation: id,
    };
    let number = Some(Number::from(7));
    let events = vec![
        Event::Opened(opened()),
        Event::Started(Box::new(started)),
        Event::Ended(Box::new(ended)),
        Event::Refused(Box::new(refused)),
        Event::Replayed(Box::new(replayed)),
        Event::RefusedMore(RefusedMore {
            codes: [(why.clone(), Number::from(99))].into(),
            cut: Number::from(2),
            person: Some(Hex([6; 16])),
            since: Number::from(AT),
        }),
        Event::Trust(Trust {
            action: TrustAction::RolledBack,
            bundle: Some(Hex([1; 32])),
            id: Id::parse("text-stats").unwrap(),
            publisher: Some(Id::parse("acme").unwrap()),
            sequence: number,
            version: Some(Version::parse("1.0.0-rc.1+b").unwrap()),
        }),
        Event::Approval(Approval {
            answer: Some(Answer::Approved),
            event: ApprovalEvent::Answered,
            invocation: Some(id),
            person: Some(Hex([6; 16])),
            rule: Some(Rule::parse("grant:1").unwrap()),
            scope: Some(Word::parse("once").unwrap()),
            tool: Some(Tool::parse("text.stats@1").unwrap()),
            until: number,
        }),
        Event::Abandoned(Abandoned {
            invocation: id,
            of: SESSION,
            why: Some(why.clone()),
        }),
        Event::Gap(Gap {
            missing: Number::from(4),
            since: Number::from(AT),
            why,
        }),
        Event::Erased(Erased {
            before: number,
            invocation: Some(id),
            payloads: Number::from(2),
            person: Some(Hex([6; 16])),
        }),
        Event::Pruned(Pruned {
            to: Number::from(256),
        }),
        Event::Closed(Closed {
            why: Some(Code::parse("frame-invalid").unwrap()),
        }),
    ];
    events.into_iter().map(record).collect()
}

/// The canonical form of JSON with ASCII and integers: sorted keys, no white space.
fn canonical(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::Object(fields) => {
            let sorted: std::collections::BTreeMap<_, _> = fields.iter().collect();
            let fields: Vec<_> = sorted
                .iter()
                .map(|(key, value)| format!("\"{key}\":{}", canonical(value)))
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        other => other.to_string(),
    }
}

#[test]
fn each_kind_is_one_canonical_line_and_read_back() {
    let all = all();
    let kinds: Vec<_> = all.iter().map(|record| record.event.kind()).collect();
    assert_eq!(kinds, Event::KINDS);
    for record in all {
        let line = record.encode();
        let text = std::str::from_utf8(&line).unwrap();
        assert!(
            text.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
            "{text}"
        );
        assert_eq!(canonical(&serde_json::from_str(text).unwrap()), text);
        assert_eq!(Record::parse(&line).unwrap(), record);
    }
}

#[test]
fn another_spelling_of_a_record_is_none() {
    for record in all() {
        let line = String::from_utf8(record.encode()).unwrap();
        let kind = record.event.kind();
        let others = [
            format!("{line}\n"),
            format!(" {line}"),
            line.replacen(':', ": ", 1),
            line.replacen("\"v\":1", "\"v\":1.0", 1),
            line.replacen("\"v\":1", "\"v\":2", 1),
            line.replacen("\"v\":1", "\"v\":1,\"w\":1", 1),
            line.replacen(&AT.to_string(), &format!("{AT}.0"), 1),
            line.replacen(&AT.to_string(), "9007199254740992", 1),
            line.replacen(&AT.to_string(), "-1", 1),
            line.replacen("\"kind\"", "\"kin\\u0064\"", 1),
            line.replacen(kind, "other", 1),
            line.replacen("{\"at\"", "{\"at\":1,\"at\"", 1),
            line.replacen("\"body\":{", "\"body\":{\"zzz\":null,", 1),
            line.replacen("0505", "050A", 1),
        ];
        for other in others {
            assert_ne!(other, line);
            Record::parse(other.as_bytes()).expect_err(&other);
        }
        for end in 0..line.len() {
            Record::parse(&line.as_bytes()[..end]).unwrap_err();
        }
    }
    assert_eq!(
        Record::parse(&[b' '; MAX_RECORD_BYTES + 1]),
        Err(RecordError::Long)
    );
}

#[test]
fn what_callers_and_guests_write_is_no_name() {
    let hostile = [
        "",
        "a b",
        "a\nb",
        "a\"b",
        "a\\b",
        "\u{1b}[31m",
        "\u{202e}abc",
        "é",
        "a\u{0}",
        "<b>",
        "A b",
        "-",
        "a/../b\n{\"kind\":\"ended\"}",
    ];
    for text in hostile {
        Id::parse(text).unwrap_err();
        Tool::parse(text).unwrap_err();
        Tool::parse(&format!("ab@{text}")).unwrap_err();
        Version::parse(text).unwrap_err();
        Code::parse(text).unwrap_err();
        Word::parse(text).unwrap_err();
        Action::parse(text).unwrap_err();
        Rule::parse(text).unwrap_err();
    }
    for text in hostile.iter().filter(|text| **text != "-") {
        NativeId::parse(text).unwrap_err();
        TraceParent::read(text).unwrap_err();
    }
    NativeId::parse(&"a".repeat(129)).unwrap_err();
    Id::parse(&"a".repeat(81)).unwrap_err();
    Code::parse(&"a".repeat(129)).unwrap_err();
}

#[test]
fn lists_that_do_not_fit_are_cut_and_counted() {
    let action = Action::parse(&"a".repeat(80)).unwrap();
    let attempt = Attempt {
        code: Some(Code::parse(&"c".repeat(128)).unwrap()),
        driver: Id::parse(&"d".repeat(80)).unwrap(),
        us: Number::from(u64::MAX),
    };
    let number = Number::from(u64::MAX);
    let names = (0..500).map(|number| (Word::parse(&format!("w{number}")).unwrap(), number));
    for mut record in all() {
        if let Event::Refused(body) = &mut record.event {
            body.call.mutates = vec![action.clone(); 300];
            body.call.rules = vec![Rule::parse("grant:1").unwrap(); 10_000];
            body.outcome.attempts = vec![attempt.clone(); 100];
            body.outcome.violations = names.clone().map(|(name, _)| (name, number)).collect();
            let tool = body.call.tool.as_mut().unwrap();
            tool.id = Tool::parse(&format!("{}@1.0.0-{}", "t".repeat(80), "v".repeat(58))).unwrap();
            tool.publisher = Id::parse(&"p".repeat(80)).unwrap();
            body.outcome.code = Some(Code::parse(&"c".repeat(128)).unwrap());
            for count in [
                &mut body.outcome.fuel,
                &mut body.outcome.memory,
                &mut body.outcome.us,
            ] {
                *count = number;
            }
            let line = record.encode();
            assert!(line.len() <= MAX_RECORD_BYTES, "{}", line.len());
            let read = Record::parse(&line).unwrap();
            let (call, outcome) = (read.event.call().unwrap(), read.event.outcome().unwrap());
            let kept = call.mutates.len() + call.rejected.len() + call.rules.len();
            // The entry that `cut` counted before still counts.
            assert_eq!(call.cut.get(), 10_301 + 1 - kept as u64);
            let kept = outcome.attempts.len() + outcome.violations.len();
            assert_eq!(outcome.cut.get(), 600 + 1 - kept as u64);
        }
    }
}

#[test]
fn rows_of_calls_are_as_small_as_promised() {
    let mut mutating = record_of(started(invocation(1)));
    if let Event::Started(body) = &mut mutating.event {
        body.call.person = Some(Hex([6; 16]));
    }
    for (entry, most) in [
        (read_only(invocation(1)), 900),
        (refused(invocation(1), "no_route"), 900),
    ] {
        let length = record_of(entry).encode().len();
        assert!(length <= most, "{length}");
    }
    assert!(mutating.encode().len() <= 800);
}

fn record_of(entry: toolward_ledger::Entry) -> Record {
    record(entry.event().clone())
}

proptest! {
    #[test]
    fn no_bytes_make_reading_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Record::parse(&bytes);
    }

    #[test]
    fn a_changed_byte_is_another_record_or_none(at in 0_usize..600, byte in any::<u8>()) {
        for record in all() {
            let mut line = record.encode();
            let at = at % line.len();
            let same = line[at] == byte;
            line[at] = byte;
            match Record::parse(&line) {
                Ok(read) => prop_assert_eq!(read == record, same),
                Err(_) => prop_assert!(!same),
            }
        }
    }
}

#[test]
fn a_trace_is_that_of_w3c_trace_context() {
    let parsed = TraceParent::read(TRACE).unwrap();
    assert_eq!(parsed.as_str(), TRACE);
    assert_eq!(parsed.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(parsed.span_id(), "00f067aa0ba902b7");
    // From a later version, only the fields that all versions share.
    let later = TRACE.replacen("00-", "cc-", 1);
    for more in ["", "-what-the-future-brings"] {
        let read = TraceParent::read(&format!("{later}{more}")).unwrap();
        assert_eq!(read.as_str(), later);
    }
    for invalid in [
        TRACE.replacen("00-", "ff-", 1),
        format!("{TRACE}-more"),
        format!("{later}more"),
        TRACE.to_uppercase(),
        TRACE.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
        TRACE.replace("00f067aa0ba902b7", &"0".repeat(16)),
        TRACE.replace('-', "_"),
        TRACE.replacen("4b", "4g", 1),
        TRACE.replacen("4bf92", "4-f92", 1),
        TRACE.get(..54).unwrap().to_owned(),
        format!("{}é", TRACE.get(..54).unwrap()),
    ] {
        TraceParent::read(&invalid).expect_err(&invalid);
    }
}

#[test]
fn a_record_without_what_older_versions_lack_is_read_as_it_was_written() {
    let mut record = all().remove(2);
    let Event::Ended(body) = &mut record.event else {
        panic!("{record:?}");
    };
    body.outcome.cancel_reason = None;
    body.call.as_mut().unwrap().native = Native::default();
    let line = record.encode();
    let text = std::str::from_utf8(&line).unwrap();
    assert!(
        !text.contains("native") && !text.contains("cancel_reason"),
        "{text}"
    );
    assert_eq!(Record::parse(&line).unwrap(), record);
    let other = text.replacen("\"parent\"", "\"native\":{},\"parent\"", 1);
    Record::parse(other.as_bytes()).unwrap_err();
}
