//! The common parts of all SQLite files of Toolward: a private place, a schema that identifies the
//! file's owner and version, write-ahead logging, and settings that keep anything in a file from
//! being executed.
//!
//! A crate with such a file declares its tables ([`FileSchema`]), opens connections ([`open`]), and
//! creates or checks the tables ([`FileSchema::prepare`]). If the disk can't be written,
//! [`open_unwritable`] can still read.
//!
//! ```
//! use std::time::{Duration, Instant};
//! use toolward_support::sqlite::{OpenMode, FileSchema};
//!
//! static SCHEMA: FileSchema = FileSchema {
//!     application_id: 0x544c_4558,
//!     version: 1,
//!     tables: "CREATE TABLE visit (number INTEGER PRIMARY KEY) STRICT;",
//!     owner: "an example",
//! };
//!
//! # fn main() -> Result<(), toolward_support::sqlite::Error> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("private/example.sqlite");
//! let path = toolward_support::files::private_file(&path)?;
//! let mut connection = toolward_support::sqlite::open(&path, OpenMode::Write)?;
//! SCHEMA.prepare(&mut connection, Instant::now() + Duration::from_secs(10))?;
//! # Ok(())
//! # }
//! ```

mod schema;
mod unwritable;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

pub use schema::FileSchema;
pub use unwritable::{Unwritable, open_untouched, open_unwritable};

/// How many statements stay prepared: more than any crate has.
const STATEMENTS: usize = 64;
/// The time between two attempts to enable write-ahead logging.
const RETRY_INTERVAL: Duration = Duration::from_millis(2);

/// The access of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Read.
    Read,
    /// Read and write.
    Write,
}

/// Opens an existing file, whose path must come from [`crate::files::private_file`]. The connection
/// is [hardened](harden). It has the default busy timeout of `rusqlite`, 5 seconds.
///
/// # Errors
/// The error from SQLite.
pub fn open(path: &Path, access: OpenMode) -> Result<Connection, Error> {
    // The path is absolute and without links. So `NOFOLLOW` refuses a link that replaced a part of
    // it, and SQLite can't read it as a URI.
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW
        | match access {
            OpenMode::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
            OpenMode::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
        };
    let connection = Connection::open_with_flags(path, flags)?;
    harden(&connection)?;
    Ok(connection)
}

/// Applies the settings of every connection. Even though no other user can write the file, nothing
/// in the file may be executed, and nothing outside it may be written.
///
/// # Errors
/// The error from SQLite.
pub fn harden(connection: &Connection) -> Result<(), Error> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    for (setting, value) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DML, false),
        (DbConfig::SQLITE_DBCONFIG_DQS_DDL, false),
    ] {
        connection.set_db_config(setting, value)?;
    }
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(())
}

/// Sets whether each commit waits until it is on the disk. If not, the write-ahead log stays
/// consistent and loses nothing when a process dies, but a power cut may lose the last commits.
///
/// # Errors
/// The error from SQLite.
pub fn wait_for_disk(connection: &Connection, wait: bool) -> Result<(), Error> {
    let level = if wait { "FULL" } else { "NORMAL" };
    Ok(connection.pragma_update(None, "synchronous", level)?)
}

/// Enables write-ahead logging. SQLite does not call the busy handler for this, so the function
/// retries until `deadline`.
fn write_ahead(connection: &Connection, deadline: Instant) -> Result<(), Error> {
    loop {
        let mode = connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0));
        match mode {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(Error::Io(
                    format!(
                        "expected write-ahead logging, found journal mode `{mode}`: is the file on \
                         a network file system?"
                    )
                    .into(),
                ));
            }
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && Instant::now() < deadline =>
            {
                std::thread::sleep(RETRY_INTERVAL);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Empties the write-ahead log of `path` if it is longer than `limit` bytes. SQLite does so when
/// the last connection is closed. But if processes are killed, as clients do with servers, no
/// connection is ever closed, and every process that opens the file reads the whole log.
///
/// The function does not wait for other connections. If the log can't be emptied, for example on a
/// full or read-only disk, this is not an error: the next process can try. Afterwards the
/// connection has the given `busy_timeout`.
///
/// # Errors
/// The error from SQLite.
pub fn shorten_log(
    connection: &Connection,
    path: &Path,
    limit: u64,
    busy_timeout: Duration,
) -> Result<(), Error> {
    if std::fs::metadata(beside(path, "-wal")).map_or(0, |log| log.len()) <= limit {
        return Ok(());
    }
    connection.busy_timeout(Duration::ZERO)?;
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    Ok(connection.busy_timeout(busy_timeout)?)
}

/// The path of a file that SQLite has next to `path`: `-wal`, the write-ahead log, or `-shm`, its
/// index while the database is open.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut file = path.as_os_str().to_owned();
    file.push(ending);
    file.into()
}

