//! Runs blocking work on a thread for it, so that the deadline can end a guest that
//! waits for a disk; few at once, so that other guests find a thread. Queued work is
//! dropped with its future; started work runs to its end.

use std::sync::Arc;

use tokio::sync::Semaphore;
use wasmtime_wasi::runtime::{AbortOnDropJoinHandle, spawn, spawn_blocking};

use super::errors::Fail;

/// Runs `work`, and waits for it.
pub(super) async fn run<R: Send + 'static>(
    threads: &Arc<Semaphore>,
    work: impl FnOnce() -> Result<R, Fail> + Send + 'static,
) -> Result<R, Fail> {
    // The semaphore is never closed; fail rather than run without a permit.
    let permit = threads.clone().acquire_owned().await.ok();
    spawn_blocking(move || {
        let _permit = permit;
        work()
    })
    .await
}

/// Starts `work` without waiting for it.
pub(super) fn start<R: Send + 'static>(
    threads: &Arc<Semaphore>,
    work: impl FnOnce() -> Result<R, Fail> + Send + 'static,
) -> AbortOnDropJoinHandle<Result<R, Fail>> {
    let threads = threads.clone();
    spawn(async move { run(&threads, work).await })
}
