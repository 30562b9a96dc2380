//! Who uses the objects: everybody who writes or reads one shares a lock, and who collects garbage has it
//! alone.

use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use toolward_files::Lock as Kind;

use crate::error::Error;

/// The file that is locked. It is empty, and never removed.
const FILE: &str = "lock";
/// How long one process waits for others, for the objects or for the state.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

/// A lock on the objects of a store, as long as it lives.
pub(crate) struct Lock {
    _file: Option<OwnedFd>,
}

/// Shares the objects: none is removed meanwhile.
pub(crate) fn shared(directory: impl AsFd) -> Result<Lock, Error> {
    take(directory, Kind::Shared)
}

/// Has the objects alone: nobody reads or writes one meanwhile.
pub(crate) fn exclusive(directory: impl AsFd) -> Result<Lock, Error> {
    take(directory, Kind::Exclusive)
}

fn take(directory: impl AsFd, kind: Kind) -> Result<Lock, Error> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Opened each time: a lock belongs to what was opened, so that threads have locks of their own.
    let fail = |error: std::io::Error| Error::io("the store's lock", error);
    let directory = directory.as_fd();
    let file = match rustix::fs::openat(directory, FILE, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => file,
        // Reading is enough for a lock, where the file is there.
        Err(Errno::ROFS | Errno::ACCESS | Errno::NOSPC) => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match rustix::fs::openat(directory, FILE, flags, Mode::empty()) {
                Ok(file) => file,
                // Nobody can have it where nobody could make it.
                Err(Errno::NOENT) => return Ok(Lock { _file: None }),
                Err(error) => return Err(fail(error.into())),
            }
        }
        Err(error) => return Err(fail(error.into())),
    };
    match toolward_files::lock(&file, kind, BUSY_TIMEOUT) {
        Ok(()) => Ok(Lock { _file: Some(file) }),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Err(Error::Busy),
        Err(error) => Err(fail(error)),
    }
}
