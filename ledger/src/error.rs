//! Why the ledger could not be opened, or an operation on it was refused or failed.

use std::sync::Arc;

use toolward_support::codes;

use crate::record::RecordError;

/// An operation was refused, or failed. Cheap to clone: one failure may be the answer to many callers.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A directory or file can't be used safely.
    #[error(transparent)]
    Unusable(Arc<toolward_support::files::Error>),
    /// The file is not a ledger's, or is damaged.
    #[error("the ledger is damaged, or another program's file: {0}")]
    Corrupt(Arc<dyn std::error::Error + Send + Sync>),
    /// The tables are another version's.
    #[error("the ledger has schema {found}; this version reads schema {expected}")]
    Version {
        /// The file's.
        found: i64,
        /// This crate's.
        expected: i64,
    },
    /// Fewer rows than a checkpoint signs.
    #[error("the ledger has {found} rows; its checkpoint says {expected}")]
    Shorter {
        /// The rows that exist.
        found: u64,
        /// The rows that were signed.
        expected: u64,
    },
    /// Other rows than were signed, or another head than the rows give.
    #[error("the ledger differs from what it was: {0}")]
    Differs(&'static str),
    /// The key is missing, damaged, or did not sign.
    #[error("the ledger's key can't be used: {0}")]
    Key(Arc<str>),
    /// Other processes used the ledger for too long.
    #[error("the ledger was busy for too long")]
    Busy,
    /// The disk is full, or the ledger as large as it may be.
    #[error("no room for the ledger")]
    Full,
    /// The ledger can be read and not written.
    #[error("the ledger can't be written to: its disk or directory is read-only")]
    ReadOnly,
    /// The row of an ended call could not be written in time. It follows later.
    #[error("the call's row is not written yet")]
    Late,
    /// A caller's id was used before.
    #[error("the id was used before, with {}", if *same_input { "the same input" } else { "another input" })]
    Given {
        /// Whether the input was the same.
        same_input: bool,
    },
    /// The writer has ended.
    #[error("the ledger is closed")]
    Closed,
    /// The process that records is gone, or failed; what it reported, with the code.
    #[error("the recorder: {0}")]
    Recorder(Arc<str>),
    /// No such row.
    #[error("no such row: {0}")]
    NoRow(Arc<str>),
    /// No checkpoint covers the row yet.
    #[error("no checkpoint covers the row yet")]
    NoCheckpoint,
    /// More calls than one cassette holds.
    #[error("more calls than one cassette holds")]
    TooMuch,
    /// The calls of a cassette are several principals'.
    #[error("the calls are several principals', and a cassette holds one's")]
    Persons,
    /// Something is not a record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The operating system or SQLite failed.
    #[error("the ledger failed: {0}")]
    Io(Arc<dyn std::error::Error + Send + Sync>),
}

codes! {
    for Error {
        Self::Unusable(_) = "ledger-unusable",
            "name another place, or repair owner and mode of this one";
        Self::Corrupt(_) = "ledger-corrupt",
            "keep the file as evidence: move the directory away, and a new ledger is begun";
        Self::Version { found, expected } = "ledger-version", if found > expected {
            "update toolward"
        } else {
            "use the version of toolward that made the file"
        };
        Self::Shorter { .. } = "ledger-shorter",
            "rows were deleted, or an older copy was put back: keep the file as evidence, and find out who writes \
             to the ledger's directory";
        Self::Differs(_) = "ledger-differs",
            "rows were changed: `verify` names them; find out who writes to the ledger's directory";
        Self::Key(_) = "ledger-key",
            "put the key back that the ledger was begun with, or move the directory away";
        Self::Busy = "ledger-busy", "find out which process holds the ledger, and try again";
        Self::Full = "ledger-full", "make room on the disk, or prune the ledger";
        Self::ReadOnly = "ledger-read-only",
            "make the ledger's directory writable for its user again";
        Self::Late = "ledger-late";
        Self::Given { .. } = "id-given-before";
        Self::Closed = "ledger-closed";
        Self::Recorder(_) = "recorder-failed", "start the process again; what the recorder said has the cause";
        Self::NoRow(_) = "ledger-no-row", "list the ledger: it shows rows and calls";
        Self::NoCheckpoint = "ledger-no-checkpoint", "make a checkpoint first";
        Self::TooMuch = "cassette-too-much", "name fewer rows, or one principal";
        Self::Persons = "cassette-principals", "name one with --principal, or say --all";
        Self::Record(_) = "record-invalid";
        Self::Io(_) = "ledger-io";
    }
}

impl Error {
    /// The recorder has not answered in time.
    #[cfg(feature = "sqlite")]
    pub(crate) fn silent() -> Self {
        Self::Recorder("it does not answer".into())
    }

    /// A failure of the operating system.
    #[cfg(feature = "sqlite")]
    pub(crate) fn io(what: &str, error: impl Into<std::io::Error>) -> Self {
        toolward_support::sqlite::Error::io(what, error).into()
    }

    pub(crate) fn corrupt(what: &'static str) -> Self {
        Self::Corrupt(Arc::from(Box::<dyn std::error::Error + Send + Sync>::from(
            what,
        )))
    }

    pub(crate) fn key(problem: impl std::fmt::Display) -> Self {
        Self::Key(problem.to_string().into())
    }
}

impl From<toolward_support::files::Error> for Error {
    fn from(error: toolward_support::files::Error) -> Self {
        use std::io::ErrorKind;
        use toolward_support::files::Problem;
        match &error.problem {
            Problem::Io { source, .. } => match source.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                    Self::Full
                }
                ErrorKind::ReadOnlyFilesystem => Self::ReadOnly,
                _ => Self::Io(Arc::new(error)),
            },
            _ => Self::Unusable(Arc::new(error)),
        }
    }
}

#[cfg(feature = "sqlite")]
impl From<toolward_support::sqlite::Error> for Error {
    fn from(error: toolward_support::sqlite::Error) -> Self {
        use toolward_support::sqlite::Error as E;
        match error {
            E::Unusable(error) => error.into(),
            E::Corrupt(problem) => Self::Corrupt(problem.into()),
            E::Version { found, expected } => Self::Version { found, expected },
            E::Busy => Self::Busy,
            E::Full => Self::Full,
            E::ReadOnly(_) => Self::ReadOnly,
            E::Io(error) => Self::Io(error.into()),
            other => Self::Io(Arc::new(other)),
        }
    }
}

#[cfg(feature = "sqlite")]
impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        toolward_support::sqlite::Error::from(error).into()
    }
}
