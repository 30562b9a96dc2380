//! Admission: so many calls run at once, so many wait, the rest is told to
//! come back.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::limits::Limits;
use crate::result::{CallError, ErrorClass, ErrorCode, Hit};

/// What a caller is told to wait when the queue is full.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// The slots of a host and the queue before them.
#[derive(Debug)]
pub(crate) struct Admission {
    slots: Semaphore,
    waiting: AtomicU32,
    queue: u32,
}

impl Admission {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            slots: Semaphore::new(limits.concurrency.max(1) as usize),
            waiting: AtomicU32::new(0),
            queue: limits.queue,
        }
    }

    /// A slot, at once or after waiting; first come, first served.
    pub(crate) async fn enter(&self) -> Result<SemaphorePermit<'_>, CallError> {
        if let Ok(permit) = self.slots.try_acquire() {
            return Ok(permit);
        }
        let _place = Place::take(&self.waiting, self.queue)?;
        self.slots.acquire().await.map_err(|_closed| {
            CallError::new(
                ErrorCode::INTERNAL,
                ErrorClass::ExecutionFailed,
                "the host is shutting down",
            )
        })
    }
}

/// A place in the queue, given back when its holder goes, however it goes.
struct Place<'a>(&'a AtomicU32);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicU32, queue: u32) -> Result<Self, CallError> {
        waiting
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
                (now < queue).then(|| now.saturating_add(1))
            })
            .map(|_before| Self(waiting))
            .map_err(|now| {
                CallError::new(
                    ErrorCode::RATE_LIMITED,
                    ErrorClass::RateLimited,
                    format!("{now} calls are waiting already"),
                )
                .with_limit(Hit {
                    limit: "queue",
                    used: u64::from(now).saturating_add(1),
                    allowed: u64::from(queue),
                })
                .with_hint("try again later, or raise the limits `concurrency` or `queue`")
                .retry_after(RETRY_AFTER)
            })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_queue_refuses_and_a_freed_place_is_given_again() {
        let limits = Limits {
            concurrency: 1,
            queue: 1,
            ..Limits::default()
        };
        let admission = Admission::new(&limits);
        let running = admission.enter().await.expect("a free slot");
        let mut waiting = Box::pin(admission.enter());
        assert!(futures_util::poll!(waiting.as_mut()).is_pending());

        let refused = admission.enter().await.expect_err("the queue is full");
        assert_eq!(refused.code, ErrorCode::RATE_LIMITED);
        assert!(refused.retryable && refused.retry_after.is_some());

        drop(waiting);
        let mut again = Box::pin(admission.enter());
        assert!(futures_util::poll!(again.as_mut()).is_pending());
        drop(running);
        let _slot = again.await.expect("the freed slot");
    }
}
