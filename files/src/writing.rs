//! Atomic writes: a reader sees a file's old contents or its new ones, never a part of them.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

/// Writes these parts, one after the other, to a file that must not be there yet, through to the disk. Where that
/// fails half-way, nothing is left; who looks meanwhile, or after a crash, may find half of it.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] for anything that is there, a link included; what the operating system
/// says.
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

/// Writes a file that must not be there yet, whole or not at all. Of two who do so at once, one succeeds.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] for anything that is there, a link included; what the operating system
/// says.
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

/// Writes a file in place of whatever is there, a link included: who reads it finds one or the other. No mode,
/// owner or further name of an old file is kept.
///
/// # Errors
/// What the operating system says. What was there stays then.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let temporary = temporary(path)?;
    write_new(&temporary, &[bytes], mode)?;
    std::fs::rename(&temporary, path).inspect_err(|_| {
        let _ = std::fs::remove_file(&temporary);
    })
}

/// Closes the file: nobody finds it under its later name while it is open here.
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
