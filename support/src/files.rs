//! Files and folders on which trust depends. Checks their owner and mode and whether links are
//! followed, reads files with a size limit, and writes files completely or not at all.
//!
//! * [`Protection`]: the allowed owners and modes of a file;
//! * [`open`], [`open_regular`], [`read`]: reading exactly the file that was checked;
//! * [`Folder`], [`private_file`]: folders and files that are created if they are missing;
//! * [`write_new`], [`write_new_at`], [`create`], [`replace`]: writing;
//! * [`EditedFile`]: changing a user's file that belongs to other programs;
//! * [`lock`]: keeping other processes from using a file for a while.
//!
//! ```
//! use toolward_support::files::{Links, Problem, Protection};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("key");
//! toolward_support::files::create(&path, b"secret", 0o600)?;
//! let file = toolward_support::files::open(&path, Protection::Private, Links::Refuse)?;
//! assert_eq!(toolward_support::files::read(file, &path, 100)?, b"secret");
//!
//! toolward_support::files::replace(&path, b"secret", 0o640)?;
//! let error = toolward_support::files::open(&path, Protection::Private, Links::Refuse).unwrap_err();
//! assert!(matches!(error.problem, Problem::Mode { mode: 0o640 }));
//! # Ok(())
//! # }
//! ```

mod edited;
mod protection;

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;
use zeroize::Zeroizing;

pub use edited::EditedFile;
pub use protection::{Error, Problem, Protection};

/// Whether a symbolic link as the last part of a path is followed. Links in the parts above are
/// always followed: a user who can create a link there could also replace those parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// The link is an error.
    Refuse,
    /// The target is opened and checked.
    Follow,
}

/// Opens a regular file for reading, if `protection` allows its owner and mode.
///
/// # Errors
/// [`Problem::NotAFile`] for a folder, a device or a pipe (without waiting for the pipe);
/// [`Problem::Owner`], [`Problem::Mode`]; [`Problem::Io`], also for a missing file
/// ([`Error::is_missing`]) and for a link under [`Links::Refuse`].
pub fn open(path: &Path, protection: Protection, links: Links) -> Result<File, Error> {
    let file = opened(path, links)?;
    protection.check_opened(&file, path)?;
    Ok(file)
}

/// Opens a regular file of any owner, through links.
///
/// # Errors
/// [`Problem::NotAFile`] for anything else, without waiting for a pipe; [`Problem::Io`].
pub fn open_regular(path: &Path) -> Result<File, Error> {
    opened(path, Links::Follow)
}

fn opened(path: &Path, links: Links) -> Result<File, Error> {
    let regular = |found: bool| match found {
        true => Ok(()),
        false => Err(Error::new(path, Problem::NotAFile)),
    };
    let looked = match links {
        Links::Follow => path.metadata(),
        Links::Refuse => path.symlink_metadata(),
    };
    let unread = |error| Error::io(path, "read", error);
    // Checked before opening, since opening a device may have effects. A link is detected when it
    // is opened.
    let looked = looked.map_err(unread)?;
    regular(looked.is_file() || looked.is_symlink())?;
    // The file may have been replaced since. Without these flags, a pipe would wait for a writer,
    // and a terminal would become this process's terminal.
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    if links == Links::Refuse {
        flags |= OFlags::NOFOLLOW;
    }
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(|error| Error::io(path, "opened", error))?;
    regular(file.metadata().map_err(unread)?.is_file())?;
    Ok(file)
}

