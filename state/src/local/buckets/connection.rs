//! One connection to the store, which gives up at the deadline of the operation
//! that uses it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use toolward_support::sqlite::OpenMode;

use crate::error::Error;

/// Between two looks at the clock, in steps of SQLite's own machine: some
/// hundred microseconds.
const STEPS_PER_CHECK: std::ffi::c_int = 20_000;

/// The longest sleep between two attempts while another process holds the store.
const MAX_RETRY_INTERVAL: Duration = Duration::from_millis(4);

/// Bytes of the write-ahead log that are kept after it was written back.
const MAX_LOG_BYTES: i64 = 4 << 20;

/// A connection and the deadline that its handlers look at.
pub(crate) struct Connection {
    sql: rusqlite::Connection,
    deadline: Arc<Deadline>,
}

impl Connection {
    /// Opens an existing file.
    pub(crate) fn open(path: &Path, access: OpenMode) -> Result<Self, Error> {
        Self::new(toolward_support::sqlite::open(path, access)?)
    }

    /// Opens an empty store that lives as long as this connection.
    pub(crate) fn in_memory() -> Result<Self, Error> {
        let sql = rusqlite::Connection::open_in_memory()?;
        toolward_support::sqlite::harden(&sql)?;
        Self::new(sql)
    }

    fn new(mut sql: rusqlite::Connection) -> Result<Self, Error> {
        let deadline = Arc::new(Deadline::new());
        let seen = deadline.clone();
        sql.busy_handler(Some(move |count: i32| {
            let interval = Duration::from_micros(100)
                .saturating_mul(u32::try_from(count).unwrap_or(0).saturating_add(1));
            seen.sleep(interval.min(MAX_RETRY_INTERVAL))
        }))?;
        let seen = deadline.clone();
        sql.progress_handler(STEPS_PER_CHECK, Some(move || seen.passed()))?;
        // No plan depends on a parameter's value: otherwise each binding has the
        // statement prepared again, which takes ten times as long as running it.
        sql.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        // At most the newest writes are lost when the machine dies.
        toolward_support::sqlite::wait_for_disk(&sql, false)?;
        sql.pragma_update(None, "journal_size_limit", MAX_LOG_BYTES)?;
        Ok(Self { sql, deadline })
    }

    /// Runs `work`, which fails with [`Error::Busy`] or [`Error::Deadline`] when
    /// the deadline passes. A transaction that is left open is rolled back.
    pub(crate) fn run<R>(
        &mut self,
        deadline: Instant,
        work: impl FnOnce(&mut rusqlite::Connection) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.deadline.set(Some(deadline));
        let result = if self.deadline.passed() {
            Err(Error::Deadline)
        } else {
            work(&mut self.sql)
        };
        // Rolling back must not be interrupted.
        self.deadline.set(None);
        if !self.sql.is_autocommit() {
            self.sql.execute_batch("ROLLBACK")?;
        }
        result
    }
}

/// A point in time that handlers on the same thread read.
struct Deadline {
    start: Instant,
    /// Nanoseconds after `start`.
    at: AtomicU64,
}

impl Deadline {
    fn new() -> Self {
        Self {
            start: Instant::now(),
            at: AtomicU64::new(u64::MAX),
        }
    }

    fn set(&self, deadline: Option<Instant>) {
        let at = deadline.map_or(u64::MAX, |deadline| {
            let after = deadline.saturating_duration_since(self.start);
            u64::try_from(after.as_nanos()).unwrap_or(u64::MAX)
        });
        self.at.store(at, Ordering::Relaxed);
    }

    fn left(&self) -> Duration {
        let at = Duration::from_nanos(self.at.load(Ordering::Relaxed));
        at.saturating_sub(self.start.elapsed())
    }

    fn passed(&self) -> bool {
        self.left().is_zero()
    }

    /// Sleeps this long or until the deadline; false once that has passed.
    fn sleep(&self, interval: Duration) -> bool {
        std::thread::sleep(interval.min(self.left()));
        !self.passed()
    }
}

impl From<toolward_support::sqlite::Error> for Error {
    fn from(error: toolward_support::sqlite::Error) -> Self {
        use toolward_support::sqlite::Error as E;
        match error {
            E::Unusable(error) => Self::Unusable(error),
            E::Corrupt(problem) => Self::Corrupt(problem),
            E::Version { found, expected } => Self::Version { found, expected },
            E::Busy => Self::Busy,
            // What ends a statement is that its deadline passed.
            E::Interrupted(_) => Self::Deadline,
            E::Full => Self::Full,
            E::ReadOnly(problem) => Self::Io(problem.into()),
            E::Io(error) => Self::Io(error),
            other => Self::Io(other.into()),
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        toolward_support::sqlite::Error::from(error).into()
    }
}
