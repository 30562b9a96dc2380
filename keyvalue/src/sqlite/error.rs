//! What a failure of SQLite means for a bucket.

use crate::error::Error;

impl From<toolward_support::sqlite::Error> for Error {
    fn from(error: toolward_support::sqlite::Error) -> Self {
        use toolward_support::sqlite::Error as E;
        match error {
            E::Unusable(error) => Self::Unusable(error),
            E::Corrupt(problem) => Self::Corrupt(problem),
            E::Version { found, expected } => Self::Version { found, expected },
            E::Busy => Self::Busy,
            // What ends a statement is that its deadline passed.
            E::Interrupted(_) => Self::Deadline,
            E::Full => Self::Full,
            E::ReadOnly(problem) => Self::Io(problem.into()),
            E::Io(error) => Self::Io(error),
            other => Self::Io(other.into()),
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        toolward_support::sqlite::Error::from(error).into()
    }
}
