//! Who uses the objects: everybody who writes or reads one shares a lock, and who collects garbage has it
//! alone. The operating system gives it back for a process that dies.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::error::Error;

/// The file that is locked. It is empty, and never removed.
const FILE: &str = "lock";
/// How long one process waits for others.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Between two attempts.
const NAP: Duration = Duration::from_millis(2);

/// A lock on the objects of a store, as long as it lives.
pub(crate) struct Lock {
    _file: Option<OwnedFd>,
}

/// Shares the objects: none is removed meanwhile.
pub(crate) fn shared(directory: impl AsFd) -> Result<Lock, Error> {
    take(directory, FlockOperation::NonBlockingLockShared)
}

/// Has the objects alone: nobody reads or writes one meanwhile.
pub(crate) fn exclusive(directory: impl AsFd) -> Result<Lock, Error> {
    take(directory, FlockOperation::NonBlockingLockExclusive)
}

fn take(directory: impl AsFd, operation: FlockOperation) -> Result<Lock, Error> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Opened each time: a lock belongs to what was opened, so that threads have locks of their own.
    let fail = |error: Errno| Error::io("the store's lock", error);
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
                Err(error) => return Err(fail(error)),
            }
        }
        Err(error) => return Err(fail(error)),
    };
    let start = Instant::now();
    loop {
        match rustix::fs::flock(&file, operation) {
            Ok(()) => return Ok(Lock { _file: Some(file) }),
            Err(Errno::WOULDBLOCK | Errno::INTR) if start.elapsed() < PATIENCE => {
                std::thread::sleep(NAP);
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => return Err(Error::Busy),
            Err(error) => return Err(Error::io("the store's lock", error)),
        }
    }
}
