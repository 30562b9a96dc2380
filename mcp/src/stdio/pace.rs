//! How many calls are read before earlier ones have ended.
//!
//! An open call keeps some 20 KB. Were a thousand of them read at once, what a call uses would have left the
//! processor's caches when its turn comes, and each would take a quarter longer.

use std::time::Duration;

use tokio::time::Instant;

/// As many calls as run together, by the default limits of the host: reading never waits while fewer are open.
const RUNNING: usize = 96;
/// Calls that are read beyond those. Then reading waits until as many have ended.
const READ_AHEAD: usize = 32;
/// How long reading waits at most. Whoever cancels a call, or answers what one asks, has to be heard.
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// Lets reading go on, or wait until calls have ended.
#[derive(Debug)]
pub(super) struct Pace {
    longest_pause: Duration,
    /// Calls that were open at the end of a pause in which too few ended. They take their time, and count no more.
    staying: usize,
    /// The end of the pause, while there is one.
    waiting: Option<Instant>,
}

impl Default for Pace {
    fn default() -> Self {
        Self::with_pauses_of(LONGEST_PAUSE)
    }
}

impl Pace {
    /// A pace whose pauses last this long at most.
    pub(super) fn with_pauses_of(longest_pause: Duration) -> Self {
        Self {
            longest_pause,
            staying: 0,
            waiting: None,
        }
    }

    /// Waits until the next message may be read; `open` calls are open. Cancel safe: to be called again when a call
    /// has ended.
    pub(super) async fn next(&mut self, open: usize) {
        self.staying = self.staying.min(open);
        let others = open.saturating_sub(self.staying);
        if others > RUNNING {
            let many = others >= RUNNING.saturating_add(READ_AHEAD);
            if self.waiting.is_none() && !many {
                return;
            }
            let pause = self.longest_pause;
            let end = self.waiting.get_or_insert_with(|| Instant::now() + pause);
            tokio::time::sleep_until(*end).await;
            self.staying = open;
        }
        self.waiting = None;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn reads(pace: &mut Pace, open: usize) -> bool {
        pace.next(open).now_or_never().is_some()
    }

    #[tokio::test]
    async fn reading_waits_at_many_open_calls_until_no_more_are_open_than_run_together() {
        let mut pace = Pace::with_pauses_of(HOUR);
        for open in 0..128 {
            assert!(reads(&mut pace, open), "{open}");
        }
        for open in (97..=128).rev() {
            assert!(!reads(&mut pace, open), "{open}");
        }
        for open in 96..128 {
            assert!(reads(&mut pace, open), "{open}");
        }
        assert!(!reads(&mut pace, 128));
    }

    #[tokio::test]
    async fn calls_that_take_their_time_hold_up_others_once() {
        let mut pace = Pace::with_pauses_of(Duration::ZERO);
        assert!(reads(&mut pace, 127));
        pace.next(128).await;
        // Those stay open, and as many as ever are read beside them.
        pace.longest_pause = HOUR;
        for _ in 0..3 {
            for open in 128..256 {
                assert!(reads(&mut pace, open), "{open}");
            }
            assert!(!reads(&mut pace, 256));
            assert!(!reads(&mut pace, 225));
            assert!(reads(&mut pace, 224));
        }
        // When they have ended, all is as before.
        assert!(reads(&mut pace, 0));
        assert!(reads(&mut pace, 127));
        assert!(!reads(&mut pace, 128));
    }

    #[tokio::test]
    async fn a_pause_ends_although_calls_end_now_and_then() {
        let mut pace = Pace::with_pauses_of(HOUR);
        assert!(!reads(&mut pace, 128));
        let end = pace.waiting.expect("a pause");
        assert!(!reads(&mut pace, 127));
        assert_eq!(pace.waiting, Some(end));
        pace.waiting = Some(Instant::now());
        pace.next(126).await;
    }
}
