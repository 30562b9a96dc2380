//! Why the ledger could not be opened, or an operation on it was refused or failed.

use std::sync::Arc;

use toolward_support::report::codes;

use crate::record::RecordError;

codes! {
    /// An operation was refused, or failed. Cheap to clone: one failure may be the answer to many
    /// callers.
    #[derive(Clone, Debug)]
    pub enum Error: Error {
        Unusable(inner: Arc<toolward_support::files::Error>) = "ledger-unusable",
            "a directory or file of the ledger can't be used safely"
            => "name another place, or repair owner and mode of this one";
        Corrupt(error: Arc<dyn std::error::Error + Send + Sync>) = "ledger-corrupt",
            "the file is not a ledger, or is damaged",
            ("the ledger is damaged, or another program's file: {error}")
            => "keep the file as evidence: move the directory away, and a new ledger is begun";
        Version { found: i64, expected: i64 } = "ledger-version", "the ledger is from another version of Toolward",
            ("the ledger has schema {found}; this version reads schema {expected}")
            => if found > expected {
                "update toolward"
            } else {
                "use the version of toolward that made the file"
            };
        /// `expected` rows were signed.
        Shorter { found: u64, expected: u64 } = "ledger-shorter", "the ledger has fewer rows than a checkpoint covers",
            ("the ledger has {found} rows; its checkpoint says {expected}")
            => "rows were deleted, or an older copy was put back: keep the file as evidence, and find out who writes \
                to the ledger's directory";
        Differs(what: &'static str) = "ledger-differs",
            "the ledger's rows are not the signed rows, or its head does not follow from its rows",
            ("the ledger differs from what it was: {what}")
            => "rows were changed: `verify` names them; find out who writes to the ledger's directory";
        Key(problem: Arc<str>) = "ledger-key",
            "the ledger's key is missing, damaged, or not the key that signed",
            ("the ledger's key can't be used: {problem}")
            => "put the key back that the ledger was begun with, or move the directory away";
        Busy = "ledger-busy", "the ledger was busy for too long"
            => "find out which process holds the ledger, and try again";
        /// The disk is full, or the ledger is as large as it may be.
        Full = "ledger-full", "no room for the ledger" => "make room on the disk, or prune the ledger";
        ReadOnly = "ledger-read-only", "the ledger can't be written to: its disk or directory is read-only"
            => "make the ledger's directory writable for its user again";
        /// The row of an ended call could not be written in time. It follows later.
        Late = "ledger-late", "the call's row is not written yet";
        Given { same_input: bool } = "id-given-before", "the id that the caller gave the call was used before",
            ("the id was used before, with {}", if *same_input { "the same input" } else { "another input" });
        Closed = "ledger-closed", "the ledger is closed";
        /// `problem` is the recorder's message, with its code.
        Recorder(problem: Arc<str>) = "recorder-failed",
            "the process that records calls has ended, or can't use the ledger; `serve` ends then",
            ("the recorder: {problem}")
            => "start the process again; what the recorder said has the cause";
        NoRow(row: Arc<str>) = "ledger-no-row", "the ledger has no such row", ("no such row: {row}")
            => "list the ledger: it shows rows and calls";
        NoCheckpoint = "ledger-no-checkpoint", "no checkpoint covers the row yet" => "make a checkpoint first";
        TooMuch = "cassette-too-much", "more calls than one cassette holds" => "name fewer rows, or one principal";
        Persons = "cassette-principals", "several principals made the calls, and a cassette holds the calls of one"
            => "name one with --principal, or say --all";
        Record(inner: RecordError) = "record-invalid", "a record of a call is not valid";
        Io(error: Arc<dyn std::error::Error + Send + Sync>) = "ledger-io", "the operating system or SQLite can't read or write the ledger",
            ("the ledger failed: {error}");
    }
}

impl Error {
    /// The error if the recorder has not answered within the waiting time.
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
