//! Damaged files of payloads: they may be lost, and records go on. Such a file is set aside, for people to look
//! at, until what is in it has had its time or something is erased: nothing can be erased from it alone.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolward_support::files::{Links, Lock, Protection};

use crate::directory::{BUSY_TIMEOUT, with_log};
use crate::entry::now;
use crate::error::Error;

/// Which file it is, under any name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId(u64, u64);

impl FileId {
    pub(super) fn of(path: &Path) -> Option<Self> {
        let metadata = path.symlink_metadata().ok()?;
        Some(Self(metadata.dev(), metadata.ino()))
    }
}

/// Sets the file aside, unless it is another one by now: another process may have been faster.
pub(super) fn set_aside(path: &Path, damaged: Option<FileId>) -> Result<(), Error> {
    let file = match toolward_support::files::open(path, Protection::Private, Links::Refuse) {
        Err(error) if error.is_missing() => return Ok(()),
        opened => opened?,
    };
    toolward_support::files::lock(&file, Lock::Exclusive, BUSY_TIMEOUT).map_err(fail)?;
    let metadata = file.metadata().map_err(fail)?;
    let opened = Some(FileId(metadata.dev(), metadata.ino()));
    if opened != FileId::of(path) || damaged.is_some_and(|damaged| Some(damaged) != opened) {
        return Ok(());
    }
    let aside = format!("{}.damaged-{}", path.display(), now().get());
    for (from, to) in with_log(path).into_iter().zip(with_log(Path::new(&aside))) {
        match fs::rename(from, to) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(fail(error)),
            _ => {}
        }
    }
    tracing::error!(
        file = aside,
        "the ledger's payloads are damaged: the file is set aside, and what it kept is lost to the ledger"
    );
    Ok(())
}

/// Removes files that were set aside so long ago.
pub(super) fn remove_older(path: &Path, age: Duration) -> Result<(), Error> {
    let age = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
    let before = now().get().saturating_sub(age);
    for (file, at) in all(path)? {
        if at <= before {
            fs::remove_file(file).map_err(fail)?;
        }
    }
    Ok(())
}

/// The files that were set aside, and when.
fn all(path: &Path) -> Result<Vec<(PathBuf, u64)>, Error> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(Vec::new());
    };
    let prefix = format!("{}.damaged-", name.to_string_lossy());
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        let name = entry.file_name();
        let at = name.to_str().and_then(|name| name.strip_prefix(&prefix));
        let at = at.and_then(|at| at.split('-').next()?.parse().ok());
        found.extend(at.map(|at| (entry.path(), at)));
    }
    Ok(found)
}

fn fail(error: std::io::Error) -> Error {
    Error::io("the ledger's payloads", error)
}
