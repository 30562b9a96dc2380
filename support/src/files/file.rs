//! Reading files, where the opened file is checked, wherever the path leads later; and atomic writes: a reader sees a
//! file's old contents or its new contents, never a part of them.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, OFlags, RenameFlags, renameat_with};
use rustix::io::Errno;
use zeroize::Zeroizing;

use crate::files::protection::{Error, Problem, Protection};

/// Whether a path whose last part is a symbolic link is followed. Links above it always are: a user who may write to
/// these folders could replace them as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// The link is an error.
    Refuse,
    /// The target is opened, and checked.
    Follow,
}

/// Opens a regular file for reading, if `protection` allows its owner and mode.
///
/// # Errors
/// [`Problem::NotAFile`] for anything else, which is not waited for; [`Problem::Owner`], [`Problem::Mode`];
/// [`Problem::Io`], also for a missing file ([`Error::is_missing`]).
pub fn open(path: &Path, protection: Protection, links: Links) -> Result<File, Error> {
    let (file, metadata) = opened(path, links)?;
    protection
        .check(&metadata)
        .map_err(|problem| Error::new(path, problem))?;
    Ok(file)
}

/// Opens a regular file of any owner, through links.
///
/// # Errors
/// [`Problem::NotAFile`] for anything else, which is not waited for; [`Problem::Io`].
pub fn open_regular(path: &Path) -> Result<File, Error> {
    opened(path, Links::Follow).map(|(file, _)| file)
}

fn opened(path: &Path, links: Links) -> Result<(File, Metadata), Error> {
    let regular = |found: bool| match found {
        true => Ok(()),
        false => Err(Error::new(path, Problem::NotAFile)),
    };
    let looked = match links {
        Links::Follow => path.metadata(),
        Links::Refuse => path.symlink_metadata(),
    };
    // Before opening: opening a device may have effects. Opening detects a link.
    let looked = looked.map_err(|error| Error::io(path, "read", error))?;
    regular(looked.is_file() || looked.is_symlink())?;
    // It may have been replaced since: a pipe would wait for a writer, a terminal become ours.
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    if links == Links::Refuse {
        flags |= OFlags::NOFOLLOW;
    }
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(|error| Error::io(path, "opened", error))?;
    let metadata = file
        .metadata()
        .map_err(|error| Error::io(path, "read", error))?;
    regular(metadata.is_file())?;
    Ok((file, metadata))
}

/// Reads a file that was opened at `path`, at most `limit` bytes of it. Also for secrets: the returned bytes are the only
/// copy in memory.
///
/// # Errors
/// [`Problem::TooLarge`], [`Problem::Io`].
pub fn read(file: File, path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    let fail = |error| Error::io(path, "read", error);
    let length = file.metadata().map_err(fail)?.len().min(limit);
    // Allocated at its full size: growing leaves copies behind.
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

/// Writes these parts, one after the other, to a file that must not exist yet, through to the disk. If that fails
/// half-way, the file is removed; a concurrent reader, or a reader after a crash, may find half of it.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] for any existing entry, including a link; the error of the operating system.
pub fn write_new(path: &Path, parts: &[&[u8]], mode: u32) -> io::Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    write(file, parts).inspect_err(|_| {
        // This call has made it.
        let _ = std::fs::remove_file(path);
    })
}

/// Writes a file that must not exist yet, completely or not at all. Of two concurrent writers, one succeeds.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] for any existing entry, including a link; the error of the operating system.
pub fn create(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let temporary = temporary(path)?;
    write_new(&temporary, &[bytes], mode)?;
    let moved = match renameat_with(CWD, &temporary, CWD, path, RenameFlags::NOREPLACE) {
        // Some file systems can't do that, but know hard links.
        Err(Errno::INVAL | Errno::NOSYS) => std::fs::hard_link(&temporary, path),
        Err(error) => Err(error.into()),
        Ok(()) => return Ok(()),
    };
    let removed = std::fs::remove_file(&temporary);
    moved.and(removed)
}

/// Writes a file in place of any existing entry, including a link: a reader finds the old or the new file. No mode,
/// owner or further name of an old file is kept.
///
/// # Errors
/// The error of the operating system. The old file then stays.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let temporary = temporary(path)?;
    write_new(&temporary, &[bytes], mode)?;
    std::fs::rename(&temporary, path).inspect_err(|_| {
        let _ = std::fs::remove_file(&temporary);
    })
}

/// Closes the file, so that it is not open here any more when it gets its final name.
fn write(mut file: File, parts: &[&[u8]]) -> io::Result<()> {
    parts.iter().try_for_each(|part| file.write_all(part))?;
    file.sync_all()
}

/// A name in a file's folder. It is random, since a process that was killed may have left one behind, and in a
/// container the next process has its number.
fn temporary(path: &Path) -> io::Result<PathBuf> {
    path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    Ok(path.with_file_name(temporary_name()?))
}

pub(crate) fn temporary_name() -> io::Result<String> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    Ok(format!(".toolward-{:016x}", u64::from_ne_bytes(random)))
}
