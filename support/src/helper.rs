//! Helper processes: a program starts a helper, which is confined to one task, and communicates
//! with it over a socket, the helper's standard input. This module starts and ends helpers and
//! defines the outer form of [frames]. The program that starts a helper defines the contents of the
//! frames.

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

/// How long a helper may take to end after its host closed the connection.
pub const ENDING: Duration = Duration::from_secs(5);

/// Starts a helper with its socket. The helper has no environment, no standard output, and the
/// given standard error.
///
/// # Errors
/// If the socket can't be made, or the program can't be started.
pub fn start(
    program: &Path,
    arguments: &[OsString],
    stderr: Stdio,
) -> io::Result<(Child, UnixStream)> {
    // Without this call, files that this process inherited would stay open in the helper. If the
    // call fails, the kernel is also too old for confinement.
    let _ = close_on_exec();
    let (socket, theirs) = UnixStream::pair()?;
    let child = Command::new(program)
        .args(arguments)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(stderr)
        // In a separate process group, so that Ctrl-C does not end the helper first: the helper
        // cleans up after this process.
        .process_group(0)
        .spawn()?;
    Ok((child, socket))
}

/// Ends a helper by closing its socket. Kills a helper that does not end within [`ENDING`].
pub fn end(child: &mut Child, socket: &UnixStream) {
    let _ = socket.shutdown(Shutdown::Both);
    // Waits instead of killing at once, since a confined process has no right to kill the helper.
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

/// The connection of a helper to the process that started it: the helper's standard input. It is a
/// `File`, since the system call filter of a helper may allow reading and writing, but not
/// receiving and sending. After this call, the helper writes no core dump, and reaching the limit
/// on the size of files does not end it.
///
/// # Errors
/// If standard input is not a socket, or the system refuses a setting.
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

/// Locks a value and ignores poisoning. It is for values that no thread leaves half changed, even
/// if it panics.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
