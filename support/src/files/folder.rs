//! Folders that only their user may enter or change, files that are made in them, and locks between processes. The
//! operating system releases the locks of a process that dies.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::files::file::create;
use crate::files::protection::{Error, Problem, Protection};

/// A folder whose owner and mode were checked, open.
#[derive(Debug)]
pub struct Folder(OwnedFd);

impl Folder {
    /// Makes the folder (0700) and the folders above it, if they are missing, and opens it.
    ///
    /// # Errors
    /// As [`Folder::open`].
    pub fn make(path: &Path, protection: Protection) -> Result<Self, Error> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|error| Error::io(path, "created", error))?;
        Self::open(path, protection)
    }

    /// Opens an existing folder. Links to it are followed; the folder that they lead to is checked.
    ///
    /// # Errors
    /// [`Problem::NotAFolder`], [`Problem::Owner`], [`Problem::Mode`], [`Problem::Io`].
    pub fn open(path: &Path, protection: Protection) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
            Errno::NOTDIR => Error::new(path, Problem::NotAFolder),
            error => Error::io(path, "opened", error),
        })?;
        let opened = File::from(opened);
        let metadata = opened
            .metadata()
            .map_err(|error| Error::io(path, "read", error))?;
        protection
            .check(&metadata)
            .map_err(|problem| Error::new(path, problem))?;
        Ok(Self(opened.into()))
    }

    /// Waits until the names in it are on the disk.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&self.0)?)
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<Folder> for OwnedFd {
    fn from(folder: Folder) -> Self {
        folder.0
    }
}

/// Makes an empty file (0600) in a folder of the same user (0700), if either is missing, and checks both.
/// Returns the file's path, absolute and without links.
///
/// An existing file is checked but never opened: closing any descriptor of a file drops all POSIX locks
/// that the process holds on it, such as the locks of SQLite's other connections.
///
/// # Errors
/// [`Problem::NoName`], [`Problem::NotAFile`] also for a link; as [`Folder::make`].
pub fn private_file(path: &Path) -> Result<PathBuf, Error> {
    let name = path
        .file_name()
        .ok_or_else(|| Error::new(path, Problem::NoName))?;
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    Folder::make(parent, Protection::Private)?;
    let resolved = parent
        .canonicalize()
        .map_err(|error| Error::io(parent, "resolved", error))?;
    // The links may lead elsewhere by now. No other user can change the contents of the checked folder.
    Folder::open(&resolved, Protection::Private)?;
    let file = resolved.join(name);
    let looked = match file.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            match create(&file, b"", 0o600) {
                // Another process was faster, and both use its file.
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Error::io(&file, "made", error));
                }
                _ => {}
            }
            file.symlink_metadata()
        }
        looked => looked,
    };
    let metadata = looked.map_err(|error| Error::io(&file, "read", error))?;
    if !metadata.is_file() {
        return Err(Error::new(&file, Problem::NotAFile));
    }
    Protection::Private
        .check(&metadata)
        .map_err(|problem| Error::new(&file, problem))?;
    Ok(file)
}

/// The time between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(2);

/// How a file or folder is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// With others who share it.
    Shared,
    /// Alone.
    Exclusive,
}

/// Locks an open file or folder until it is closed, waiting for others at most this long. The lock belongs to
/// the open file: threads that open the same file themselves have separate locks.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] at the timeout; the error of the operating system.
pub fn lock(opened: impl AsFd, how: Lock, timeout: Duration) -> io::Result<()> {
    let operation = match how {
        Lock::Shared => FlockOperation::NonBlockingLockShared,
        Lock::Exclusive => FlockOperation::NonBlockingLockExclusive,
    };
    let start = Instant::now();
    loop {
        match rustix::fs::flock(&opened, operation) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK | Errno::INTR) if start.elapsed() < timeout => {
                std::thread::sleep(RETRY_INTERVAL);
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => return Err(error.into()),
        }
    }
}
