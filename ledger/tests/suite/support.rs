//! A ledger in a temporary directory, and calls to record in it.

use std::path::{Path, PathBuf};

use rusqlite::Connection;
use toolward_ledger::record::{
    Action, Approval, ApprovalEvent, Attempt, Call, Code, Ended, Event, Hex, Id, Invocation,
    Native, Number, Opened, Outcome, Part, Refused, Rule, Started, Tool, Version, Word,
};
use toolward_ledger::{
    Durability, Entry, Finding, LedgerOptions, Reader, Recorder, VerifiedLedger, Writer,
};

/// Whether tests run at their full size, as `cargo xtask long` has them.
pub(crate) fn long() -> bool {
    std::env::var_os("TOOLWARD_LONG").is_some()
}

/// A temporary directory, and the path of a ledger in it.
pub(crate) struct Place {
    pub(crate) directory: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn ledger(&self) -> PathBuf {
        self.directory.path().join("ledger")
    }

    pub(crate) fn options(&self) -> LedgerOptions {
        LedgerOptions::new(self.ledger())
    }

    pub(crate) fn open(&self) -> Writer {
        Writer::open(self.options(), opened()).unwrap()
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::open(&self.ledger(), None).unwrap()
    }

    pub(crate) fn verify(&self) -> VerifiedLedger {
        self.reader().verify(&[]).unwrap()
    }

    /// Findings as text.
    pub(crate) fn findings(&self) -> Vec<String> {
        self.verify().findings.iter().map(short).collect()
    }

    /// The file of records, opened for writing by someone else.
    pub(crate) fn records(&self) -> Connection {
        Connection::open(self.ledger().join("records.sqlite")).unwrap()
    }

    pub(crate) fn payloads(&self) -> Connection {
        Connection::open(self.ledger().join("payloads.sqlite")).unwrap()
    }

    /// The records of all rows, in order.
    pub(crate) fn lines(&self) -> Vec<String> {
        let sql = self.records();
        let all = "SELECT record FROM entry WHERE record IS NOT NULL ORDER BY seq";
        let mut statement = sql.prepare(all).unwrap();
        let rows = statement
            .query_map([], |row| row.get::<_, Vec<u8>>(0))
            .unwrap();
        rows.map(|row| String::from_utf8(row.unwrap()).unwrap())
            .collect()
    }

