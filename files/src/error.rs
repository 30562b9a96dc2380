//! Why a file or folder can't be used.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A file or folder that can't be used, and why.
#[derive(Debug)]
pub struct Error {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a file or folder. Its text reads on after the path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The path ends in `..` or `/`.
    #[error("names no file")]
    NoName,
    /// A file was expected, and something else is there.
    #[error("is not a regular file")]
    NotAFile,
    /// A folder was expected, and something else is there.
    #[error("is not a directory")]
    NotAFolder,
    /// It is a symbolic link, and none is followed there.
    #[error("is a symbolic link")]
    Link,
    /// A file has further names, by which it would keep its old contents.
    #[error("has {count} names (hard links)")]
    HardLinks {
        /// How many names it has.
        count: u64,
    },
    /// A file is not as it was when it was read.
    #[error("was changed meanwhile")]
    Changed,
    /// It belongs to a user who may not own it.
    #[error("belongs to user {owner}, not to {user}")]
    Owner {
        /// Whose it is.
        owner: u32,
        /// The user of this process.
        user: u32,
    },
    /// Others may do more with it than they should.
    #[error("has mode {:03o}: others have access; use chmod go-rwx", mode & 0o777)]
    Mode {
        /// Its permissions, with the set-id bits.
        mode: u32,
    },
    /// It is larger than what is read.
    #[error("is larger than {limit} bytes")]
    TooLarge {
        /// The most that is read, in bytes.
        limit: u64,
    },
    /// The operating system failed.
    #[error("can't be {action}: {source}")]
    Io {
        /// What was tried: `opened`, `read`, `created`, …
        action: &'static str,
        /// How it failed.
        source: io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.path.display(), self.problem)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.problem)
    }
}

impl Error {
    pub(crate) fn new(path: &Path, problem: Problem) -> Self {
        Self {
            path: path.to_owned(),
            problem,
        }
    }

    /// A failure of the operating system.
    pub(crate) fn io(path: &Path, action: &'static str, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        Self::new(path, Problem::Io { action, source })
    }

    /// Whether nothing is there.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(&self.problem, Problem::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// The failure of the operating system, or an [`io::ErrorKind::Other`] that says what is wrong.
impl From<Problem> for io::Error {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Io { source, .. } => source,
            other => Self::other(other),
        }
    }
}
