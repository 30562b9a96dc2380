//! The tables of the state: made in an empty file, recognised in any other.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::error::Error;
use crate::lock::PATIENCE;

/// What the file says it is: `TLST`.
const APPLICATION: i64 = 0x544c_5354;
/// The version of the tables below.
const VERSION: i64 = 1;
/// Bytes that the write-ahead log may have when the file is opened: some sixty pages, which are read in a fraction
/// of a millisecond.
const LOG_KEPT: u64 = 256 * 1024;

/// `surface` holds canonical bytes by their digest, for the bundles installed and held, and `tool` what is
/// listed and searched: both are then known without parsing a bundle. `mark` and `document` outlive what they are about. Numbers are
/// those of TOML, below 2^63; digests are text, so that people can look them up.
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

/// Opens the file, with the tables in it.
pub(crate) fn open(path: &Path) -> Result<Connection, Error> {
    // `path` is absolute and without links, so that `NOFOLLOW` refuses what was put in its place, and it
    // can't be read as a URI.
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_READ_WRITE;
    let mut sql = Connection::open_with_flags(path, flags)?;
    sql.busy_timeout(PATIENCE)?;
    harden(&sql)?;
    // What was committed survives the machine: else the state could name a file that was collected since.
    wait_for_disk(&sql, true)?;
    // All of it from one state: another process may make the tables just now.
    let reading = sql.transaction()?;
    let made = recognise(&reading)?;
    drop(reading);
    write_ahead(&sql)?;
    if made {
        shorten_log(&sql, path)?;
        return Ok(sql);
    }
    let transaction = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Two processes may get here: the second finds the tables of the first.
    if !recognise(&transaction)? {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()?;
    Ok(sql)
}

/// Settings of every connection. The file lies where nobody else writes; still, nothing in it is to run.
pub(crate) fn harden(sql: &Connection) -> rusqlite::Result<()> {
    sql.set_prepared_statement_cache_capacity(64);
    sql.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    sql.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    sql.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    sql.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    sql.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    sql.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    sql.pragma_update(None, "temp_store", "MEMORY")?;
    sql.pragma_update(None, "cell_size_check", true)?;
    sql.pragma_update(None, "foreign_keys", true)
}

/// Turns write-ahead logging on. SQLite asks no busy handler while it does so.
fn write_ahead(sql: &Connection) -> Result<(), Error> {
    let start = Instant::now();
    loop {
        let mode =
            sql.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(Error::Io(format!(
                    "expected write-ahead logging, found journal mode `{mode}`: is the state on a network \
                     file system?"
                )));
            }
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && start.elapsed() < PATIENCE =>
            {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Empties the write-ahead log if it is long. SQLite does so when the last connection is closed; where processes
/// are killed, as servers are by their clients, nobody ever does, and every process that opens the file reads the
/// whole log.
fn shorten_log(sql: &Connection, path: &Path) -> Result<(), Error> {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if std::fs::metadata(log).map_or(0, |log| log.len()) <= LOG_KEPT {
        return Ok(());
    }
    // Whoever reads or writes just now isn't waited for, and what a full or read-only disk refuses may still be
    // read: the next process tries again.
    sql.busy_timeout(Duration::ZERO)?;
    let _ = sql.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    Ok(sql.busy_timeout(PATIENCE)?)
}

/// Whether the file has the tables; false for an empty one. An error for anything that isn't this version's.
pub(crate) fn recognise(sql: &Connection) -> Result<bool, Error> {
    let application: i64 = sql.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let version: i64 = sql.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: i64 = sql.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (application, version, tables) {
        (0, 0, 0) => Ok(false),
        (APPLICATION, VERSION, 1..) => Ok(true),
        (APPLICATION, found, _) if found != VERSION => Err(Error::Version {
            found,
            expected: VERSION,
        }),
        _ => Err(Error::Corrupt("expected the tables of a store".to_owned())),
    }
}

/// Whether each commit waits until it is on the disk. Without, the write-ahead log stays consistent, and a power
/// cut may lose the last commits.
pub(crate) fn wait_for_disk(sql: &Connection, wait: bool) -> rusqlite::Result<()> {
    sql.pragma_update(None, "synchronous", if wait { "FULL" } else { "NORMAL" })
}
