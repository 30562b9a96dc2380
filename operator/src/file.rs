//! Small files of the user's: read within bounds, written whole or not at all.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use toolward_files::Problem;

use crate::error::{Error, Kind};

/// The mode of what others may read, before the user's mask.
const PUBLIC_MODE: u32 = 0o644;

/// Reads a file of at most `limit` bytes. Refuses anything but a regular file, without waiting for it.
pub fn read(path: &Path, limit: usize) -> Result<Vec<u8>, Error> {
    let file = toolward_files::open_regular(path).map_err(|error| unreadable(path, error))?;
    read_opened(file, path, limit)
}

/// Reads what was opened at `path`, at most `limit` bytes.
pub(crate) fn read_opened(file: File, path: &Path, limit: usize) -> Result<Vec<u8>, Error> {
    toolward_files::read(file, path, limit as u64).map_err(|error| unreadable(path, error))
}

fn unreadable(path: &Path, error: toolward_files::Error) -> Error {
    match error.problem {
        Problem::Io { source, .. } => Error::unreadable(path, source),
        other => Error::unreadable(path, format!("the file {other}")),
    }
}

/// Writes a new file, whole or not at all. Overwrites nothing.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    toolward_files::create(path, bytes, PUBLIC_MODE).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => Error::unwritable(path, error),
    })
}

/// Replaces a file atomically: a reader sees the old one or the new one.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    toolward_files::replace(path, bytes, PUBLIC_MODE)
        .map_err(|error| Error::unwritable(path, error))
}

/// The failure of a place that is taken.
pub fn exists(path: &Path) -> Error {
    Error::new(
        Kind::Failed,
        "output-exists",
        format!("{}: this exists already", path.display()),
    )
    .hint("name another place, or move what is there away yourself")
}
