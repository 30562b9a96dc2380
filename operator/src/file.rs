//! Small files of the user, files of this library, and the folders of trust. Reads are bounded, and
//! writes are atomic. Only the user or root may change the folders of trust, since another writer
//! could change whom the user trusts.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use toolward_support::files::{Folder, Links, Lock, Problem, Protection};

use crate::{Code, Error, Result};

/// The mode of files that others may read, before the umask.
const PUBLIC_MODE: u32 = 0o644;
/// The mode of files that others must not read.
const PRIVATE_MODE: u32 = 0o600;
/// How long to wait for another process's lock on a [`StateFile`].
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// Reads a file of at most `limit` bytes. Refuses anything but a regular file, without blocking on
/// it.
pub fn read(path: &Path, limit: usize) -> Result<Vec<u8>> {
    let file =
        toolward_support::files::open_regular(path).map_err(|error| unreadable(path, error))?;
    read_opened(file, path, limit)
}

/// Reads at most `limit` bytes of a file that was opened at `path`.
pub(crate) fn read_opened(file: File, path: &Path, limit: usize) -> Result<Vec<u8>> {
    toolward_support::files::read(file, path, limit as u64).map_err(|error| unreadable(path, error))
}

fn unreadable(path: &Path, error: toolward_support::files::Error) -> Error {
    match error.problem {
        Problem::Io { source, .. } => Error::unreadable(path, source),
        other => Error::unreadable(path, format!("the file {other}")),
    }
}

/// Writes a new file atomically. Never overwrites an existing file.
///
/// ```
/// use toolward_operator::file;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("acme.publisher.json");
/// file::write_new(&path, b"{}")?;
/// assert_eq!(file::write_new(&path, b"[]").unwrap_err().code, "output-exists");
/// assert_eq!(file::read(&path, 100)?, b"{}");
/// # Ok(())
/// # }
/// ```
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<()> {
    create(path, bytes, PUBLIC_MODE)
}

/// Writes a new private file atomically: only its owner may access it. Never overwrites an existing
/// file.
pub fn write_new_private(path: &Path, bytes: &[u8]) -> Result<()> {
    create(path, bytes, PRIVATE_MODE)
}

fn create(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    toolward_support::files::create(path, bytes, mode).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => Error::unwritable(path, error),
    })
}

/// Replaces a file atomically: a reader sees either the old or the new content.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    toolward_support::files::replace(path, bytes, PUBLIC_MODE)
        .map_err(|error| Error::unwritable(path, error))
}

/// The error for a path that exists already.
pub fn exists(path: &Path) -> Error {
    let message = format!("{}: this exists already", path.display());
    Error::failed(Code::OutputExists, message)
        .hint("name another place, or move what is there away yourself")
}

/// A private file of this library, which only one process changes at a time.
#[derive(Debug, Clone)]
pub(crate) struct StateFile {
    pub(crate) path: PathBuf,
    /// Largest size, in bytes.
    limit: u64,
}

impl StateFile {
    pub(crate) fn new(path: PathBuf, limit: u64) -> Self {
        Self { path, limit }
    }

    /// Reads the file; `None` if it does not exist.
    pub(crate) fn read(&self) -> Result<Option<Vec<u8>>> {
        let path = &self.path;
        let read = match toolward_support::files::open(path, Protection::Private, Links::Refuse) {
            Err(error) if error.is_missing() => return Ok(None),
            opened => opened.and_then(|file| toolward_support::files::read(file, path, self.limit)),
        };
        read.map(Some)
            .map_err(|error| Error::unreadable(path, error))
    }

    /// Prevents changes by other processes while the returned folder is open. Creates the folder if
    /// it is missing.
    pub(crate) fn lock(&self) -> Result<Folder> {
        let folder = self.path.parent().unwrap_or(&self.path);
        let folder = Folder::make(folder, Protection::Own)
            .map_err(|error| Error::unwritable(&self.path, error))?;
        toolward_support::files::lock(&folder, Lock::Exclusive, LOCK_TIMEOUT)
            .map_err(|error| Error::unwritable(&self.path, error))?;
        Ok(folder)
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> Result<()> {
        toolward_support::files::replace(&self.path, bytes, PRIVATE_MODE)
            .map_err(|error| Error::unwritable(&self.path, error))
    }
}

/// How long to wait for another process's lock on a [`TrustFolder`].
const TRUST_LOCK_TIMEOUT: Duration = Duration::from_secs(60);

/// An open folder whose owner and mode were checked.
#[derive(Debug)]
pub(crate) struct TrustFolder {
    path: PathBuf,
    opened: Folder,
}

impl TrustFolder {
    /// Opens a folder; `None` if it does not exist.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>> {
        let path = path.to_owned();
        match Folder::open(&path, Protection::OwnOrRoot) {
            Ok(opened) => Ok(Some(Self { path, opened })),
            Err(error) if error.is_missing() => Ok(None),
            Err(error) => Err(refused(&path, error.problem)),
        }
    }

    /// Creates a private folder and its parents.
    pub(crate) fn make(path: &Path) -> Result<Self> {
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
    pub(crate) fn sync(&self) -> Result<()> {
        let synced = self.opened.sync();
        synced.map_err(|error| Error::unwritable(&self.path, error))
    }

    /// Locks the folder. Don't wait for the network or a person while holding an exclusive lock.
    pub(crate) fn lock(&self, how: Lock) -> Result<()> {
        let path = &self.path;
        toolward_support::files::lock(&self.opened, how, TRUST_LOCK_TIMEOUT).map_err(|error| {
            match error.kind() {
                ErrorKind::WouldBlock => {
                    let busy = format!("{}: another process holds the folder", path.display());
                    Error::failed(Code::TrustBusy, busy)
                        .hint("find out which process it is, and try again")
                }
                _ => Error::unreadable(path, error),
            }
        })
    }
}

/// Whether no file or folder has this path.
pub(crate) fn is_missing(path: &Path) -> bool {
    let found = path.symlink_metadata();
    found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

/// Reads a file, and checks that only the user or root could have written it.
pub(crate) fn read_trusted(path: &Path, limit: usize) -> Result<Vec<u8>> {
    let file = toolward_support::files::open(path, Protection::OwnOrRoot, Links::Refuse)
        .map_err(|error| refused(path, error.problem))?;
    read_opened(file, path, limit)
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