/// Reads a file that was opened at `path`, at most `limit` bytes. It is suitable for secrets: the
/// returned bytes are the only copy in memory, unless the file grows while it is read.
///
/// # Errors
/// [`Problem::TooLarge`], [`Problem::Io`].
pub fn read(file: File, path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    let fail = |error| Error::io(path, "read", error);
    let length = file.metadata().map_err(fail)?.len().min(limit);
    // Allocated at the full size, since growing would leave copies in memory.
    let room = usize::try_from(length.saturating_add(1)).unwrap_or_default();
    let mut bytes = Zeroizing::new(Vec::with_capacity(room));
    file.take(limit.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(fail)?;
    if bytes.len() as u64 > limit {
        return Err(Error::new(path, Problem::TooLarge { limit }));
    }
    Ok(std::mem::take(&mut *bytes))
}

/// Writes these parts, one after the other, to a file that must not exist yet, and waits for the
/// disk. If writing fails, the file is removed. A concurrent reader, or a reader after a crash, may
/// find an incomplete file.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] for any existing entry, including a link; the error of the
/// operating system.
pub fn write_new(path: &Path, parts: &[&[u8]], mode: u32) -> io::Result<()> {
    write_new_at(CWD, path, parts, mode, |_| Ok(()))
}

/// As [`write_new`], in an open folder. `prepare` sets further properties of the file before its
/// bytes are written.
///
/// # Errors
/// The errors of [`write_new`], and of `prepare`.
pub fn write_new_at(
    folder: impl AsFd,
    name: &Path,
    parts: &[&[u8]],
    mode: u32,
    prepare: impl FnOnce(&File) -> io::Result<()>,
) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(&folder, name, flags, Mode::from_raw_mode(mode))?;
    let mut file = File::from(opened);
    let written = prepare(&file)
        .and_then(|()| parts.iter().try_for_each(|part| file.write_all(part)))
        .and_then(|()| file.sync_all());
    // Closed before the file gets its final name.
    drop(file);
    written.inspect_err(|_| {
        // This call has created the file, so it may remove the file.
        let _ = rustix::fs::unlinkat(&folder, name, AtFlags::empty());
    })
}

/// Writes a file that must not exist yet, completely or not at all. Of two concurrent writers, one
/// succeeds.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] for any existing entry, including a link; the error of the
/// operating system.
pub fn create(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let temporary = temporary(path)?;
    write_new(&temporary, &[bytes], mode)?;
    let moved = match renameat_with(CWD, &temporary, CWD, path, RenameFlags::NOREPLACE) {
        // Some file systems can't rename without replacing, but support hard links.
        Err(Errno::INVAL | Errno::NOSYS) => std::fs::hard_link(&temporary, path),
        Err(error) => Err(error.into()),
        Ok(()) => return Ok(()),
    };
    let removed = std::fs::remove_file(&temporary);
    moved.and(removed)
}

/// Writes a file in place of any existing entry, including a link. A reader finds either the old or
/// the new file. The mode, owner and further names of an old file are not kept.
///
/// # Errors
/// The error of the operating system. The old file then stays unchanged.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let temporary = temporary(path)?;
    write_new(&temporary, &[bytes], mode)?;
    std::fs::rename(&temporary, path).inspect_err(|_| {
        let _ = std::fs::remove_file(&temporary);
    })
}

/// A temporary path in the folder of a file.
fn temporary(path: &Path) -> io::Result<PathBuf> {
    path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    Ok(path.with_file_name(temporary_name()?))
}

/// A name for a file that will be renamed. It is random: a killed process may have left a file
/// behind, and in a container the next process has the same process id.
pub fn temporary_name() -> io::Result<String> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(format!(".toolward-{:016x}", u64::from_ne_bytes(random)))
}

/// An open folder whose owner and mode were checked.
#[derive(Debug)]
pub struct Folder(OwnedFd);

impl Folder {
    /// Creates the folder (0700) and the folders above it if they are missing, and opens it.
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

    /// Opens an existing folder. Links to it are followed, and their target is checked.
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
        protection.check_opened(&opened, path)?;
        Ok(Self(opened.into()))
    }

    /// Waits until the names in the folder are on the disk.
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

/// Creates an empty file (0600) and its folder (0700) if they are missing, and checks the owner and
/// the mode of both. Returns the file's path, absolute and without links.
///
/// An existing file is checked but never opened, since closing any descriptor of a file drops all
/// POSIX locks that the process holds on it, such as the locks of SQLite's other connections.
///
/// # Errors
/// [`Problem::NoName`]; [`Problem::NotAFile`], also for a link; the errors of [`Folder::make`].
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
    // Checked again, since the links may have changed. No other user can change the contents of the
    // checked folder.
    Folder::open(&resolved, Protection::Private)?;
    let file = resolved.join(name);
    let looked = match file.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // If another process was faster, both use its file.
            if let Err(error) = create(&file, b"", 0o600)
                && error.kind() != io::ErrorKind::AlreadyExists
            {
                return Err(Error::io(&file, "made", error));
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

/// The time between two attempts to lock.
const RETRY_INTERVAL: Duration = Duration::from_millis(2);

/// How a file or folder is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// Together with other shared locks.
    Shared,
    /// Without any other lock.
    Exclusive,
}

/// Locks an open file or folder until it is closed. Waits for other locks for at most `timeout`.
/// The lock belongs to the open file, so threads that each open the same file have separate locks.
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
