//! The preparation of a driver, shared by all calls that wait for it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use toolward_sandbox::compile::{Callers, CompileError, CompileReason, Stage};
use toolward_sandbox::run::Prepared;

/// The preparation of one driver.
#[derive(Default)]
pub(super) struct Preparation {
    /// The prepared driver, or a verdict.
    pub(super) done: OnceLock<Result<Prepared, CompileError>>,
    /// Held while it is prepared.
    pub(super) busy: Arc<tokio::sync::Mutex<()>>,
    /// The principals whose calls wait for it.
    pub(super) callers: Callers,
    pub(super) stage: Mutex<Option<Stage>>,
    /// The last attempt that failed without a verdict, and when.
    pub(super) failed: Mutex<Option<(Instant, CompileError)>>,
}

impl Preparation {
    /// Whether a call can use it without waiting.
    pub(super) fn is_ready(&self) -> bool {
        self.done.get().is_some()
    }

    pub(super) fn finish(&self, result: Result<Prepared, CompileError>) {
        *self.stage() = None;
        match result {
            Err(error) if !error.reason().is_verdict() => {
                tracing::warn!(%error, "a driver was not prepared; it may be later");
                *self.failed() = Some((Instant::now(), error));
            }
            result => {
                let _ = self.done.set(result);
            }
        }
    }

    /// Whether an attempt failed since `asked`. Its error then also counts for the
    /// calls that waited for it.
    pub(super) fn failed_since(&self, asked: Instant) -> bool {
        self.failed().as_ref().is_some_and(|(at, _)| *at >= asked)
    }

    pub(super) fn last_failure(&self) -> CompileError {
        let failed = self.failed();
        failed.as_ref().map_or_else(
            || CompileError::new(CompileReason::Cancelled, "preparing it was cancelled"),
            |(_, error)| error.clone(),
        )
    }

    pub(super) fn stage(&self) -> std::sync::MutexGuard<'_, Option<Stage>> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn failed(&self) -> std::sync::MutexGuard<'_, Option<(Instant, CompileError)>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
