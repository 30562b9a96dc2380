//! The contents of a ledger after all its writers were killed.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use toolward_ledger::record::{Call, Event, Number, Opened, Version, Word};
use toolward_ledger::{LedgerOptions, Reader, Writer};

use super::session::{Answered, Kind, Seen};
use crate::ledger::place;
use crate::support::Machine;

/// Rows of read-only calls may be missing if the calls were answered shortly before the end: less
/// than this, plus twice the time that other calls waited for the disk. Rows are gathered for 20
/// ms. The rest is for a busy machine.
const YOUNG: Duration = Duration::from_millis(100);

/// The rows of calls.
#[derive(Default)]
pub(super) struct Found {
    /// How often each call has a row of each kind.
    calls: HashMap<String, HashMap<&'static str, u32>>,
    /// The file that each call was to make, by the call's `started` row.
    started: HashMap<String, String>,
}

impl Found {
    /// Returns what is left after the ledger was opened again twice.
    pub(super) fn of(machine: &Machine) -> Self {
        for _ in 0..2 {
            let writer = Writer::open(LedgerOptions::new(place(machine)), opened()).unwrap();
            writer.close().unwrap();
        }
        let mut reader = Reader::open(&place(machine), None).unwrap();
        let verified = reader.verify(&[]).unwrap();
        assert!(verified.holds(), "{verified:?}");
        let mut found = Self::default();
        for row in reader.rows(0, verified.rows).unwrap() {
            let record = row.read().unwrap();
            let Some(invocation) = record.invocation() else {
                continue;
            };
            let invocation = invocation.to_string();
            let kinds = found.calls.entry(invocation.clone()).or_default();
            *kinds.entry(record.event.kind()).or_default() += 1;
            if let Event::Started(body) = &record.event {
                let path = path(&reader, &body.call);
                let before = found.started.insert(path, invocation);
                assert_eq!(before, None, "{record:?} is the second for its file");
            }
        }
        found
    }

    fn has(&self, invocation: &str, kind: &str) -> bool {
        let kinds = self.calls.get(invocation);
        kinds.is_some_and(|kinds| kinds.contains_key(kind))
    }

    /// Whether a row states how the call ended. Also true for an answer without an id.
    fn has_end(&self, answer: &Answered) -> bool {
        let invocation = answer.invocation.as_deref();
        invocation.is_none_or(|id| self.has(id, "ended") || self.has(id, "refused"))
    }

    /// Asserts that no row exists twice, and that each call has one end.
    pub(super) fn check_rows(&self) {
        for (invocation, kinds) in &self.calls {
            let count = |kind| kinds.get(kind).copied().unwrap_or_default();
            assert!(
                kinds.values().all(|count| *count == 1),
                "{invocation}: {kinds:?}"
            );
            let ends = count("ended") + count("abandoned") + count("refused");
            assert_eq!(ends, 1, "{invocation}: {kinds:?}");
            assert!(
                count("abandoned") <= count("started"),
                "{invocation}: {kinds:?}"
            );
        }
    }

    /// Asserts that each file has the `started` row of its call.
    pub(super) fn check_files(&self, directory: &Path) {
        for file in fs::read_dir(directory).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            assert!(
                self.started.contains_key(&name),
                "{name} has no started row"
            );
        }
    }

    /// Asserts that everything that the client saw is recorded, except the latest read-only calls.
    /// Returns how long before the end these were answered.
    pub(super) fn check_seen(&self, seen: &Seen) -> Vec<Duration> {
        // How many answers had arrived when the latest call with a written end was made. The rows
        // of these answers are older.
        let mut written = 0;
        for answer in seen.results(Kind::Write) {
            let id = answer.invocation.as_deref().unwrap();
            assert!(self.has(id, "started"), "{answer:?}");
            if answer.recorded {
                assert!(self.has(id, "ended"), "{answer:?}");
                written = written.max(answer.after);
            }
        }
        for answer in seen.results(Kind::Nested) {
            assert!(self.started.contains_key(&answer.path), "{answer:?}");
        }
        for answer in seen.answers.iter().take(written) {
            assert!(self.has_end(answer), "a later row is there: {answer:?}");
        }
        let reading = seen.results(Kind::Read).chain(seen.results(Kind::Nested));
        let missing = reading.filter(|answer| !self.has_end(answer));
        let ages: Vec<Duration> = missing
            .filter_map(|answer| seen.killed.checked_duration_since(answer.at))
            .collect();
        let longest = YOUNG + 2 * seen.longest_wait;
        assert!(
            seen.only_read || ages.iter().all(|age| *age < longest),
            "{ages:?}, {longest:?}"
        );
        ages
    }

    /// Returns how many calls ended with their process.
    pub(super) fn abandoned(&self) -> usize {
        let kinds = self.calls.values();
        kinds
            .filter(|kinds| kinds.contains_key("abandoned"))
            .count()
    }
}

fn opened() -> Opened {
    Opened {
        build: Version::parse("0.1.0").unwrap(),
        bundles: Vec::new(),
        bundles_set: None,
        confinement: Word::parse("full").unwrap(),
        cut: Number::default(),
        policy: None,
    }
}

/// Returns the path that a call was to make, from its stored input.
fn path(reader: &Reader, call: &Call) -> String {
    let commitment = call.input.as_ref().and_then(|input| input.commitment);
    let kept = reader
        .payload(&commitment.expect("inputs are kept"))
        .unwrap();
    let input: Value = serde_json::from_slice(&kept.expect("it is kept").bytes).unwrap();
    input["path"].as_str().unwrap().to_owned()
}
