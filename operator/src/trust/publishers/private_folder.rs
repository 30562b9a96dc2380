//! A folder that only its user may change: another writer could change whom the user trusts.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use toolward_support::files::{Folder, Links, Lock, Problem, Protection};

use crate::error::{Code, Error, Result};
use crate::file;

/// How long to wait for another process's lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(60);

/// An open folder whose owner and mode were checked.
#[derive(Debug)]
pub(super) struct TrustFolder {
    path: PathBuf,
    opened: Folder,
}

impl TrustFolder {
    /// Opens a folder; `None` if it does not exist.
    pub(super) fn open(path: &Path) -> Result<Option<Self>> {
        let path = path.to_owned();
        match Folder::open(&path, Protection::OwnOrRoot) {
            Ok(opened) => Ok(Some(Self { path, opened })),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(refused(&path, error.problem)),
        }
    }

    /// Creates a private folder and its parents.
    pub(super) fn make(path: &Path) -> Result<Self> {
        let path = path.to_owned();
        match Folder::make(&path, Protection::OwnOrRoot) {
            Ok(opened) => Ok(Self { path, opened }),
            Err(error) => Err(match error.problem {
                Problem::Io {
                    action: "created",
                    source,
                } => Error::unwritable(&path, source),
                problem => refused(&path, problem),
            }),
        }
    }

    /// Syncs the folder to disk.
    pub(super) fn sync(&self) -> Result<()> {
        let synced = self.opened.sync();
        synced.map_err(|error| Error::unwritable(&self.path, error))
    }

    /// Locks the folder. Don't block on the network or a person while holding an exclusive lock.
    pub(super) fn lock(&self, how: Lock) -> Result<()> {
        let path = &self.path;
        toolward_support::files::lock(&self.opened, how, LOCK_TIMEOUT).map_err(|error| match error
            .kind()
        {
            ErrorKind::WouldBlock => {
                let busy = format!("{}: another process holds the folder", path.display());
                Error::failed(Code::TrustBusy, busy)
                    .hint("find out which process it is, and try again")
            }
            _ => Error::unreadable(path, error),
        })
    }
}

/// Whether no file or folder has this path.
pub(super) fn is_missing(path: &Path) -> bool {
    let found = path.symlink_metadata();
    found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Reads a file, and checks that only the user could have written it.
pub(super) fn read(path: &Path, limit: usize) -> Result<Vec<u8>> {
    let file = toolward_support::files::open(path, Protection::OwnOrRoot, Links::Refuse)
        .map_err(|error| refused(path, error.problem))?;
    file::read_opened(file, path, limit)
}

/// The error for a folder or file that can't be used.
fn refused(path: &Path, problem: Problem) -> Error {
    let unusable = |what: String| {
        let message = format!("{}: {what}", path.display());
        Error::usage(Code::TrustUnusable, message)
    };
    match problem {
        Problem::Owner { .. } => {
            unusable(problem.to_string()).hint("find out who put it there: it says whom you trust")
        }
        Problem::Mode { mode } => {
            let mode = mode & 0o777;
            unusable(format!("has mode {mode:03o}: others may write to it"))
                .hint("see that it says what you want, then take the right from them: chmod go-w")
        }
        Problem::Io { source, .. } if Errno::from_io_error(&source) == Some(Errno::LOOP) => {
            unusable("is a link, which is not followed".to_owned())
                .hint("put the file itself there: it says whom you trust")
        }
        Problem::Io { source, .. } => Error::unreadable(path, source),
        other => Error::unreadable(path, other),
    }
}
