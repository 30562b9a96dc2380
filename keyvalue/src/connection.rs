//! One connection to the store, which gives up at the deadline of the operation
//! that uses it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rusqlite::OpenFlags;
use rusqlite::config::DbConfig;

use crate::error::Error;

/// Between two looks at the clock, in steps of SQLite's own machine: some
/// hundred microseconds.
const STEPS: std::ffi::c_int = 20_000;

/// The longest sleep between two attempts while another process holds the store.
const LONGEST_NAP: Duration = Duration::from_millis(4);

/// Statements that stay prepared: more than this crate has.
const STATEMENTS: usize = 48;

/// Bytes of the write-ahead log that are kept after it was written back.
const LOG_KEPT: i64 = 4 << 20;

/// A connection and the deadline that its handlers look at.
pub(crate) struct Connection {
    sql: rusqlite::Connection,
    deadline: Arc<Deadline>,
}

/// What a connection may do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Read,
    Write,
}

impl Connection {
    /// Opens an existing file.
    pub(crate) fn open(path: &Path, mode: Mode) -> Result<Self, Error> {
        // `path` is absolute and without links, so that `NOFOLLOW` refuses what
        // was put in its place, and it can't be read as a URI.
        let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_NOFOLLOW
            | match mode {
                Mode::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
                Mode::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
            };
        Self::new(rusqlite::Connection::open_with_flags(path, flags)?)
    }

    /// Opens an empty store that lives as long as this connection.
    pub(crate) fn in_memory() -> Result<Self, Error> {
        Self::new(rusqlite::Connection::open_in_memory()?)
    }

    fn new(mut sql: rusqlite::Connection) -> Result<Self, Error> {
        let deadline = Arc::new(Deadline::new());
        let seen = deadline.clone();
        sql.busy_handler(Some(move |count: i32| {
            let nap = Duration::from_micros(100)
                .saturating_mul(u32::try_from(count).unwrap_or(0).saturating_add(1));
            seen.sleep(nap.min(LONGEST_NAP))
        }))?;
        let seen = deadline.clone();
        sql.progress_handler(STEPS, Some(move || seen.passed()))?;
        sql.set_prepared_statement_cache_capacity(STATEMENTS);
        // The file lies where nobody else writes; still, nothing in it is to
        // run, and nothing outside it is to be written.
        sql.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        sql.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        sql.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
        sql.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
        sql.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
        sql.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
        // No plan depends on a parameter's value: otherwise each binding has the
        // statement prepared again, which takes ten times as long as running it.
        sql.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        sql.pragma_update(None, "temp_store", "MEMORY")?;
        sql.pragma_update(None, "cell_size_check", true)?;
        sql.pragma_update(None, "foreign_keys", true)?;
        // In WAL mode this loses nothing when a process dies, and at most the
        // newest writes when the machine does; it never damages the file.
        sql.pragma_update(None, "synchronous", "NORMAL")?;
        sql.pragma_update(None, "journal_size_limit", LOG_KEPT)?;
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

    /// Sleeps for `nap` or until the deadline; false once that has passed.
    fn sleep(&self, nap: Duration) -> bool {
        std::thread::sleep(nap.min(self.left()));
        !self.passed()
    }
}
