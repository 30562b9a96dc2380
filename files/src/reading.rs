//! Reading files: what is checked is what was opened, whatever the path leads to later.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use zeroize::Zeroizing;

use crate::error::{Error, Problem};
use crate::protection::Protection;

/// Whether a path whose last part is a symbolic link is followed. Links above it always are: who may write to
/// those folders could replace them as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// The link is an error.
    Refuse,
    /// What it leads to is opened, and checked.
    Follow,
}

/// Opens a regular file for reading, if its owner and mode are those that `protection` asks for.
///
/// # Errors
/// [`Problem::NotAFile`] for anything else, which is not waited for; [`Problem::Owner`], [`Problem::Mode`];
/// [`Problem::Io`], also where nothing is there ([`Error::is_missing`]).
pub fn open(path: &Path, protection: Protection, links: Links) -> Result<File, Error> {
    let (file, metadata) = opened(path, links)?;
    protection
        .check(&metadata)
        .map_err(|problem| Error::new(path, problem))?;
    Ok(file)
}

/// Opens a regular file of whomever, through links.
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
    // Before opening: opening a device may do something. A link is told by opening it.
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

/// Reads a file that was opened at `path`, at most `limit` bytes of it. For secrets, too: no copy is left in
/// memory but the one that is returned.
///
/// # Errors
/// [`Problem::TooLarge`], [`Problem::Io`].
pub fn read(file: File, path: &Path, limit: u64) -> Result<Vec<u8>, Error> {
    let fail = |error| Error::io(path, "read", error);
    let length = file.metadata().map_err(fail)?.len().min(limit);
    // At once as large as it gets: growing leaves copies behind.
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
