//! The tables of the state: made in an empty file, recognised in any other.

use std::path::Path;
use std::time::Instant;

use rusqlite::Connection;
use rustix::fs::Access as Permission;
use rustix::io::Errno;
use toolward_sqlite::{OpenMode, Schema};

use crate::error::Error;
use crate::lock::BUSY_TIMEOUT;

/// The state's file.
pub(crate) const SCHEMA: Schema = Schema {
    // `TLST`.
    application_id: 0x544c_5354,
    version: 1,
    tables: TABLES,
    owner: "a store",
};

/// Bytes that the write-ahead log may have when the file is opened: some sixty pages, which are read in a fraction
/// of a millisecond.
const MAX_LOG_BYTES: u64 = 256 * 1024;

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
    opened(path).map_err(|error| {
        // SQLite says of a folder in which it can't make what it needs only that something failed.
        let folder = path.parent().unwrap_or(path);
        match (error, rustix::fs::access(folder, Permission::WRITE_OK)) {
            (Error::Io(_), Err(Errno::ROFS | Errno::ACCESS)) => Error::ReadOnly,
            (error, _) => error,
        }
    })
}

fn opened(path: &Path) -> Result<Connection, Error> {
    let mut sql = toolward_sqlite::open(path, OpenMode::Write)?;
    sql.busy_timeout(BUSY_TIMEOUT)?;
    // What was committed survives the machine: else the state could name a file that was collected since.
    toolward_sqlite::wait_for_disk(&sql, true)?;
    let now = Instant::now();
    let deadline = now.checked_add(BUSY_TIMEOUT).unwrap_or(now);
    if SCHEMA.prepare(&mut sql, deadline)? {
        toolward_sqlite::shorten_log(&sql, path, MAX_LOG_BYTES, BUSY_TIMEOUT)?;
    }
    Ok(sql)
}
