//! What all SQLite files of Toolward have in common: a private place, a schema that says whose file and which
//! version it is, write-ahead logging, and settings with which nothing in a file runs.
//!
//! A crate that keeps something in a file says which tables it has ([`FileSchema`]), opens connections ([`open`]),
//! and has the tables made or recognised ([`FileSchema::prepare`]). Where a disk takes nothing any more,
//! [`open_unwritable`] still reads.
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

/// Statements that stay prepared: more than any crate has.
const STATEMENTS: usize = 64;
/// Between two attempts to turn write-ahead logging on.
const RETRY_INTERVAL: Duration = Duration::from_millis(2);

/// What a connection may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Read.
    Read,
    /// Read and write.
    Write,
}

/// Opens an existing file, whose path is that of [`crate::files::private_file`]. The connection is
/// [hardened](harden), and waits for nobody until it is told to.
///
/// # Errors
/// What SQLite says.
pub fn open(path: &Path, access: OpenMode) -> Result<Connection, Error> {
    // The path is absolute and without links, so that `NOFOLLOW` refuses what was put in its place, and it
    // can't be read as a URI.
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

/// The settings of every connection. The file lies where nobody else writes; still, nothing in it is to run,
/// and nothing outside it to be written.
///
/// # Errors
/// What SQLite says.
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

/// Whether each commit waits until it is on the disk. Without, the write-ahead log stays consistent and loses
/// nothing when a process dies; a power cut may lose the last commits.
///
/// # Errors
/// What SQLite says.
pub fn wait_for_disk(connection: &Connection, wait: bool) -> Result<(), Error> {
    let level = if wait { "FULL" } else { "NORMAL" };
    Ok(connection.pragma_update(None, "synchronous", level)?)
}

/// Turns write-ahead logging on. SQLite asks no busy handler while it does so.
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

/// Empties the write-ahead log of `path` if it is longer than `limit` bytes. SQLite does so when the last
/// connection is closed; where processes are killed, as servers are by their clients, none ever closes one, and
/// every process that opens the file reads the whole log.
///
/// No one is waited for meanwhile, and what a full or read-only disk refuses is left to the next process; then
/// the connection waits for others as long as `busy_timeout` says.
///
/// # Errors
/// What SQLite says.
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

/// A file that SQLite has next to `path`: `-wal`, the write-ahead log, and `-shm`, its index while the database is open.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut file = path.as_os_str().to_owned();
    file.push(ending);
    file.into()
}

/// `SQLITE_IOERR_SHMSIZE`.
const INDEX_SIZE: i32 = 10 | (19 << 8);

/// A file could not be opened, or a statement failed. Each crate says in its own words what that means to its
/// callers.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or folder is not private to its user.
    #[error(transparent)]
    Unusable(#[from] crate::files::Error),
    /// The file is another program's, or damaged.
    #[error("damaged, or another program's file: {0}")]
    Corrupt(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The tables are another version's.
    #[error("schema {found}; this version reads schema {expected}")]
    Version {
        /// The file's.
        found: i64,
        /// This program's.
        expected: i64,
    },
    /// Another connection held the file.
    #[error("busy for too long")]
    Busy,
    /// A progress handler ended the statement.
    #[error("interrupted: {0}")]
    Interrupted(String),
    /// The disk is full, or the file larger than this process may write.
    #[error("the disk is full")]
    Full,
    /// The file can be read and not written.
    #[error("read-only: {0}")]
    ReadOnly(String),
    /// The operating system or SQLite failed.
    #[error("{0}")]
    Io(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A failure of the operating system, and where.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
struct At {
    what: String,
    source: std::io::Error,
}

impl Error {
    /// A failure of the operating system at something.
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
            // The index of the log could not be made as long as it has to be.
            Some(_)
                if error
                    .sqlite_error()
                    .is_some_and(|own| own.extended_code == INDEX_SIZE) =>
            {
                Self::Full
            }
            // The constraints say what the crates that write keep true.
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
