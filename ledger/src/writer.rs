//! The writer: a thread that has the ledger's files and key, and a queue in front of it.

mod core;
mod late;
pub(crate) mod queue;
mod refusals;
mod shares;
mod written;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

pub(crate) use core::{payloads_lost, publish};
pub(crate) use written::MAX_ROWS;
pub use written::WrittenRows;

use crate::checkpoint::Verifier;
use crate::entry::{Entry, Given, Repeated};
use crate::error::Error;
use crate::payload::{Keep, PayloadKind, PayloadLimits};
use crate::pending::Pending;
use crate::record::{Code, Opened};
use crate::recorder::{Durability, Recorder};
use crate::writer::core::Core;
use crate::writer::queue::{Gather, Queue};

/// Bytes that wait to be written: beyond it, callers wait.
pub(crate) const QUEUE_BYTES: usize = 8 * 1024 * 1024;
/// How long rows that nobody waits for are gathered.
const GATHER: Duration = Duration::from_millis(10);

/// Where a ledger is, and what it keeps.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Its directory, which is made where it is missing.
    pub directory: PathBuf,
    /// Which payloads are kept.
    pub keep: Keep,
    /// How long, and how much.
    pub payloads: PayloadLimits,
    /// A file that each checkpoint is appended to.
    pub checkpoints: Option<PathBuf>,
    /// The most bytes of the file of records. From 90 % on, rows that nobody waits for are counted instead; from
    /// 95 % on, only the rows of ended calls are written.
    pub max_bytes: u64,
    /// Rows after which a checkpoint is made.
    pub checkpoint_rows: u64,
    /// Time after which one is made, if there are new rows.
    pub checkpoint_interval: Duration,
}

impl Options {
    /// The defaults: 10 GiB, a checkpoint each 4,096 rows and 10 minutes, payloads as [`Keep`] and
    /// [`PayloadLimits`] have them by default.
    #[must_use]
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

/// A session of a ledger: a [`Recorder`] that writes the files itself, on a thread of its own.
///
/// Any number of processes may have one for the same directory.
pub struct Writer {
    queue: Arc<Queue>,
    thread: Mutex<Option<JoinHandle<Ended>>>,
    verifier: Verifier,
    keep: Keep,
    limits: PayloadLimits,
}

/// How a session ended, and what it wrote of its latest calls.
type Ended = (Result<(), Error>, WrittenRows);

impl Writer {
    /// Opens or makes a ledger, ends what dead sessions left, and records that this one begins.
    ///
    /// # Errors
    /// [`Error::Shorter`] and [`Error::Differs`] for a ledger that does not hold against its newest checkpoint;
    /// those of files, disks and keys.
    pub fn open(options: Options, opened: Opened) -> Result<Self, Error> {
        Self::open_gathering(options, opened, Gather::For(GATHER))
    }

    /// [`Writer::open`], with rows that nobody waits for gathered as `gather` says.
    pub(crate) fn open_gathering(
        options: Options,
        opened: Opened,
        gather: Gather,
    ) -> Result<Self, Error> {
        let (keep, limits) = (options.keep, options.payloads);
        let core = Core::open(options, opened)?;
        let verifier = core.verifier();
        let queue = Queue::new(QUEUE_BYTES, gather);
        let own = queue.clone();
        let thread = std::thread::Builder::new()
            .name("ledger".to_owned())
            .spawn(move || {
                // Whatever ends the thread: nobody waits for it any more.
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

    /// Whose checkpoints the ledger has.
    #[must_use]
    pub fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// Writes what was appended, records that the session ends, and makes a checkpoint. Dropping the writer does
    /// the same.
    ///
    /// # Errors
    /// Why not all of it could be written.
    pub fn close(&self) -> Result<(), Error> {
        self.end(None).0
    }

    /// [`Writer::close`], with a record that says why the session ends where that is not in good order.
    ///
    /// # Errors
    /// As [`Writer::close`].
    pub fn close_because(&self, why: Code) -> Result<(), Error> {
        self.end(Some(why)).0
    }

    /// Answered once the next row gets into the queue without waiting.
    pub(crate) fn room(&self) -> Pending<()> {
        self.queue.room()
    }

    /// Has rows written that were gathered until now.
    pub(crate) fn take_gathered(&self) {
        self.queue.take_gathered();
    }

    /// [`Writer::close`] or, with a reason, [`Writer::close_because`]; and the rows of the latest calls.
    pub(crate) fn end(&self, why: Option<Code>) -> Ended {
        self.queue.close(why);
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
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
    fn append(&self, entry: Entry, durability: Durability) -> Pending<()> {
        self.queue.append(entry, durability)
    }

    fn flush(&self) -> Pending<()> {
        self.queue.flush()
    }

    fn given(&self, given: Given) -> Pending<Option<Repeated>> {
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
        // Drops what nobody will write, which answers those who wait for it.
        drop(self.0.take(std::time::Instant::now()));
    }
}
