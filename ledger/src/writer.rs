//! The writer: a thread that has the ledger's files and key, and a queue in front of it.

mod core;
mod counted;
pub(crate) mod queue;
mod room;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toolward_support::helper::lock;

use crate::checkpoint::Verifier;
use crate::error::Error;
use crate::payload::{Keep, PayloadKind, PayloadLimits};
use crate::record::{Code, Event, Invocation, Opened};
use crate::recorder::{Durability, Entry, Given, Pending, Recorder};
use crate::writer::core::WriterThread;
use crate::writer::queue::{Gather, Queue};

/// The most bytes that wait to be written. Beyond this, callers wait.
pub(crate) const QUEUE_BYTES: usize = 8 * 1024 * 1024;
/// When rows that are not awaited are written.
const GATHER: Gather = Gather::new(10, usize::MAX);

/// The settings of a ledger: its directory, and the data that it keeps.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerOptions {
    /// Its directory, which is created if it is missing.
    #[serde(skip)]
    pub directory: PathBuf,
    /// Which payloads are kept.
    pub keep: Keep,
    /// How long payloads are kept, and how many bytes.
    pub payloads: PayloadLimits,
    /// A file to which each checkpoint is appended.
    #[serde(skip)]
    pub checkpoints: Option<PathBuf>,
    /// The most bytes of the file of records. From 80 % on, only awaited rows of ended calls are
    /// written for a principal that has written too much. From 90 % on, rows that are not awaited
    /// are counted instead. From 95 % on, only awaited rows of ended calls are written.
    pub max_bytes: u64,
    /// Rows after which a checkpoint is made.
    pub checkpoint_rows: u64,
    /// Time after which a checkpoint is made, if rows are new.
    pub checkpoint_interval: Duration,
}

impl LedgerOptions {
    /// The defaults: 10 GiB, a checkpoint after 4,096 rows or 10 minutes, and the defaults of
    /// [`Keep`] and [`PayloadLimits`] for payloads.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            keep: Keep::default(),
            payloads: PayloadLimits::default(),
            checkpoints: None,
            max_bytes: 10 * 1024 * 1024 * 1024,
            checkpoint_rows: 4096,
            checkpoint_interval: Duration::from_mins(10),
        }
    }
}

/// A session of a ledger: a [`Recorder`] that writes the files itself, on a separate thread.
///
/// Any number of processes may have a session of the same directory.
pub struct Writer {
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<Ended>>>,
    verifier: Verifier,
    keep: Keep,
    limits: PayloadLimits,
}

/// How a session ended, and its rows of the latest calls.
type Ended = (Result<(), Error>, WrittenRows);

impl Writer {
    /// Opens or creates a ledger, ends the unfinished calls of dead sessions, and records the start
    /// of this session.
    ///
    /// # Errors
    /// [`Error::Shorter`] and [`Error::Differs`] for a ledger that does not match its newest
    /// checkpoint, or the newest one in the file [`LedgerOptions::checkpoints`]; errors of files,
    /// disks and keys.
    pub fn open(options: LedgerOptions, opened: Opened) -> Result<Self, Error> {
        Self::open_gathering(options, opened, GATHER)
    }

    /// Like [`Writer::open`]. `gather` states when rows that are not awaited are written.
    pub(crate) fn open_gathering(
        options: LedgerOptions,
        opened: Opened,
        gather: Gather,
    ) -> Result<Self, Error> {
        let (keep, limits) = (options.keep, options.payloads);
        let core = WriterThread::open(options, opened)?;
        let verifier = core.verifier();
        let queue = Queue::new(QUEUE_BYTES, gather);
        let own = queue.clone();
        let thread = std::thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || {
                // Closes the queue however the thread ends, so that nothing waits any longer.
                let closing = CloseOnDrop(own);
                core.run(&closing.0)
            })
            .map_err(|error| Error::io("the ledger's thread", error))?;
        Ok(Self {
            queue,
            thread: Mutex::new(Some(thread)),
            verifier,
            keep,
            limits,
        })
    }

    /// The verifier of the ledger's checkpoints.
    pub fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// Writes all appended entries, records the end of the session, and makes a checkpoint.
    /// Dropping the writer does the same.
    ///
    /// # Errors
    /// Why not all entries could be written.
    pub fn close(&self) -> Result<(), Error> {
        self.end(None).0
    }

    /// An answer that comes once the queue has room for the next row.
    pub(crate) fn room(&self) -> Pending {
        self.queue.room()
    }

    /// Like [`Writer::close`], with a recorded reason if the session does not end in good order.
    /// Also returns the rows of the latest calls.
    pub(crate) fn end(&self, why: Option<Code>) -> Ended {
        self.queue.close(why);
        let thread = lock(&self.thread).take();
        match thread {
            Some(thread) => (thread.join())
                .unwrap_or_else(|_panic| (Err(Error::Closed), WrittenRows::default())),
            None => (Ok(()), WrittenRows::default()),
        }
    }
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Writer({})", self.verifier.origin())
    }
}

impl Recorder for Writer {
    fn append(&self, entry: Entry, durability: Durability) -> Pending {
        self.queue.append(entry, durability)
    }

    fn flush(&self) -> Pending {
        self.queue.flush()
    }

    fn given(&self, given: Given) -> Pending {
        self.queue.given(given)
    }

    fn keeps(&self, kind: PayloadKind, matters: bool) -> usize {
        match self.keep.keeps(kind, matters) {
            true => self.limits.each,
            false => 0,
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.close();
    }
}

struct CloseOnDrop(Arc<Queue>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close(None);
        // Dropping the unwritten rows answers their callers with an error.
        drop(self.0.take(std::time::Instant::now()));
    }
}

/// The most rows that are remembered. A call has at most two, so they cover the last 32 calls.
pub(crate) const MAX_ROWS: usize = 64;

/// The rows that a session wrote about its latest calls, without nested calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenRows {
    /// The ledger: see [`Verifier::origin`](crate::checkpoint::Verifier::origin).
    pub origin: String,
    /// The call and the number of each row, at most 64, in order.
    pub rows: VecDeque<(Invocation, u64)>,
}

impl WrittenRows {
    /// The rows of a call.
    pub fn of(&self, invocation: Invocation) -> impl Iterator<Item = u64> + '_ {
        let rows = self
            .rows
            .iter()
            .filter(move |(call, _)| *call == invocation);
        rows.map(|(_, seq)| *seq)
    }

    pub(super) fn add(&mut self, event: &Event, seq: u64) {
        let Some(invocation) = event.of_call() else {
            return;
        };
        let is_own = match event.call() {
            Some(call) => call.parent.is_none(),
            None => self.of(invocation).next().is_some(),
        };
        if !is_own {
            return;
        }
        if self.rows.len() >= MAX_ROWS {
            self.rows.pop_front();
        }
        self.rows.push_back((invocation, seq));
    }
}
