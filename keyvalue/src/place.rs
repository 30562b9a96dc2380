//! Where a store's file may lie: a directory that only its user may enter, and
//! in it a regular file of the same user.

use std::ffi::OsString;
use std::fs::{DirBuilder, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;

/// Makes directory and file if they are not there (0700 and 0600) and checks
/// owner and mode of both. Returns the file's path without symbolic links.
///
/// An existing file is looked at and never opened here: closing any descriptor
/// of a file drops all locks that the process holds on it, those of SQLite's
/// other connections included.
pub(crate) fn prepare(path: &Path) -> Result<PathBuf, Error> {
    let name = path
        .file_name()
        .ok_or_else(|| unusable(path, "names no file"))?;
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let fail = |what: &'static str| {
        move |error: io::Error| unusable(directory, format_args!("{what}: {error}"))
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(fail("can't be created"))?;
    let directory = directory
        .canonicalize()
        .map_err(fail("can't be resolved"))?;
    let metadata = directory.metadata().map_err(fail("can't be read"))?;
    own_and_private(&directory, &metadata)?;

    let file = directory.join(name);
    let looked = match file.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make(&directory, &file)
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

/// Makes an empty file under another name first, so that nobody has the real one
/// open when ours is closed. Where two processes get here the first link wins,
/// and both use it.
fn make(directory: &Path, file: &Path) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut name = OsString::from(format!(
        ".new-{}-{}-",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    ));
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
