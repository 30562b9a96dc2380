//! Helper processes: a program starts one, confined to one task, and talks to it over a socket, which is the
//! helper's standard input. Start, end and the outer form of [frames] are here; the program that starts a helper defines the
//! contents of the frames.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod frames;
mod link;
mod system;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use frames::Outgoing;
pub use link::{Link, Requests};
pub use system::{close_on_exec, survive_file_limit, survive_termination};

use rustix::process::{Resource, Rlimit};

/// Time that a helper gets to end once its host is done with it.
pub const ENDING: Duration = Duration::from_secs(5);

/// Starts a helper with its socket, without environment, and without standard streams but the given standard error.
///
/// # Errors
/// If the socket can't be made, or the program can't be started.
pub fn start(
    program: &Path,
    arguments: &[OsString],
    stderr: Stdio,
) -> io::Result<(Child, UnixStream)> {
    // Without it, files that this process inherited stay open in the helper. A kernel that lacks it is too old to
    // confine.
    let _ = close_on_exec();
    let (socket, theirs) = UnixStream::pair()?;
    let child = Command::new(program)
        .args(arguments)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(stderr)
        // In a separate process group: Ctrl-C must not end it before this process, after
        // which it cleans up.
        .process_group(0)
        .spawn()?;
    Ok((child, socket))
}

/// Ends a helper by closing its socket.
pub fn end(child: &mut Child, socket: &UnixStream) {
    let _ = socket.shutdown(Shutdown::Both);
    // A confined process has no right to kill it.
    let until = Instant::now().checked_add(ENDING);
    while until.is_some_and(|until| Instant::now() < until) {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let _ = child.kill();
    let _ = child.try_wait();
}

/// The connection of a helper to the process that started it: its standard input. A file, since a worker's filter
/// lets it read and write but not receive and send. From here on the helper leaves no core dump, and a file that reaches
/// its limit does not end it.
///
/// # Errors
/// If standard input is not a socket.
pub fn connection() -> io::Result<File> {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    rustix::process::setrlimit(Resource::Core, none)?;
    survive_file_limit()?;
    let file = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    match file.metadata()?.file_type().is_socket() {
        true => Ok(file),
        false => Err(io::Error::other(
            "standard input is not a socket: this is started by a host, never by hand",
        )),
    }
}

/// Locks a value that no thread leaves half changed, so that a panic of a thread does no harm.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
