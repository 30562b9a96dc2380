//! Folders that only their user may enter or change, and files that are made in them.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::error::{Error, Problem};
use crate::protection::Protection;
use crate::writing::create;

/// A folder whose owner and mode were checked, open.
#[derive(Debug)]
pub struct Folder(OwnedFd);

impl Folder {
    /// Makes the folder, with those above it, where it is missing (0700), and opens it.
    ///
    /// # Errors
    /// Those of [`Folder::open`].
    pub fn make(path: &Path, protection: Protection) -> Result<Self, Error> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|error| Error::io(path, "created", error))?;
        Self::open(path, protection)
    }

    /// Opens a folder that is there. Links that lead to it are followed: what counts is the folder that they
    /// lead to.
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
    /// What the operating system says.
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

/// Makes an empty file (0600), in a folder of its own user (0700), where either is missing, and checks both.
/// Returns the file's path, absolute and without links.
///
/// An existing file is looked at and never opened: closing any descriptor of a file drops all locks of POSIX
/// that the process holds on it, such as those of SQLite's other connections.
///
/// # Errors
/// [`Problem::NoName`], [`Problem::NotAFile`] also for a link; those of [`Folder::make`].
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
    // What the links lead to now is checked once more: nobody else can change what is in there.
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
