//! The state where nothing can be written: on a full or read-only disk. What was committed last may lie in the
//! write-ahead log, so that the log is read, or it is known that it was not.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rusqlite::{Connection, MAIN_DB, OpenFlags};

use crate::error::Error;
use crate::lock::PATIENCE;
use crate::schema;

/// Largest state that is read into memory, in bytes.
const LARGEST: u64 = 256 * 1024 * 1024;
/// Where a SQLite file says how it is written and read (file format, section 1.3), and what it says of one
/// without a write-ahead log.
const FORMAT: std::ops::Range<usize> = 18..20;
const ROLLBACK: [u8; 2] = [1, 1];

/// A state that can be read and not written.
pub(crate) struct Reading {
    pub(crate) sql: Connection,
    /// Whether there is a log that could not be read: newer changes may be missing.
    pub(crate) log_unread: bool,
}

/// Opens the state for reading.
pub(crate) fn open(path: &Path) -> Result<Reading, Error> {
    let opened = with_log(path);
    match opened {
        Ok(sql) => Ok(Reading {
            sql,
            log_unread: false,
        }),
        Err(error @ (Error::Corrupt(_) | Error::Version { .. } | Error::Busy)) => Err(error),
        // SQLite reads a log only beside an index of it, which it may have to make.
        Err(_) => without_log(path),
    }
}

/// As SQLite reads it, with the log.
fn with_log(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | OpenFlags::SQLITE_OPEN_READ_ONLY;
    let mut sql = Connection::open_with_flags(path, flags)?;
    sql.busy_timeout(PATIENCE)?;
    recognised(&mut sql)?;
    Ok(sql)
}

/// The file alone, from memory. Where there is no log, that is all there is.
fn without_log(path: &Path) -> Result<Reading, Error> {
    let fail = |error: std::io::Error| Error::io("the state", error);
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let log = PathBuf::from(log);
    let before = stamp(path)?;
    let mut log_unread = has_content(&log);
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(fail)?;
    file.take(LARGEST.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(fail)?;
    log_unread |= has_content(&log);
    if stamp(path)? != before {
        return Err(Error::Busy);
    }
    if bytes.len() as u64 > LARGEST {
        return Err(Error::Io(format!(
            "the state is larger than {LARGEST} bytes"
        )));
    }
    // In memory there is no log to be looked for.
    let format = bytes.get_mut(FORMAT);
    let format = format.ok_or_else(|| Error::Corrupt("the file is too short".to_owned()))?;
    format.copy_from_slice(&ROLLBACK);
    let mut sql = Connection::open_in_memory()?;
    sql.deserialize_read_exact(MAIN_DB, bytes.as_slice(), bytes.len(), true)?;
    recognised(&mut sql)?;
    Ok(Reading { sql, log_unread })
}

fn recognised(sql: &mut Connection) -> Result<(), Error> {
    schema::harden(sql)?;
    let reading = sql.transaction()?;
    match schema::recognise(&reading)? {
        true => Ok(()),
        false => Err(Error::Corrupt("expected the tables of a store".to_owned())),
    }
}

/// What changes when somebody writes the file.
fn stamp(path: &Path) -> Result<(u64, SystemTime), Error> {
    let fail = |error: std::io::Error| Error::io("the state", error);
    let metadata = std::fs::metadata(path).map_err(fail)?;
    Ok((metadata.len(), metadata.modified().map_err(fail)?))
}

/// Whether there is a log with anything in it. One that can't be looked at counts as one.
fn has_content(log: &Path) -> bool {
    match std::fs::metadata(log) {
        Ok(metadata) => metadata.len() > 0,
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}
