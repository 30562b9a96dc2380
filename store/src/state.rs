//! The state: its SQLite tables, its transactions, and the single connection of a process.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use rustix::fs::Access as Permission;
use rustix::io::Errno;
use toolward_signing::timestamp::Timestamp;
use toolward_support::sqlite::{FileSchema, OpenMode};

use crate::error::Error;
use crate::objects::BUSY_TIMEOUT;

/// The state's file.
pub(crate) const SCHEMA: FileSchema = FileSchema {
    // `TLST`.
    application_id: 0x544c_5354,
    version: 1,
    tables: TABLES,
    owner: "a store",
};

/// The most bytes of the write-ahead log that stay when the file is opened: some sixty pages, which
/// are read in a fraction of a millisecond.
const MAX_LOG_BYTES: u64 = 256 * 1024;

/// The tables. `surface` has the canonical bytes of the surfaces of installed and held bundles, by
/// digest. `tool` has the facts for lists and searches, so that no bundle is parsed for them. Rows
/// of `mark` and `document` stay after their bundles and documents are removed. Numbers are below
/// 2^63, as in TOML. Digests are text, so that people can look them up.
const TABLES: &str = "
CREATE TABLE surface (
    digest TEXT PRIMARY KEY,
    bytes  BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE installed (
    id         TEXT PRIMARY KEY,
    digest     TEXT NOT NULL,
    version    TEXT NOT NULL,
    sequence   INTEGER NOT NULL,
    publisher  TEXT NOT NULL,
    signers    TEXT NOT NULL,
    surface    TEXT NOT NULL REFERENCES surface (digest),
    source     TEXT NOT NULL,
    at         INTEGER NOT NULL,
    acceptance TEXT NOT NULL
) STRICT;
CREATE TABLE held (
    id        TEXT PRIMARY KEY,
    digest    TEXT NOT NULL,
    version   TEXT NOT NULL,
    sequence  INTEGER NOT NULL,
    publisher TEXT NOT NULL,
    signers   TEXT NOT NULL,
    surface   TEXT NOT NULL REFERENCES surface (digest),
    source    TEXT NOT NULL,
    at        INTEGER NOT NULL,
    back      TEXT
) STRICT;
CREATE TABLE provides (
    kind   TEXT NOT NULL,
    name   TEXT NOT NULL,
    bundle TEXT NOT NULL REFERENCES installed (id) ON DELETE CASCADE,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE tool (
    bundle      TEXT NOT NULL REFERENCES installed (id) ON DELETE CASCADE,
    major_id    TEXT NOT NULL,
    id          TEXT NOT NULL,
    title       TEXT NOT NULL,
    description TEXT NOT NULL,
    tags        TEXT NOT NULL,
    PRIMARY KEY (bundle, major_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX provides_bundle ON provides (bundle);
CREATE TABLE mark (
    publisher TEXT NOT NULL,
    id        TEXT NOT NULL,
    sequence  INTEGER NOT NULL,
    digest    TEXT NOT NULL,
    signers   TEXT NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (publisher, id, sequence)
) STRICT, WITHOUT ROWID;
CREATE TABLE document (
    kind    TEXT NOT NULL,
    name    TEXT NOT NULL,
    version INTEGER NOT NULL,
    digest  TEXT NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE decision (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    at        INTEGER NOT NULL,
    action    TEXT NOT NULL,
    subject   TEXT NOT NULL,
    publisher TEXT,
    digest    TEXT,
    verdict   TEXT NOT NULL,
    code      TEXT,
    reason    TEXT NOT NULL
) STRICT;
";

/// The connection to the state.
pub(crate) struct StateDatabase {
    sql: Mutex<Connection>,
    /// The error of each write, if the state can only be read.
    unwritable: Option<fn() -> Error>,
}

impl StateDatabase {
    /// Wraps a connection. `unwritable` makes the error of each write, if the state can only be
    /// read.
    pub(crate) fn new(sql: Connection, unwritable: Option<fn() -> Error>) -> Self {
        let sql = Mutex::new(sql);
        Self { sql, unwritable }
    }

    /// Reads in one transaction.
    pub(crate) fn read<R>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let mut sql = self.sql.lock().unwrap_or_else(PoisonError::into_inner);
        transact(&mut sql, TransactionBehavior::Deferred, work)
    }

    /// Writes in one transaction, which is rolled back if `work` fails, and waits for the disk.
    pub(crate) fn write<R>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.write_and_wait(true, work)
    }

    /// Writes in one transaction. If `wait` is false, the change survives a crash of the process at
    /// once, but survives a power cut only after a later write that waits for the disk.
    pub(crate) fn write_and_wait<R>(
        &self,
        wait: bool,
        work: impl FnOnce(&Transaction<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        if let Some(error) = self.unwritable {
            return Err(error());
        }
        // A panic rolls its transaction back, so a poisoned connection is still valid.
        let mut sql = self.sql.lock().unwrap_or_else(PoisonError::into_inner);
        // Set for each write, since only some writes wait for the disk.
        toolward_support::sqlite::wait_for_disk(&sql, wait)?;
        transact(&mut sql, TransactionBehavior::Immediate, work)
    }
}

fn transact<R>(
    sql: &mut Connection,
    behavior: TransactionBehavior,
    work: impl FnOnce(&Transaction<'_>) -> Result<R, Error>,
) -> Result<R, Error> {
    let transaction = sql.transaction_with_behavior(behavior)?;
    let result = work(&transaction)?;
    transaction.commit()?;
    Ok(result)
}

/// Opens the file, and creates the tables if they are missing.
pub(crate) fn open(path: &Path) -> Result<Connection, Error> {
    opened(path).map_err(|error| {
        // For a folder in which it can't create its files, SQLite reports only a general failure,
        // so the folder is checked here.
        let folder = path.parent().unwrap_or(path);
        match (error, rustix::fs::access(folder, Permission::WRITE_OK)) {
            (Error::Io(_), Err(Errno::ROFS | Errno::ACCESS)) => Error::ReadOnly,
            (error, _) => error,
        }
    })
}

fn opened(path: &Path) -> Result<Connection, Error> {
    let mut sql = toolward_support::sqlite::open(path, OpenMode::Write)?;
    sql.busy_timeout(BUSY_TIMEOUT)?;
    // Commits must survive a power cut. Otherwise the state could go back to naming a file that
    // garbage collection removed since.
    toolward_support::sqlite::wait_for_disk(&sql, true)?;
    let now = Instant::now();
    let deadline = now.checked_add(BUSY_TIMEOUT).unwrap_or(now);
    if SCHEMA.prepare(&mut sql, deadline)? {
        toolward_support::sqlite::shorten_log(&sql, path, MAX_LOG_BYTES, BUSY_TIMEOUT)?;
    }
    Ok(sql)
}

/// The caller's time as stored in the state: whole seconds since 1970.
pub(crate) fn seconds(now: SystemTime) -> i64 {
    now.duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_secs()).ok())
        .unwrap_or(0)
}

pub(crate) fn timestamp(seconds: i64) -> Result<Timestamp, Error> {
    Timestamp::from_unix(seconds).map_err(|refusal| Error::Corrupt(refusal.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The `synchronous` setting of commits: 1 is NORMAL, 2 is FULL.
    fn waits(sql: &Transaction<'_>) -> Result<i64, Error> {
        Ok(sql.pragma_query_value(None, "synchronous", |row| row.get(0))?)
    }

    #[test]
    fn a_write_waits_for_the_disk_also_after_one_that_did_not_and_panicked_or_failed() {
        let state = StateDatabase::new(Connection::open_in_memory().unwrap(), None);
        assert_eq!(state.write(waits).unwrap(), 2);
        assert_eq!(state.write_and_wait(false, waits).unwrap(), 1);
        assert_eq!(state.write(waits).unwrap(), 2);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            state.write_and_wait(false, |_| -> Result<(), Error> { panic!("in a test") })
        }));
        assert!(panicked.is_err());
        assert_eq!(state.write(waits).unwrap(), 2);
        let failed = state.write_and_wait(false, |_| Err::<(), _>(Error::Busy));
        assert!(failed.is_err());
        assert_eq!(state.write(waits).unwrap(), 2);
    }
}
