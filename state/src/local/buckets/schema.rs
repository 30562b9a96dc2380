//! The tables of a store: made in an empty file, recognised in any other.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::{Connection as Sql, TransactionBehavior};
use toolward_support::sqlite::{FileSchema, OpenMode};

use super::connection::Connection;
use crate::error::Error;

/// The store's file.
const SCHEMA: FileSchema = FileSchema {
    // `TLKV`.
    application_id: 0x544c_4b56,
    version: 1,
    tables: TABLES,
    owner: "a key-value store",
};

/// How long opening waits for other processes.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

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
    let mut connection = Connection::open(path, OpenMode::Write)?;
    connection.run(deadline, |sql| {
        SCHEMA.prepare(sql, deadline)?;
        // A file that can't be written fails here, not in a call.
        sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
        Ok(())
    })?;
    Ok(connection)
}

/// Opens another connection to a file that [`open`] accepted, for reading.
pub(crate) fn open_reader(path: &Path) -> Result<Connection, Error> {
    let mut connection = Connection::open(path, OpenMode::Read)?;
    connection.run(deadline(), |sql| Ok(SCHEMA.require(sql)?))?;
    Ok(connection)
}

/// Opens an empty store in memory.
pub(crate) fn in_memory() -> Result<Connection, Error> {
    let mut connection = Connection::in_memory()?;
    connection.run(deadline(), |sql| Ok(SCHEMA.make(sql)?))?;
    Ok(connection)
}

fn deadline() -> Instant {
    let now = Instant::now();
    now.checked_add(OPEN_TIMEOUT).unwrap_or(now)
}

/// Reads the whole file and compares each bucket's totals with its entries.
pub(crate) fn check(sql: &mut Sql) -> Result<(), Error> {
    let sql = sql.transaction()?;
    let found: String = sql.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        return Err(Error::Corrupt(found.into()));
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
        _ => Err(Error::Corrupt(
            format!("{wrong} buckets with wrong totals, {orphans} entries without a bucket").into(),
        )),
    }
}
