//! Why a file could not be opened, or a statement failed.

use rusqlite::ErrorCode;

/// `SQLITE_IOERR_SHMSIZE`.
const INDEX_SIZE: i32 = 10 | (19 << 8);

/// A file could not be opened, or a statement failed. Each crate says in its own words what that means to its
/// callers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
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