/// `SQLITE_IOERR_SHMSIZE`.
const INDEX_SIZE: i32 = 10 | (19 << 8);

/// The error for a file that could not be opened, or a statement that failed. Each crate converts
/// it to its own error.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder can't be used, for example because it is not private to its user.
    #[error(transparent)]
    Unusable(#[from] crate::files::Error),
    /// The file belongs to another program, or is damaged.
    #[error("damaged, or another program's file: {0}")]
    Corrupt(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The tables have another version.
    #[error("schema {found}; this version reads schema {expected}")]
    Version {
        /// The file's version.
        found: i64,
        /// This program's version.
        expected: i64,
    },
    /// Another connection has locked the file.
    #[error("busy for too long")]
    Busy,
    /// A progress handler ended the statement.
    #[error("interrupted: {0}")]
    Interrupted(String),
    /// The disk is full, or the file is larger than this process may write.
    #[error("the disk is full")]
    Full,
    /// The file can be read, but not written.
    #[error("read-only: {0}")]
    ReadOnly(String),
    /// The operating system or SQLite failed.
    #[error("{0}")]
    Io(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A failure of the operating system, with the affected file or folder.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
struct At {
    what: String,
    source: std::io::Error,
}

impl Error {
    /// A failure of the operating system; `what` is the affected file or folder.
    #[must_use]
    pub fn io(what: &str, error: impl Into<std::io::Error>) -> Self {
        let error = error.into();
        match error.kind() {
            std::io::ErrorKind::StorageFull
            | std::io::ErrorKind::QuotaExceeded
            | std::io::ErrorKind::FileTooLarge => Self::Full,
            std::io::ErrorKind::ReadOnlyFilesystem => Self::ReadOnly(error.to_string()),
            _ => Self::Io(Box::new(At {
                what: what.to_owned(),
                source: error,
            })),
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error as E;
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::OperationInterrupted) => Self::Interrupted(error.to_string()),
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::ReadOnly) => Self::ReadOnly(error.to_string()),
            // The log's index file could not be extended to the required size.
            Some(_)
                if error
                    .sqlite_error()
                    .is_some_and(|own| own.extended_code == INDEX_SIZE) =>
            {
                Self::Full
            }
            // All crates that write a file satisfy its constraints, so a violation means that the
            // file is damaged.
            Some(
                ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::ConstraintViolation
                | ErrorCode::TypeMismatch,
            ) => Self::Corrupt(error.into()),
            Some(_) => Self::Io(error.into()),
            None => match error {
                E::FromSqlConversionFailure(..)
                | E::IntegralValueOutOfRange(..)
                | E::InvalidColumnType(..)
                | E::Utf8Error(..)
                | E::QueryReturnedNoRows => Self::Corrupt(error.into()),
                _ => Self::Io(error.into()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_not_followed_and_a_missing_file_not_made() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for access in [OpenMode::Read, OpenMode::Write] {
            open(&path, access).unwrap_err();
            assert!(!path.exists());
        }
        drop(Connection::open(&path).unwrap());
        for access in [OpenMode::Read, OpenMode::Write] {
            open(&link, access).unwrap_err();
            open(&path, access).unwrap();
        }
    }

    #[test]
    fn nothing_in_a_file_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let other = Connection::open(&path).unwrap();
        other
            .execute_batch(
                "CREATE TABLE one (number INTEGER);
                 CREATE TRIGGER run AFTER INSERT ON one BEGIN DELETE FROM one; END;
                 CREATE VIEW look AS SELECT number FROM one;",
            )
            .unwrap();
        drop(other);
        let connection = open(&path, OpenMode::Write).unwrap();
        connection
            .execute("INSERT INTO one VALUES (7)", [])
            .unwrap();
        let count: i64 = connection
            .query_row("SELECT count(*) FROM one", [], |row| row.get(0))
            .unwrap();
        assert_eq!(count, 1);
        connection.prepare("SELECT number FROM look").unwrap_err();
    }

    #[test]
    fn a_long_log_is_emptied_and_a_short_one_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let connection = open_new(&path);
        write_ahead(&connection, Instant::now()).unwrap();
        connection
            .execute_batch("CREATE TABLE one (number INTEGER); INSERT INTO one VALUES (7);")
            .unwrap();
        let length = || std::fs::metadata(beside(&path, "-wal")).unwrap().len();
        let before = length();
        shorten_log(&connection, &path, before, Duration::ZERO).unwrap();
        assert_eq!(length(), before);
        shorten_log(&connection, &path, before - 1, Duration::ZERO).unwrap();
        assert_eq!(length(), 0);
    }

    fn open_new(path: &Path) -> Connection {
        drop(Connection::open(path).unwrap());
        open(path, OpenMode::Write).unwrap()
    }
}
