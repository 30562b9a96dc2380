//! Runs what blocks on a thread that may: so that the deadline can end a guest
//! that waits for a disk, and few at once, so that its neighbours find a thread.
//! Work that has not begun when nobody waits for it any more is not begun; work
//! that has begun ends, which on files and directories it does.

use std::sync::Arc;

use tokio::sync::Semaphore;
use wasmtime_wasi::runtime::{AbortOnDropJoinHandle, spawn, spawn_blocking};

use super::errors::Fail;

/// Runs `work`, and waits for it.
pub(super) async fn run<R: Send + 'static>(
    threads: &Arc<Semaphore>,
    work: impl FnOnce() -> Result<R, Fail> + Send + 'static,
) -> Result<R, Fail> {
    // Nobody closes the semaphore; without a permit there would be no limit.
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
