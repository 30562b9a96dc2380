//! Runtimes that don't panic when the system is short of threads.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

use crate::error::{Code, Error, Result};

/// Threads for blocking work that a runtime starts with, in addition to the threads for its tasks. Tokio panics if it can't
/// start the first of them; without another one, the work waits for a present thread.
const BLOCKING_THREADS: usize = 2;
/// Longer than a runtime, so that these threads stay.
const KEEP_ALIVE: Duration = Duration::from_hours(24 * 365);
/// How long a thread may take to start.
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// A runtime for one piece of work of this thread, such as a transfer.
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
/// `runtime-unavailable` on a thread that already runs a tokio runtime, where blocking
/// would panic, or if the system has no resources for one.
pub fn runtime() -> Result<Runtime> {
    if Handle::try_current().is_ok() {
        let message = "this blocks, and was called inside a tokio runtime";
        return Err(Error::failed(Code::RuntimeUnavailable, message)
            .hint("call it on a thread of its own, such as one of std::thread::spawn"));
    }
    built(Builder::new_current_thread(), 0)
}

/// A runtime with this number of threads for its tasks.
///
/// # Errors
/// `runtime-unavailable` if the system has no resources for it.
pub fn runtime_with(threads: usize) -> Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(threads);
    built(builder, threads)
}

fn built(mut builder: Builder, threads: usize) -> Result<Runtime> {
    // Tokio panics if it can't start the threads for tasks.
    all_start(threads.saturating_add(BLOCKING_THREADS)).map_err(Error::runtime)?;
    builder.enable_all().thread_keep_alive(KEEP_ALIVE);
    // The system may be short of threads since then.
    let built = catch_unwind(AssertUnwindSafe(|| {
        let runtime = builder.build()?;
        let gate = Arc::new(RwLock::new(()));
        let _closed = gate.write();
        let (sender, started) = channel();
        for _ in 0..BLOCKING_THREADS {
            let (gate, sender) = (gate.clone(), sender.clone());
            runtime.spawn_blocking(move || {
                let _ = sender.send(());
                drop(gate.read());
            });
        }
        for _ in 0..BLOCKING_THREADS {
            let started = started.recv_timeout(START_TIMEOUT);
            started.map_err(|_| io::Error::from(io::ErrorKind::WouldBlock))?;
        }
        Ok::<_, io::Error>(runtime)
    }));
    built
        .unwrap_or_else(|_| Err(io::ErrorKind::WouldBlock.into()))
        .map_err(Error::runtime)
}

/// Checks that this number of threads can be started at once. Each waits until all are started.
fn all_start(count: usize) -> io::Result<()> {
    let gate = Arc::new(RwLock::new(()));
    let closed = gate.write();
    let start = |_| {
        let gate = gate.clone();
        thread::Builder::new().spawn(move || drop(gate.read()))
    };
    let threads: io::Result<Vec<_>> = (0..count).map(start).collect();
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
}
