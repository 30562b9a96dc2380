//! The allowed owners and modes of files and folders, and the errors for unusable ones.

use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// The error for a file or folder that can't be used.
#[derive(Debug)]
pub struct Error {
    /// The file or folder.
    pub path: PathBuf,
    /// The problem with it.
    pub problem: Problem,
}

/// A problem with a file or folder. Its text continues a sentence that starts with the path.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The path has no file name, such as `/` or a path that ends in `..`. A path beneath a folder
    /// may have only plain names.
    #[error("names no file")]
    NoName,
    /// It is not a file.
    #[error("is not a regular file")]
    NotAFile,
    /// It is not a folder.
    #[error("is not a directory")]
    NotAFolder,
    /// It is a symbolic link in a place where links are not followed.
    #[error("is a symbolic link")]
    Link,
    /// A file has further names, under which the old contents would stay.
    #[error("has {count} names (hard links)")]
    HardLinks {
        /// How many names it has.
        count: u64,
    },
    /// A file has changed since it was read.
    #[error("was changed meanwhile")]
    Changed,
    /// It belongs to a user who may not own it.
    #[error("belongs to user {owner}, not to {user}")]
    Owner {
        /// Its owner.
        owner: u32,
        /// The user of this process.
        user: u32,
    },
    /// Its mode gives others too much access.
    #[error("has mode {:03o}: others have access; use chmod go-rwx", mode & 0o777)]
    Mode {
        /// Its permissions, with the set-id bits.
        mode: u32,
    },
    /// It is larger than the limit for reading.
    #[error("is larger than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: u64,
    },
    /// The operating system failed.
    #[error("can't be {action}: {source}")]
    Io {
        /// The attempted action: `opened`, `read`, `created`, …
        action: &'static str,
        /// The system's error.
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

    /// Whether the file or folder does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(&self.problem, Problem::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

impl Problem {
    /// The problem of a private file, for a message that starts with the path.
    pub fn describe(&self) -> String {
        match self {
            Self::Owner { owner, user } => {
                format!("belongs to user {owner}, and this process is user {user}")
            }
            Self::Mode { mode } => {
                format!("has mode {mode:04o}: others than its owner can read or change it")
            }
            other => other.to_string(),
        }
    }
}

/// The error of the operating system, or an [`io::ErrorKind::Other`] with the problem.
impl From<Problem> for io::Error {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Io { source, .. } => source,
            other => Self::other(other),
        }
    }
}

/// The allowed owners of a file or folder, and the access that its mode may give to group and
/// others.
///
/// Access control lists are covered as well: with such a list, the group bits are its mask, so an
/// entry for another user shows as group access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// For a secret, or a file for this user's programs only: owned by the user, no access for
    /// others.
    Private,
    /// Owned by the user; others may read, but not write.
    Own,
    /// Owned by the user, or by root, who can write any file; others may read, but not write.
    OwnOrRoot,
}

impl Protection {
    /// Checks the metadata of a file or folder. The metadata must come from an open descriptor, or
    /// from a folder that no other user can write to. Otherwise a different file may be used later.
    ///
    /// # Errors
    /// [`Problem::Owner`] or [`Problem::Mode`].
    pub fn check(self, metadata: &Metadata) -> Result<(), Problem> {
        let user = rustix::process::geteuid().as_raw();
        self.allows(metadata.uid(), metadata.mode(), user)
    }

    /// As [`Protection::check`], for a file or folder that was opened at `path`.
    pub(crate) fn check_opened(self, opened: &File, path: &Path) -> Result<(), Error> {
        let metadata = opened.metadata();
        let metadata = metadata.map_err(|error| Error::io(path, "read", error))?;
        self.check(&metadata)
            .map_err(|problem| Error::new(path, problem))
    }

    fn allows(self, owner: u32, mode: u32, user: u32) -> Result<(), Problem> {
        let (root, forbidden) = match self {
            Self::Private => (false, 0o077),
            Self::Own => (false, 0o022),
            Self::OwnOrRoot => (true, 0o022),
        };
        if owner != user && !(root && owner == 0) {
            return Err(Problem::Owner { owner, user });
        }
        if mode & forbidden != 0 {
            return Err(Problem::Mode {
                mode: mode & 0o7777,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Protection; 3] = [Protection::Private, Protection::Own, Protection::OwnOrRoot];
    const USER: u32 = 1000;
    /// The mode of a regular file.
    const FILE: u32 = 0o100_000;

    #[test]
    fn others_never_own_it_and_root_only_where_that_is_said() {
        for protection in ALL {
            assert!(protection.allows(USER, FILE | 0o600, USER).is_ok());
            let other = protection.allows(1001, FILE | 0o600, USER);
            assert!(matches!(
                other,
                Err(Problem::Owner {
                    owner: 1001,
                    user: USER
                })
            ));
            let root = protection.allows(0, FILE | 0o600, USER);
            assert_eq!(root.is_ok(), protection == Protection::OwnOrRoot);
            assert!(protection.allows(0, FILE | 0o600, 0).is_ok());
        }
    }

    #[test]
    fn each_bit_of_group_and_others_counts() {
        for bit in [0o040, 0o020, 0o010, 0o004, 0o002, 0o001] {
            for protection in ALL {
                let forbidden = protection == Protection::Private || bit & 0o022 != 0;
                let found = protection.allows(USER, FILE | 0o600 | bit, USER);
                assert_eq!(found.is_err(), forbidden, "{protection:?} {bit:o}");
            }
        }
    }

    #[test]
    fn the_owners_bits_and_the_set_id_bits_are_nobody_elses_access() {
        for mode in [0o000, 0o400, 0o700, 0o4600, 0o2700, 0o1700] {
            for protection in ALL {
                assert!(protection.allows(USER, FILE | mode, USER).is_ok());
            }
        }
        let found = Protection::Private.allows(USER, FILE | 0o4640, USER);
        assert!(matches!(found, Err(Problem::Mode { mode: 0o4640 })));
    }
}
