//! Where a store may lie: directories that only its user may enter, and regular files of the same user.

use std::ffi::OsString;
use std::fs::{DirBuilder, Metadata, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Access, Mode, OFlags};
use rustix::io::Errno;

use crate::error::Error;

/// A name that no other file has, of this process or another.
pub(crate) fn fresh_name(prefix: &str) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}-{}-{count}", std::process::id())
}

/// Makes the directory (0700) if it isn't there, and opens it if it is the user's own and nobody else's.
pub(crate) fn directory(path: &Path) -> Result<(PathBuf, OwnedFd), Error> {
    let fail = |what: &'static str| {
        move |error: io::Error| unusable(path, format_args!("{what}: {error}"))
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(fail("can't be created"))?;
    // Links above are the user's own business; what is checked is what they lead to.
    let path = path.canonicalize().map_err(fail("can't be resolved"))?;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::open(&path, flags, Mode::empty())
        .map_err(|error| unusable(&path, format_args!("can't be opened: {error}")))?;
    let opened = std::fs::File::from(opened);
    let metadata = opened
        .metadata()
        .map_err(|error| unusable(&path, format_args!("can't be read: {error}")))?;
    own_and_private(&path, &metadata)?;
    Ok((path, opened.into()))
}

/// The error of a file beside which SQLite can't make what it needs, for what it is where nothing can be
/// written there.
pub(crate) fn of(file: &Path, error: Error) -> Error {
    let parent = file.parent().unwrap_or(file);
    match (error, rustix::fs::access(parent, Access::WRITE_OK)) {
        (Error::Io(_), Err(Errno::ROFS | Errno::ACCESS)) => Error::ReadOnly,
        (error, _) => error,
    }
}

/// Opens a directory that is there, if it is the user's own and nobody else's.
pub(crate) fn existing(path: &Path) -> Result<(PathBuf, OwnedFd), Error> {
    if !path.is_dir() {
        return Err(unusable(path, "is not a directory"));
    }
    // Nothing is made where something is.
    directory(path)
}

/// The state's file, made (0600) if it isn't there, in a directory of its user alone; without links.
///
/// An existing file is looked at and never opened here: closing any descriptor of a file drops all locks
/// that the process holds on it, those of SQLite's other connections included.
pub(crate) fn file(path: &Path) -> Result<PathBuf, Error> {
    let name = path
        .file_name()
        .ok_or_else(|| unusable(path, "names no file"))?;
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let (parent, _) = directory(parent)?;
    let file = parent.join(name);
    let looked = match file.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make(&parent, &file)
                .map_err(|error| unusable(&file, format_args!("can't be made: {error}")))?;
            file.symlink_metadata()
        }
        looked => looked,
    };
    let metadata =
        looked.map_err(|error| unusable(&file, format_args!("can't be read: {error}")))?;
    if !metadata.is_file() {
        return Err(unusable(&file, "is not a regular file"));
    }
    own_and_private(&file, &metadata)?;
    Ok(file)
}

/// Makes an empty file under another name first, so that nobody has the real one open when ours is closed.
/// Where two processes get here the first link wins, and both use it.
fn make(directory: &Path, file: &Path) -> io::Result<()> {
    let mut name = OsString::from(fresh_name(".new"));
    name.push(file.file_name().unwrap_or_default());
    let temporary = directory.join(name);
    // Left behind by a process of the same number that was killed just here.
    let _ = std::fs::remove_file(&temporary);
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)?;
    let linked = std::fs::hard_link(&temporary, file);
    std::fs::remove_file(&temporary)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Refuses what another user owns or others have access to.
fn own_and_private(path: &Path, metadata: &Metadata) -> Result<(), Error> {
    let user = rustix::process::geteuid().as_raw();
    if metadata.uid() != user {
        let owner = metadata.uid();
        return Err(unusable(
            path,
            format_args!("belongs to user {owner}, not to {user}"),
        ));
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(unusable(
            path,
            format_args!("has mode {mode:03o}: others have access; use chmod go-rwx"),
        ));
    }
    Ok(())
}

fn unusable(path: &Path, problem: impl ToString) -> Error {
    Error::Unusable {
        path: path.to_owned(),
        problem: problem.to_string(),
    }
}