    pub(crate) fn count(&self, kind: &str) -> usize {
        let kind = format!(r#""kind":"{kind}""#);
        self.lines()
            .iter()
            .filter(|line| line.contains(&kind))
            .count()
    }
}

pub(crate) fn opened() -> Opened {
    Opened {
        build: Version::parse("0.1.0").unwrap(),
        bundles: vec![Hex([7; 32])],
        bundles_set: Some(Hex([8; 32])),
        confinement: Word::parse("full").unwrap(),
        cut: Number::default(),
        policy: Some(Hex([9; 32])),
    }
}

pub(crate) fn invocation(number: u64) -> Invocation {
    let mut bytes = [0; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    Invocation::from_bytes(bytes)
}

pub(crate) fn call(mutates: bool) -> Call {
    let publisher = Id::parse("acme").unwrap();
    Call {
        context: None,
        cut: Number::default(),
        driver: Some(Part {
            bundle: Hex([1; 32]),
            id: Id::parse("text-stats").unwrap(),
            publisher: publisher.clone(),
        }),
        input: None,
        mutates: match mutates {
            true => vec![Action::parse("storage:commit").unwrap()],
            false => Vec::new(),
        },
        native: Native::default(),
        parent: None,
        person: None,
        policy: Some(Hex([2; 32])),
        rejected: Vec::new(),
        rerun_of: None,
        root: None,
        rules: vec![Rule::parse("grant:3").unwrap()],
        surface: Some(Hex([3; 32])),
        tool: Some(Part {
            bundle: Hex([1; 32]),
            id: Tool::parse("text.stats@1.4.0").unwrap(),
            publisher,
        }),
    }
}

pub(crate) fn outcome(code: Option<&str>) -> Outcome {
    Outcome {
        attempts: vec![Attempt {
            code: None,
            driver: Id::parse("text-stats").unwrap(),
            us: Number::from(1234),
        }],
        cancel_reason: None,
        class: code.map(|_| Word::parse("execution_failed").unwrap()),
        code: code.map(|code| Code::parse(code).unwrap()),
        cut: Number::default(),
        detail: None,
        fuel: Number::from(123_456),
        late: false,
        limit: None,
        memory: Number::from(1_114_112),
        origin: None,
        output: None,
        repeats: None,
        stage: Word::parse("run").unwrap(),
        us: Number::from(2345),
        violations: Default::default(),
    }
}

pub(crate) fn started(id: Invocation) -> Entry {
    let event = Event::Started(Box::new(Started {
        call: call(true),
        invocation: id,
    }));
    Entry::new(event).principal("alice").matters()
}

/// The end of a call that was started.
pub(crate) fn ended(id: Invocation) -> Entry {
    let outcome = outcome(None);
    Entry::new(Event::Ended(Box::new(Ended {
        call: None,
        invocation: id,
        outcome,
    })))
}

/// A call that changes nothing: one row.
pub(crate) fn read_only(id: Invocation) -> Entry {
    let (call, outcome) = (Some(call(false)), outcome(None));
    Entry::new(Event::Ended(Box::new(Ended {
        call,
        invocation: id,
        outcome,
    })))
    .principal("alice")
}

pub(crate) fn refused(id: Invocation, code: &str) -> Entry {
    let (call, outcome) = (call(false), outcome(Some(code)));
    Entry::new(Event::Refused(Box::new(Refused {
        call,
        invocation: id,
        outcome,
    })))
    .principal("alice")
}

/// The row which states that a person is asked about a call.
pub(crate) fn asked(id: Invocation) -> Entry {
    Entry::new(Event::Approval(Approval {
        answer: None,
        event: ApprovalEvent::Asked,
        invocation: Some(id),
        person: None,
        rule: None,
        scope: None,
        tool: Some(Tool::parse("notes.append@1.0.0").unwrap()),
        until: None,
    }))
    .principal("asked")
}

pub(crate) fn durable(writer: &Writer, entry: Entry) -> Result<(), toolward_ledger::Error> {
    writer.append(entry, Durability::Disk).wait()
}

pub(crate) fn queued(writer: &Writer, entry: Entry) {
    writer.append(entry, Durability::Queued).wait().unwrap();
}

/// A ledger with this many read-only calls, a checkpoint every 100 rows, and no session.
pub(crate) fn filled(calls: u64) -> Place {
    let place = Place::new();
    let mut options = place.options();
    options.checkpoint_rows = 100;
    let writer = Writer::open(options, opened()).unwrap();
    for number in 0..calls {
        queued(&writer, read_only(invocation(number)));
        if number % 50 == 49 {
            writer.flush().wait().unwrap();
        }
    }
    writer.close().unwrap();
    place
}

/// Copies the files of a ledger.
pub(crate) fn copy(from: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    let done = std::process::Command::new("cp")
        .arg("-a")
        .arg(from)
        .arg(to)
        .status()
        .unwrap();
    assert!(done.success());
}

/// A finding in the form of the verifier in Python.
pub(crate) fn short(finding: &Finding) -> String {
    match finding {
        Finding::Row { seq } => format!("row {seq}"),
        Finding::Emptied { seq } => format!("row {seq} is empty"),
        Finding::Missing { from, to } => format!("rows {from} to {to} are missing"),
        Finding::Between { from, to } => format!("rows {from} to {to}"),
        Finding::Shorter { found, expected } => format!("{found} rows of {expected}"),
        Finding::Checkpoint { size } => format!("checkpoint {size}"),
        Finding::Head { from } => format!("head, rows from {from}"),
        Finding::Payload { commitment } => format!("payload {commitment}"),
    }
}
