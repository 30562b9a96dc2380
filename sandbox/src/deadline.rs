//! One deadline over a whole future, checked at every poll.
//!
//! A timer alone is not enough: when every worker of the runtime is busy with guests, the timer
//! driver runs late. A guest yields after a fixed amount of fuel, so checking the clock at each
//! poll ends the guest on time. A result after the deadline is discarded.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Instant;

use tokio::time::Sleep;

use crate::turns::{self, Polls, Turn};

/// The error if the future did not end before its deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Elapsed;

/// Drives `future` until `deadline` at the latest. The caller pins the future: moving it into this
/// function would double its size in the caller's future.
///
/// Needs a tokio runtime with its timer enabled.
pub async fn before<F: Future + Unpin>(
    deadline: Instant,
    mut future: F,
) -> Result<F::Output, Elapsed> {
    let mut timer = pin!(tokio::time::sleep_until(deadline.into()));
    poll_fn(|context| {
        let polled = Pin::new(&mut future).poll(context);
        if Instant::now() >= deadline {
            return Poll::Ready(Err(Elapsed));
        }
        // The timer is set only once the future waits.
        if polled.is_pending() && timer.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(Elapsed));
        }
        polled.map(Ok)
    })
    .await
}

/// Like [`before`], for a guest, which is polled only in its turns. `began` is the current time.
pub(crate) async fn in_turns<F: Future + Unpin>(
    deadline: Instant,
    mut turn: Turn<'_>,
    began: Instant,
    polls: Arc<Polls>,
    mut guest: F,
) -> Result<F::Output, Elapsed> {
    let waker = Waker::from(polls.clone());
    let mut timer = pin!(tokio::time::sleep_until(deadline.into()));
    // A timer that reclaims untaken turns while this guest waits for a turn.
    let mut watch: Option<Pin<Box<Sleep>>> = None;
    let mut began = Some(began);
    poll_fn(|context| {
        if turn.begin(context).is_pending() {
            began = None;
            let watch = watch
                .get_or_insert_with(|| Box::pin(tokio::time::sleep(turns::STALLED_TURN_INTERVAL)));
            while watch.as_mut().poll(context).is_ready() {
                turn.watch();
                let now = tokio::time::Instant::now();
                let next = now.checked_add(turns::STALLED_TURN_INTERVAL).unwrap_or(now);
                watch.as_mut().reset(next);
            }
            if Instant::now() >= deadline || timer.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(Elapsed));
            }
            return Poll::Pending;
        }
        let began = began.take().unwrap_or_else(Instant::now);
        let (polled, ended) = turn.run(&mut guest, began, &polls, &waker, context);
        if ended >= deadline {
            return Poll::Ready(Err(Elapsed));
        }
        // The timer is set only once the future waits.
        if polled.is_pending() && timer.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(Elapsed));
        }
        polled.map(Ok)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[tokio::test]
    async fn a_future_that_ends_in_time_gives_its_output() {
        let deadline = Instant::now() + Duration::from_secs(5);
        assert_eq!(before(deadline, pin!(async { 7 })).await, Ok(7));
    }

    #[tokio::test]
    async fn what_comes_too_late_is_no_result() {
        let deadline = Instant::now() + Duration::from_millis(5);
        let late = async { std::thread::sleep(Duration::from_millis(10)) };
        assert_eq!(before(deadline, pin!(late)).await, Err(Elapsed));
    }

    #[tokio::test]
    async fn a_pending_future_ends_at_the_deadline() {
        let deadline = Instant::now() + Duration::from_millis(5);
        assert_eq!(
            before(deadline, std::future::pending::<()>()).await,
            Err(Elapsed)
        );
    }

    #[tokio::test]
    async fn a_future_that_only_yields_ends_at_the_deadline() {
        let deadline = Instant::now() + Duration::from_millis(5);
        let spinning = async {
            loop {
                tokio::task::yield_now().await;
            }
        };
        assert_eq!(
            before(deadline, pin!(spinning)).await.map(|(): ()| ()),
            Err(Elapsed)
        );
    }
}
