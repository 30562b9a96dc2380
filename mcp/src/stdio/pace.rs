//! How far messages are read ahead of the calls that they make.
//!
//! An open call keeps some 20 KB. Were a thousand of them read at once, what a call uses would have left the
//! processor's caches when its turn comes, and each would take a quarter longer.

use std::time::Duration;

use tokio::time::Instant;

/// Calls that are read at once. More run together only where the operator raises the limit.
const READ_AHEAD: usize = 64;
/// With fewer open, reading never waits.
const FEW: usize = 32;
/// How long reading waits for calls to end: much longer than so many short ones take. Whoever cancels a call, or
/// answers what one asks, has to be heard.
const PAUSE: Duration = Duration::from_millis(5);

/// Lets reading go on, or wait until calls have ended.
#[derive(Debug)]
pub(super) struct Pace {
    pause: Duration,
    /// So many calls may be open before reading waits.
    until_open: usize,
    /// The end of the pause, while there is one.
    waiting: Option<Instant>,
}

impl Default for Pace {
    fn default() -> Self {
        Self::pausing(PAUSE)
    }
}

impl Pace {
    /// Waits for so long at most.
    pub(super) fn pausing(pause: Duration) -> Self {
        Self {
            pause,
            until_open: FEW.saturating_add(READ_AHEAD),
            waiting: None,
        }
    }

    /// Waits until the next message may be read; `open` calls are open. Cancel safe: to be called again when a call
    /// has ended.
    pub(super) async fn next(&mut self, open: usize) {
        if open > self.until_open.saturating_sub(READ_AHEAD) {
            if self.waiting.is_none() && open < self.until_open {
                return;
            }
            let pause = self.pause;
            let end = self.waiting.get_or_insert_with(|| Instant::now() + pause);
            tokio::time::sleep_until(*end).await;
        }
        // Either enough have ended, or those that are open take their time.
        self.waiting = None;
        self.until_open = open.max(FEW).saturating_add(READ_AHEAD);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn reads(pace: &mut Pace, open: usize) -> bool {
        pace.next(open).now_or_never().is_some()
    }

    #[tokio::test]
    async fn reading_waits_at_many_open_calls_until_few_are_open() {
        let mut pace = Pace::pausing(Duration::from_secs(3600));
        for open in 0..96 {
            assert!(reads(&mut pace, open), "{open}");
        }
        for open in (33..=96).rev() {
            assert!(!reads(&mut pace, open), "{open}");
        }
        for open in 32..96 {
            assert!(reads(&mut pace, open), "{open}");
        }
        assert!(!reads(&mut pace, 96));
    }

    #[tokio::test]
    async fn calls_that_take_their_time_hold_up_nothing_but_once() {
        let mut pace = Pace::pausing(Duration::ZERO);
        assert!(reads(&mut pace, 95));
        pace.next(96).await;
        // Those stay open. As many as ever are read beside them, and the next ones when these have ended.
        pace.pause = Duration::from_secs(3600);
        for _ in 0..3 {
            for open in 96..160 {
                assert!(reads(&mut pace, open), "{open}");
            }
            assert!(!reads(&mut pace, 160));
            assert!(!reads(&mut pace, 97));
        }
        // When they have ended, too, all is as before.
        assert!(reads(&mut pace, 10));
        assert!(reads(&mut pace, 95));
        assert!(!reads(&mut pace, 96));
    }
}
