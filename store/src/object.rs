//! Bundles as files: `objects/DIGEST.toolbundle`, each an archive that isn't compressed. One file comes into
//! place by one rename, and what was opened stays whole however the name is used afterwards.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use toolward_signing::Digest;
use toolward_signing::archive;
use toolward_signing::verify::Bundle;

use crate::error::Error;

/// How a file of the store ends.
const ENDING: &str = ".toolbundle";

/// The directories of the objects.
pub(crate) struct Objects {
    objects: OwnedFd,
    temporary: OwnedFd,
}

impl Objects {
    pub(crate) fn new(objects: OwnedFd, temporary: OwnedFd) -> Self {
        Self { objects, temporary }
    }

    /// The bytes that a bundle's file has.
    pub(crate) fn encode(bundle: &Bundle) -> Vec<u8> {
        archive::to_stored_bytes(&bundle.contents())
    }

    /// Puts a file in place, in place of one that is there. On disk when this returns.
    pub(crate) fn write(&self, digest: &Digest, bytes: &[u8]) -> Result<(), Error> {
        let fail = |error: std::io::Error| Error::io("a file of the store", error);
        let name = temporary_name();
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Left behind by a process of the same number.
        let _ = rustix::fs::unlinkat(&self.temporary, &name, AtFlags::empty());
        let file = rustix::fs::openat(&self.temporary, &name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| fail(error.into()))?;
        let mut file = File::from(file);
        let written = file
            .write_all(bytes)
            .and_then(|()| file.sync_all())
            .and_then(|()| {
                rustix::fs::renameat(&self.temporary, &name, &self.objects, file_name(digest))?;
                Ok(rustix::fs::fsync(&self.objects)?)
            });
        written.map_err(|error| {
            // What can't be removed now is garbage, and collected as such.
            let _ = rustix::fs::unlinkat(&self.temporary, &name, AtFlags::empty());
            fail(error)
        })
    }

    /// Opens a file. `None` if it is not there.
    pub(crate) fn open(&self, digest: &Digest) -> Result<Option<File>, Error> {
        let fail = |error: std::io::Error| Error::io("a file of the store", error);
        // A pipe in the file's place is not waited for.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match rustix::fs::openat(&self.objects, file_name(digest), flags, Mode::empty())
        {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(fail(error.into())),
        };
        if !file.metadata().map_err(fail)?.is_file() {
            return Err(Error::Io(
                format!("{} is not a regular file", file_name(digest)).into(),
            ));
        }
        Ok(Some(file))
    }

    /// Whether a file is there, with just these bytes.
    pub(crate) fn holds(&self, digest: &Digest, bytes: &[u8]) -> Result<bool, Error> {
        let Some(file) = self.open(digest)? else {
            return Ok(false);
        };
        let most = (bytes.len() as u64).saturating_add(1);
        let mut there = Vec::with_capacity(bytes.len());
        file.take(most)
            .read_to_end(&mut there)
            .map_err(|error| Error::io("a file of the store", error))?;
        Ok(there == bytes)
    }

    /// Removes every file but those of `keep`. Only for who has the lock alone.
    pub(crate) fn sweep(&self, keep: impl Fn(&Digest) -> bool) -> Result<(u64, u64), Error> {
        let kept = |name: &str| {
            let digest = name.strip_suffix(ENDING).and_then(|hex| hex.parse().ok());
            digest.is_some_and(|digest| keep(&digest))
        };
        let objects = remove_all(&self.objects, kept)?;
        let temporary = remove_all(&self.temporary, |_| false)?;
        Ok((objects, temporary))
    }
}

/// A name that no other file has, of this process or another.
fn temporary_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("object-{}-{count}", std::process::id())
}

fn file_name(digest: &Digest) -> String {
    format!("{digest}{ENDING}")
}

/// Removes the files of a directory but those that `kept` names, and counts.
fn remove_all(directory: &OwnedFd, kept: impl Fn(&str) -> bool) -> Result<u64, Error> {
    let fail = |error: Errno| Error::io("a directory of the store", error);
    let mut removed = 0_u64;
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(directory).map_err(fail)? {
        let name = entry.map_err(fail)?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") && !name.to_str().is_ok_and(&kept) {
            names.push(name);
        }
    }
    for name in names {
        match rustix::fs::unlinkat(directory, &name, AtFlags::empty()) {
            Ok(()) => removed = removed.saturating_add(1),
            Err(Errno::ROFS | Errno::ACCESS) => return Err(Error::ReadOnly),
            // Nothing of ours is a directory.
            Err(Errno::NOENT | Errno::ISDIR | Errno::PERM) => {}
            Err(error) => return Err(fail(error)),
        }
    }
    Ok(removed)
}
