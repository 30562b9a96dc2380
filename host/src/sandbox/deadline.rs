//! One deadline over a whole future, checked at every poll.
//!
//! A timer alone is not enough: when every worker of the runtime is busy with
//! guests, the timer driver runs late. A guest yields after a fixed amount of
//! fuel, so looking at the clock at each poll ends it on time. What comes after
//! the deadline is late, and no result.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Instant;

/// The future did not end before its deadline, and was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Elapsed;

/// Drives `future` until `deadline` at the latest. Pinned by the caller: moved in
/// here, it would take its room in the caller's future twice.
///
/// Needs a tokio runtime with its timer enabled.
pub(crate) async fn before<F: Future + Unpin>(
    deadline: Instant,
    mut future: F,
) -> Result<F::Output, Elapsed> {
    let mut timer = pin!(tokio::time::sleep_until(deadline.into()));
    poll_fn(|context| {
        let polled = Pin::new(&mut future).poll(context);
        if Instant::now() >= deadline {
            return Poll::Ready(Err(Elapsed));
        }
        // The timer is only set once there is something to wait for.
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
