//! The tables of both files.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use toolward_support::files::{Folder, Problem, Protection};
use toolward_support::sqlite::{OpenMode, Schema};

use crate::error::Error;

/// Rows that are pruned together: those of one bundle of entries of tlog-tiles.
pub(crate) const GROUP: u64 = 256;

/// How long one process waits for others.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes that the write-ahead log may have when a file is opened.
const MAX_LOG_BYTES: u64 = 4 * 1024 * 1024;

/// Rows, and nothing that people wrote.
pub(crate) const RECORDS: Schema = Schema {
    // `TLLR`.
    application_id: 0x544c_4c52,
    version: 1,
    tables: "
-- `record` is NULL once it was pruned.
CREATE TABLE entry (seq INTEGER PRIMARY KEY, leaf BLOB NOT NULL, record BLOB) STRICT;
CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), size INTEGER NOT NULL, edge BLOB NOT NULL) STRICT;
INSERT INTO head VALUES (1, 0, x'');
-- `edge` is the tree's at that size: its root is the one that the note signs.
CREATE TABLE checkpoint (size INTEGER PRIMARY KEY, note TEXT NOT NULL, edge BLOB NOT NULL) STRICT;
-- Calls that were started and have not ended: what their sessions leave is abandoned by the next one.
CREATE TABLE unfinished (invocation BLOB PRIMARY KEY, session BLOB NOT NULL) STRICT, WITHOUT ROWID;
-- Ids that callers gave. Principal and input are keyed hashes.
CREATE TABLE given (principal BLOB NOT NULL, tool TEXT NOT NULL, id BLOB NOT NULL, input BLOB NOT NULL,
                    seq INTEGER NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (principal, tool, id)) STRICT, WITHOUT ROWID;
",
    owner: "a ledger's records",
};

/// What people and tools wrote. It may be lost as a whole.
pub(crate) const PAYLOADS: Schema = Schema {
    // `TLLP`.
    application_id: 0x544c_4c50,
    version: 1,
    tables: "
CREATE TABLE payload (commitment BLOB PRIMARY KEY, salt BLOB NOT NULL, kind TEXT NOT NULL, person BLOB, invocation BLOB,
                      at INTEGER NOT NULL, until INTEGER NOT NULL, bytes BLOB NOT NULL) STRICT;
CREATE INDEX payload_until ON payload (until);
CREATE TABLE stored (one INTEGER PRIMARY KEY CHECK (one = 1), bytes INTEGER NOT NULL) STRICT;
INSERT INTO stored VALUES (1, 0);
CREATE TABLE person (id BLOB PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT, WITHOUT ROWID;
",
    owner: "a ledger's payloads",
};

/// Opens a file for writing, and makes it where it is missing.
pub(crate) fn open(path: &Path, schema: &Schema) -> Result<Connection, Error> {
    let path = toolward_support::files::private_file(path)?;
    let mut sql = toolward_support::sqlite::open(&path, OpenMode::Write)?;
    sql.busy_timeout(BUSY_TIMEOUT)?;
    sql.pragma_update(None, "secure_delete", true)?;
    let now = Instant::now();
    let deadline = now.checked_add(BUSY_TIMEOUT).unwrap_or(now);
    if schema.prepare(&mut sql, deadline)? {
        toolward_support::sqlite::shorten_log(&sql, &path, MAX_LOG_BYTES, BUSY_TIMEOUT)?;
    }
    Ok(sql)
}

/// Opens an existing file for reading, also where the disk takes nothing any more. Says whether there is a log that
/// could not be read then: the newest rows may be in it.
pub(crate) fn open_to_read(path: &Path, schema: &Schema) -> Result<(Connection, bool), Error> {
    let path = existing(path)?;
    let opened = toolward_support::sqlite::open(&path, OpenMode::Read).and_then(|mut sql| {
        sql.busy_timeout(BUSY_TIMEOUT)?;
        schema.require(&mut sql)?;
        Ok(sql)
    });
    match opened {
        // A full disk has no room for the index of the log.
        Err(
            toolward_support::sqlite::Error::Full
            | toolward_support::sqlite::Error::Io(_)
            | toolward_support::sqlite::Error::ReadOnly(_),
        ) => {
            let unwritable =
                toolward_support::sqlite::open_unwritable(&path, schema, BUSY_TIMEOUT)?;
            Ok((unwritable.connection, unwritable.log_unread))
        }
        opened => Ok((opened?, false)),
    }
}

/// The path of a private file that is there, absolute and without links. It is not opened: closing it would drop
/// the locks that other connections of this process have on it.
fn existing(path: &Path) -> Result<PathBuf, Error> {
    let fail = |error| Error::io("the ledger", error);
    let name = path.file_name().unwrap_or_default();
    let folder = path.parent().unwrap_or(path).canonicalize().map_err(fail)?;
    Folder::open(&folder, Protection::Private)?;
    let path = folder.join(name);
    let metadata = path.symlink_metadata().map_err(fail)?;
    let checked = match metadata.is_file() {
        true => Protection::Private.check(&metadata),
        false => Err(Problem::NotAFile),
    };
    checked.map_err(|problem| toolward_support::files::Error {
        path: path.clone(),
        problem,
    })?;
    Ok(path)
}
