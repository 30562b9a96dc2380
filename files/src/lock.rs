//! Locks between processes. The operating system gives them back for a process that dies.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

/// Between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(2);

/// How a file or folder is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// With others who share it.
    Shared,
    /// Alone.
    Exclusive,
}

/// Locks an open file or folder until it is closed, waiting for others at most this long. The lock belongs to
/// what was opened: threads that open the same file themselves have locks of their own.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] if others held it all the time; what the operating system says.
pub fn lock(opened: impl AsFd, how: Lock, timeout: Duration) -> io::Result<()> {
    let operation = match how {
        Lock::Shared => FlockOperation::NonBlockingLockShared,
        Lock::Exclusive => FlockOperation::NonBlockingLockExclusive,
    };
    let start = Instant::now();
    loop {
        match rustix::fs::flock(&opened, operation) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK | Errno::INTR) if start.elapsed() < timeout => {
                std::thread::sleep(RETRY_INTERVAL);
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => return Err(io::ErrorKind::WouldBlock.into()),
            Err(error) => return Err(error.into()),
        }
    }
}
