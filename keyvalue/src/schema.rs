//! The tables of a store: made in an empty file, recognised in any other.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection as Sql, TransactionBehavior};

use crate::connection::{Connection, Mode};
use crate::error::Error;

/// What a store's file says it is: `TLKV`.
const APPLICATION: i64 = 0x544c_4b56;

/// The version of the tables below.
const VERSION: i64 = 1;

/// How long opening waits for other processes.
const PATIENCE: Duration = Duration::from_secs(10);

/// `position` orders the keys of one bucket and counts in that bucket only, so
/// that a cursor tells nothing about the buckets of others. A bucket's row holds
/// its totals, and goes with its last entry.
const TABLES: &str = "
CREATE TABLE bucket (
    id        INTEGER PRIMARY KEY,
    owner     TEXT NOT NULL,
    principal TEXT NOT NULL,
    name      TEXT NOT NULL,
    entries   INTEGER NOT NULL CHECK (entries >= 0),
    bytes     INTEGER NOT NULL CHECK (bytes >= 0),
    next      INTEGER NOT NULL,
    UNIQUE (owner, principal, name)
) STRICT;
CREATE TABLE entry (
    id       INTEGER PRIMARY KEY,
    bucket   INTEGER NOT NULL REFERENCES bucket (id),
    position INTEGER NOT NULL,
    key      TEXT NOT NULL,
    value    BLOB NOT NULL,
    UNIQUE (bucket, key),
    UNIQUE (bucket, position)
) STRICT;
";

/// Opens the file's first connection for writing, with the tables in it.
pub(crate) fn open(path: &Path) -> Result<Connection, Error> {
    let deadline = deadline();
    let mut connection = Connection::open(path, Mode::Write)?;
    connection.run(deadline, |sql| {
        look(sql)?;
        write_ahead(sql, deadline)?;
        make_tables(sql)
    })?;
    Ok(connection)
}

/// Opens another connection to a file that [`open`] accepted, for reading.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, Error> {
    let mut connection = Connection::open(path, Mode::Read)?;
    connection.run(deadline(), look)?;
    Ok(connection)
}

/// Opens an empty store in memory.
pub(crate) fn in_memory() -> Result<Connection, Error> {
    let mut connection = Connection::in_memory()?;
    connection.run(deadline(), make_tables)?;
    Ok(connection)
}

fn deadline() -> Instant {
    Instant::now()
        .checked_add(PATIENCE)
        .unwrap_or_else(Instant::now)
}

/// Turns write-ahead logging on. SQLite asks no busy handler while it does so.
fn write_ahead(sql: &Sql, deadline: Instant) -> Result<(), Error> {
    loop {
        let mode =
            sql.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match mode.map_err(Error::from) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(Error::Io(format!(
                    "expected write-ahead logging, found journal mode `{mode}`: is the store on a \
                     network file system?"
                )));
            }
            Err(Error::Busy) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(2));
            }
            Err(error) => return Err(error),
        }
    }
}

/// [`recognise`] at one moment: another process may be making the tables.
fn look(sql: &mut Sql) -> Result<bool, Error> {
    let moment = sql.transaction()?;
    recognise(&moment)
}

/// Whether the file has the tables; false for an empty file. An error for
/// anything that is not this version's.
fn recognise(sql: &Sql) -> Result<bool, Error> {
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
        _ => Err(Error::Corrupt(
            "expected the tables of a key-value store".to_owned(),
        )),
    }
}

fn make_tables(sql: &mut Sql) -> Result<(), Error> {
    // Two processes may get here: the second finds the tables of the first.
    let transaction = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if !recognise(&transaction)? {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()?;
    Ok(())
}

/// Reads the whole file and compares each bucket's totals with its entries.
pub(crate) fn check(sql: &mut Sql) -> Result<(), Error> {
    let sql = sql.transaction()?;
    let found: String = sql.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        return Err(Error::Corrupt(found));
    }
    let wrong: i64 = sql.query_row(
        "SELECT count(*) FROM bucket AS b LEFT JOIN (
             SELECT bucket, count(*) AS entries, max(position) AS last,
                    sum(octet_length(key) + octet_length(value)) AS bytes
             FROM entry GROUP BY bucket
         ) AS e ON e.bucket = b.id
         WHERE e.entries IS NOT b.entries OR e.bytes IS NOT b.bytes OR e.last >= b.next",
        [],
        |row| row.get(0),
    )?;
    let orphans: i64 = sql.query_row(
        "SELECT count(*) FROM entry WHERE bucket NOT IN (SELECT id FROM bucket)",
        [],
        |row| row.get(0),
    )?;
    match (wrong, orphans) {
        (0, 0) => Ok(()),
        _ => Err(Error::Corrupt(format!(
            "{wrong} buckets with wrong totals, {orphans} entries without a bucket"
        ))),
    }
}
