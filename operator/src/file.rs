//! Small files of the user: bounded reads and atomic writes.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use toolward_files::Problem;

use crate::error::{Code, Error};

/// The mode of files that others may read, before the umask.
const PUBLIC_MODE: u32 = 0o644;
/// The mode of files that hold what others must not read.
const PRIVATE_MODE: u32 = 0o600;

/// Reads a file of at most `limit` bytes. Refuses anything but a regular file, and does
/// not block on it.
pub fn read(path: &Path, limit: usize) -> Result<Vec<u8>, Error> {
    let file = toolward_files::open_regular(path).map_err(|error| unreadable(path, error))?;
    read_opened(file, path, limit)
}

/// Reads at most `limit` bytes of a file that was opened at `path`.
pub(crate) fn read_opened(file: File, path: &Path, limit: usize) -> Result<Vec<u8>, Error> {
    toolward_files::read(file, path, limit as u64).map_err(|error| unreadable(path, error))
}

fn unreadable(path: &Path, error: toolward_files::Error) -> Error {
    match error.problem {
        Problem::Io { source, .. } => Error::unreadable(path, source),
        other => Error::unreadable(path, format!("the file {other}")),
    }
}

/// Writes a new file atomically. Never overwrites one.
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
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    toolward_files::create(path, bytes, PUBLIC_MODE).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => Error::unwritable(path, error),
    })
}

/// Writes a new file that is its owner's alone, atomically. Never overwrites one.
pub fn write_new_private(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    toolward_files::create(path, bytes, PRIVATE_MODE).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => Error::unwritable(path, error),
    })
}

/// Replaces a file atomically: a reader sees the old one or the new one.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    toolward_files::replace(path, bytes, PUBLIC_MODE)
        .map_err(|error| Error::unwritable(path, error))
}

/// The error for a path that exists already.
pub fn exists(path: &Path) -> Error {
    Error::failed(
        Code::OutputExists,
        format!("{}: this exists already", path.display()),
    )
    .hint("name another place, or move what is there away yourself")
}
