//! Calls are recorded in a ledger: every call when it ends, and a call that changes something also
//! before it starts.

mod approvals;
mod failing;
mod floods;
mod kept;
mod named;
mod order;
mod refused;
mod replaying;
mod rows;
mod uncommon;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use toolward_host::{Host, HostBuilder, Reply, Request};
use toolward_ledger::payload::Keep;
use toolward_ledger::record::{Event, Number, Opened, Version, Word};
use toolward_ledger::{LedgerOptions, Reader, Recorder, Writer};
use toolward_policy::Policy;

use crate::fixture::{Extra, Fixture};

/// A ledger and four tools: `hostile.changes` changes something, `hostile.run` may call it,
/// `hostile.reads` changes nothing, and `hostile.closed` is not granted.
struct World {
    fixture: Fixture,
    place: TempDir,
    writer: Arc<Writer>,
}

const CHANGES: &str = "mutates: [\"database:counters\"]\n";

impl World {
    fn new(keep: Keep) -> Self {
        Self::with(keep, "")
    }

    /// A world with more lines in the contracts.
    fn with(keep: Keep, more: &str) -> Self {
        let reads = format!("requires: {{ tools: [hostile.changes] }}\n{more}");
        let fixture = Fixture::new(Extra {
            tool: &reads,
            ..Extra::default()
        });
        fixture.tool("hostile.changes", &format!("{CHANGES}{more}"));
        fixture.driver("changes", "hostile.changes", Extra::default());
        fixture.tool("hostile.reads", more);
        fixture.driver("reads", "hostile.reads", Extra::default());
        fixture.tool("hostile.closed", "requires: { tools: [hostile.none] }\n");
        fixture.driver("closed", "hostile.closed", Extra::default());
        let place = tempfile::tempdir().unwrap();
        let mut options = LedgerOptions::new(place.path().join("ledger"));
        options.keep = keep;
        let opened = Opened {
            build: Version::parse("0.1.0").unwrap(),
            bundles: Vec::new(),
            bundles_set: None,
            confinement: Word::parse("none").unwrap(),
            cut: Number::default(),
            policy: None,
        };
        let writer = Arc::new(Writer::open(options, opened).unwrap());
        Self {
            fixture,
            place,
            writer,
        }
    }

    fn directory(&self) -> PathBuf {
        self.place.path().join("ledger")
    }

    fn builder(&self) -> HostBuilder {
        let publisher = format!("dev:{}", self.fixture.path().display());
        let policy = format!(
            "[[grant]]\npublisher = {publisher:?}\npreapproved = true\n\
             requires = [\"tool:hostile.changes\"]\nmutates = [\"database:counters\"]\n"
        );
        let policy = Policy::from_toml(&policy).unwrap();
        self.fixture.builder().policy(policy)
    }

    fn host(&self) -> Host {
        self.with_recorder(self.writer.clone())
    }

    fn with_recorder(&self, recorder: Arc<dyn Recorder>) -> Host {
        self.builder().recorder(recorder).build().unwrap()
    }

    fn reader(&self) -> Reader {
        Reader::open(&self.directory(), None).unwrap()
    }

    /// The rows about calls that are on the disk, in order.
    fn written(&self) -> Vec<Event> {
        written(&self.reader())
    }

    /// Flushes the ledger, and returns the rows about calls.
    fn events(&self) -> Vec<Event> {
        self.writer.flush().wait().unwrap();
        self.written()
    }

    /// The bytes of all ledger files, and of the log of the payloads' file.
    fn bytes(&self) -> Vec<u8> {
        self.writer.flush().wait().unwrap();
        let files = std::fs::read_dir(self.directory()).unwrap();
        let files = files.map(|file| file.unwrap().path());
        let files = files.filter(|path| path.is_file());
        files
            .flat_map(|path| std::fs::read(path).unwrap())
            .collect()
    }
}

fn written(reader: &Reader) -> Vec<Event> {
    let rows = 0..reader.size().unwrap();
    let events = rows.map(|seq| reader.row(seq).unwrap().read().unwrap().event);
    events
        .filter(|event| !matches!(event, Event::Opened(_)))
        .collect()
}

fn kinds(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(Event::kind).collect()
}

async fn call(host: &Host, tool: &str, input: Value) -> Reply {
    host.call(Request::with_value(tool, input).principal("ada"))
        .await
}

/// Calls a tool, and drops the call after a while.
async fn give_up(host: &Host, tool: &str, input: Value) {
    let call = call(host, tool, input);
    let ended = tokio::time::timeout(Duration::from_millis(500), call).await;
    assert!(ended.is_err(), "still running");
}
