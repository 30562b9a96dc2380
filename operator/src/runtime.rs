//! Runtimes that don't panic when the system is short of threads.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

use crate::error::{Code, Error, Result};

/// How many threads for blocking work a runtime starts with, in addition to the threads for its
/// tasks. Tokio panics if it can't start the first thread for blocking work. If it can't start a
/// further thread, the work waits for an existing one.
const BLOCKING_THREADS: usize = 2;
/// Longer than any runtime lives, so that these threads stay.
const KEEP_ALIVE: Duration = Duration::from_hours(24 * 365);
/// How long a thread may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(5);
/// The name of the thread that builds a runtime. If that thread panics, [`runtime`] returns an
/// error.
pub const RUNTIME_THREAD: &str = "runtime-start";

/// Builds a runtime for one piece of work on this thread, for example a transfer.
///
/// Everything in this crate that uses the network blocks the thread that calls it. In an
/// asynchronous application call it on a separate thread:
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let fetched = std::thread::spawn(|| -> Result<u32, toolward_operator::Error> {
///     Ok(toolward_operator::runtime()?.block_on(async { 7 }))
/// });
/// assert_eq!(fetched.join().map_err(|_| "it panicked")??, 7);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `runtime-unavailable` on a thread that already runs a tokio runtime, since blocking would panic
/// there, or if the system lacks the resources.
pub fn runtime() -> Result<Runtime> {
    if Handle::try_current().is_ok() {
        let message = "this blocks, and was called inside a tokio runtime";
        return Err(Error::failed(Code::RuntimeUnavailable, message)
            .hint("call it on a thread of its own, such as one of std::thread::spawn"));
    }
    built(Builder::new_current_thread(), 0)
}

/// Builds a runtime with this number of threads for its tasks.
///
/// # Errors
/// `runtime-unavailable` if the system lacks the resources.
pub fn runtime_with(threads: usize) -> Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads);
    built(builder, threads)
}

fn built(mut builder: Builder, threads: usize) -> Result<Runtime> {
    let started = || {
        // Tokio panics if it can't start the threads for tasks, so this tries first. One more
        // thread builds the runtime.
        all_start(threads.saturating_add(BLOCKING_THREADS).saturating_add(1))?;
        builder.enable_all().thread_keep_alive(KEEP_ALIVE);
        within(START_TIMEOUT, move || start(&mut builder))
    };
    started().map_err(Error::runtime)
}

/// Builds a runtime. Call it through `within`: the system may have run short of threads or of open
/// files since the threads were tried. Tokio then panics, and may wait forever for threads that it
/// has started.
fn start(builder: &mut Builder) -> io::Result<Runtime> {
    let runtime = builder.build()?;
    let (gate, (sender, arrived)) = (Arc::new(Mutex::new(())), channel());
    let closed = gate.lock();
    for _ in 0..BLOCKING_THREADS {
        runtime.spawn_blocking(waiting(&gate, &sender));
    }
    for _ in 0..BLOCKING_THREADS {
        let arrived = arrived.recv_timeout(START_TIMEOUT);
        arrived.map_err(|_| shortage())?;
    }
    drop(closed);
    Ok(runtime)
}

/// The work of a thread that reports that it has started, and then waits at a gate until the gate
/// is open.
fn waiting(gate: &Arc<Mutex<()>>, arrived: &Sender<()>) -> impl FnOnce() + Send + use<> {
    let (gate, arrived) = (Arc::clone(gate), arrived.clone());
    move || {
        let _ = arrived.send(());
        drop(gate.lock());
    }
}

/// Runs `work` on a separate thread, which is abandoned if it takes longer than `longest`. A panic
/// becomes an error.
fn within<T: Send + 'static>(
    longest: Duration,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = channel();
    let thread = thread::Builder::new().name(RUNTIME_THREAD.to_owned());
    thread.spawn(move || sender.send(work()))?;
    let done = receiver.recv_timeout(longest);
    done.unwrap_or_else(|_| Err(shortage()))
}

fn shortage() -> io::Error {
    io::Error::new(
        io::ErrorKind::WouldBlock,
        "the system is short of threads or open files",
    )
}

/// Checks that this number of threads can be started at once.
fn all_start(count: usize) -> io::Result<()> {
    let (gate, (sender, _arrived)) = (Arc::new(Mutex::new(())), channel());
    let closed = gate.lock();
    let threads: io::Result<Vec<_>> = (0..count)
        .map(|_| thread::Builder::new().spawn(waiting(&gate, &sender)))
        .collect();
    drop(closed);
    for thread in threads? {
        let _ = thread.join();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn inside_a_runtime_it_is_an_error_and_no_panic() {
        let error = runtime().unwrap_err();
        assert_eq!(error.code, Code::RuntimeUnavailable.code());
        let elsewhere = std::thread::spawn(|| runtime().is_ok());
        assert!(elsewhere.join().unwrap());
    }

    #[test]
    fn a_runtime_that_panics_or_hangs_while_it_is_built_is_an_error() {
        let panics = within(START_TIMEOUT, || -> io::Result<()> { panic!("no thread") });
        assert_eq!(panics.unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let hangs = within(Duration::from_millis(1), || {
            thread::sleep(START_TIMEOUT);
            Ok(())
        });
        assert_eq!(hangs.unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }
}
