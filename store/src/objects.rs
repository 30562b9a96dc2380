//! Bundles as files: `objects/DIGEST.toolbundle`, each an uncompressed archive. A rename puts a
//! file in place, so an opened file stays whole even if its name is removed or replaced. A lock
//! keeps garbage collection from running while files are read or written.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use toolward_signing::Digest;
use toolward_signing::verify::ReopenFn;
use toolward_support::files::{Lock as LockKind, temporary_name, write_new_at};

use crate::error::Error;

/// The ending of an object's name.
const ENDING: &str = ".toolbundle";

fn open(objects: &OwnedFd, digest: &Digest) -> io::Result<File> {
    // `NONBLOCK`, so that a pipe in the file's place doesn't block.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let name = file_name(digest);
    let file = File::from(rustix::fs::openat(objects, &name, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other(format!("{name} is not a regular file"))),
    }
}

/// The directories of the objects.
pub(crate) struct Objects {
    pub(crate) objects: Arc<OwnedFd>,
    pub(crate) temporary: OwnedFd,
}

impl Objects {
    /// Writes a file and replaces an existing one. The file is on disk when this returns.
    pub(crate) fn write(&self, digest: &Digest, bytes: &[u8]) -> Result<(), Error> {
        let fail = |error: std::io::Error| Error::io("a file of the store", error);
        let (folder, name) = (&self.temporary, temporary_name().map_err(fail)?);
        write_new_at(folder, name.as_ref(), &[bytes], 0o600, |_| Ok(())).map_err(fail)?;
        rustix::fs::renameat(folder, &name, &self.objects, file_name(digest))
            .and_then(|()| rustix::fs::fsync(&self.objects))
            .map_err(|error| {
                // If the removal fails, garbage collection removes the file later.
                let _ = rustix::fs::unlinkat(folder, &name, AtFlags::empty());
                fail(error.into())
            })
    }

    /// Opens a file. `None` if it is missing.
    pub(crate) fn open(&self, digest: &Digest) -> Result<Option<File>, Error> {
        match open(&self.objects, digest) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("a file of the store", error)),
        }
    }

    /// Opens the file whenever it is called.
    pub(crate) fn reopen(&self, digest: Digest) -> Arc<ReopenFn> {
        let objects = Arc::clone(&self.objects);
        Arc::new(move || open(&objects, &digest))
    }

    /// Whether the file exists and has exactly these bytes.
    pub(crate) fn holds(&self, digest: &Digest, bytes: &[u8]) -> Result<bool, Error> {
        let Some(file) = self.open(digest)? else {
            return Ok(false);
        };
        let most = (bytes.len() as u64).saturating_add(1);
        let mut found = Vec::with_capacity(bytes.len());
        file.take(most)
            .read_to_end(&mut found)
            .map_err(|error| Error::io("a file of the store", error))?;
        Ok(found == bytes)
    }

    /// Removes every file except the bundles to `keep`, and returns the number of removed bundles.
    /// The caller must hold the lock exclusively.
    pub(crate) fn sweep(&self, keep: impl Fn(&Digest) -> bool) -> Result<u64, Error> {
        let kept = |name: &str| {
            let digest = name.strip_suffix(ENDING).and_then(|hex| hex.parse().ok());
            digest.is_some_and(|digest| keep(&digest))
        };
        let removed = remove_all(&self.objects, kept)?;
        remove_all(&self.temporary, |_| false)?;
        Ok(removed)
    }
}

fn file_name(digest: &Digest) -> String {
    format!("{digest}{ENDING}")
}

/// Removes the files of a directory except those that `kept` names, and counts them.
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
            // The store creates no directories here, so only files are removed.
            Err(Errno::NOENT | Errno::ISDIR | Errno::PERM) => {}
            Err(error) => return Err(fail(error)),
        }
    }
    Ok(removed)
}

/// The locked file. It is empty, and never removed.
const LOCK_FILE: &str = "lock";
/// How long a process waits for others to release the objects or the state.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

/// A lock on the objects of a store, until it is dropped.
pub(crate) type ObjectsLock = Option<OwnedFd>;

/// Locks the objects: shared to read or write an object, exclusive to remove objects.
pub(crate) fn lock_objects(directory: impl AsFd, kind: LockKind) -> Result<ObjectsLock, Error> {
    // The file is opened each time. A lock belongs to the open file, so each thread gets a separate
    // lock.
    let open = |access: OFlags| {
        let flags = access | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&directory, LOCK_FILE, flags, Mode::RUSR | Mode::WUSR)
    };
    let opened = match open(OFlags::RDWR | OFlags::CREATE) {
        // Read access is enough for a lock if the file exists.
        Err(Errno::ROFS | Errno::ACCESS | Errno::NOSPC) => match open(OFlags::RDONLY) {
            // If no process can create the file, no process can hold the lock.
            Err(Errno::NOENT) => return Ok(None),
            opened => opened,
        },
        opened => opened,
    };
    let fail = |error: std::io::Error| Error::io("the store's lock", error);
    let file = opened.map_err(|error| fail(error.into()))?;
    match toolward_support::files::lock(&file, kind, BUSY_TIMEOUT) {
        Ok(()) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Err(Error::Busy),
        Err(error) => Err(fail(error)),
    }
}
