//! Reads a file on a full or read-only disk, where nothing can be written. The last commits may be
//! in the write-ahead log, so the log is read, or the result states that it was not.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, MAIN_DB};

use super::{Error, FileSchema, OpenMode, beside, harden, open};

/// The largest file that is read into memory, in bytes.
const MAX_BYTES: u64 = 256 * 1024 * 1024;
/// The bytes of a SQLite file with its write and read version (file format, section 1.3), and their
/// values for a file without a write-ahead log.
const FORMAT: std::ops::Range<usize> = 18..20;
const ROLLBACK_JOURNAL: [u8; 2] = [1, 1];

/// A file that can be read, but not written.
#[derive(Debug)]
pub struct Unwritable {
    /// A connection to the file, or to a copy of it in memory.
    pub connection: Connection,
    /// Whether a log exists that could not be read, so that newer changes may be missing.
    pub log_unread: bool,
}

/// Opens a file for reading in a folder that can't be written. Waits for other connections for at
/// most `busy_timeout`.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::Version`]; [`Error::Busy`], also if the file changed while it was
/// read; [`Error::Io`], also for a file larger than 256 MiB.
pub fn open_unwritable(
    path: &Path,
    schema: &FileSchema,
    busy_timeout: Duration,
) -> Result<Unwritable, Error> {
    match with_log(path, schema, busy_timeout) {
        Ok(connection) => Ok(Unwritable {
            connection,
            log_unread: false,
        }),
        Err(error @ (Error::Corrupt(_) | Error::Version { .. } | Error::Busy)) => Err(error),
        // SQLite reads a log only with its index file, which it may be unable to create here.
        Err(_) => without_log(path, schema),
    }
}

/// Opens a file for reading, and creates no file next to it. Waits for other connections for at
/// most `busy_timeout`. If the log has no index file, no other process has the file open. The
/// connection is then to a copy in memory, since SQLite would create an index file, which a reader
/// can't remove.
///
/// # Errors
/// The errors of [`open_unwritable`].
pub fn open_untouched(
    path: &Path,
    schema: &FileSchema,
    busy_timeout: Duration,
) -> Result<Unwritable, Error> {
    match beside(path, "-shm").exists() {
        true => open_unwritable(path, schema, busy_timeout),
        false => without_log(path, schema),
    }
}

/// Opens the file with its log, as SQLite normally does.
fn with_log(path: &Path, schema: &FileSchema, busy_timeout: Duration) -> Result<Connection, Error> {
    let mut connection = open(path, OpenMode::Read)?;
    connection.busy_timeout(busy_timeout)?;
    schema.require(&mut connection)?;
    Ok(connection)
}

/// Opens a copy of the file in memory, without its log. If no log exists, the copy is complete.
fn without_log(path: &Path, schema: &FileSchema) -> Result<Unwritable, Error> {
    let log = beside(path, "-wal");
    let before = stamp(path)?;
    let mut log_unread = has_content(&log);
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(fail)?;
    file.take(MAX_BYTES.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(fail)?;
    log_unread |= has_content(&log);
    if stamp(path)? != before {
        return Err(Error::Busy);
    }
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Error::Io(
            format!("the file is larger than {MAX_BYTES} bytes").into(),
        ));
    }
    // The copy in memory has no log, so it must not request one.
    let format = bytes.get_mut(FORMAT);
    let format = format.ok_or_else(|| Error::Corrupt("the file is too short".into()))?;
    format.copy_from_slice(&ROLLBACK_JOURNAL);
    let mut connection = Connection::open_in_memory()?;
    connection.deserialize_read_exact(MAIN_DB, bytes.as_slice(), bytes.len(), true)?;
    harden(&connection)?;
    schema.require(&mut connection)?;
    Ok(Unwritable {
        connection,
        log_unread,
    })
}

/// The size and the time of the last change, which differ after a write.
fn stamp(path: &Path) -> Result<(u64, SystemTime), Error> {
    let metadata = std::fs::metadata(path).map_err(fail)?;
    Ok((metadata.len(), metadata.modified().map_err(fail)?))
}

/// Whether a log exists that is not empty. A log that can't be examined counts as not empty.
fn has_content(log: &Path) -> bool {
    match std::fs::metadata(log) {
        Ok(metadata) => metadata.len() > 0,
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

fn fail(error: std::io::Error) -> Error {
    Error::io("the file", error)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const SCHEMA: FileSchema = FileSchema {
        application_id: 0x544c_4558,
        version: 1,
        tables: "CREATE TABLE one (number INTEGER PRIMARY KEY) STRICT;",
        owner: "an example",
    };

    fn count(connection: &Connection) -> i64 {
        let counted = connection.query_row("SELECT count(*) FROM one", [], |row| row.get(0));
        counted.unwrap()
    }

    #[test]
    fn a_copy_in_memory_has_what_is_in_the_file_and_says_whether_a_log_was_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = crate::files::private_file(&folder.path().join("private/file")).unwrap();
        let mut writer = open(&path, OpenMode::Write).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        assert!(!SCHEMA.prepare(&mut writer, deadline).unwrap());
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        writer.query_row(checkpoint, [], |_| Ok(())).unwrap();
        writer.execute("INSERT INTO one VALUES (7)", []).unwrap();
        let copy = without_log(&path, &SCHEMA).unwrap();
        assert!(copy.log_unread);
        assert_eq!(count(&copy.connection), 0);
        let with_log = open_unwritable(&path, &SCHEMA, Duration::ZERO).unwrap();
        assert!(!with_log.log_unread);
        assert_eq!(count(&with_log.connection), 1);
        drop(with_log);
        // The last writer empties the log when it closes.
        drop(writer);
        let copy = without_log(&path, &SCHEMA).unwrap();
        assert!(!copy.log_unread);
        assert_eq!(count(&copy.connection), 1);
        let written = copy.connection.execute("INSERT INTO one VALUES (8)", []);
        written.unwrap_err();
    }

    #[test]
    fn a_file_that_is_no_database_is_damaged_with_a_log_or_without() {
        let folder = tempfile::tempdir().unwrap();
        let path = crate::files::private_file(&folder.path().join("private/file")).unwrap();
        for content in ["", "short", &"a diary of some length ".repeat(100)] {
            std::fs::write(&path, content).unwrap();
            let error = open_unwritable(&path, &SCHEMA, Duration::ZERO).unwrap_err();
            assert!(matches!(error, Error::Corrupt(_)), "{error}");
            let error = without_log(&path, &SCHEMA).unwrap_err();
            assert!(matches!(error, Error::Corrupt(_)), "{error}");
        }
    }
}
