//! How many calls are read before earlier ones have ended.
//!
//! An open call keeps some 20 KB. Were a thousand of them read at once, what a call uses would have left the
//! processor's caches when its turn comes, and each would take a quarter longer.

use std::time::Duration;

use tokio::time::Instant;

/// As many calls as run together, by the default limits of the host: reading never waits while fewer are open.
const RUNNING_CALLS: usize = 96;
/// Calls that are read beyond those. Then reading waits until as many have ended.
const WAITING_CALLS: usize = 32;
/// By how many the calls that count no more become fewer with each pause that ends early.
const DECAY_CALLS: usize = 4;
/// How long reading waits at most. Whoever cancels a call, or answers what one asks, has to be heard.
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// Lets reading go on, or wait until calls have ended.
#[derive(Debug)]
pub(super) struct ReadAhead {
    longest_pause: Duration,
    /// As many calls as were open at the end of a pause in which too few ended. So many count no more.
    staying: usize,
    /// The end of the pause, while there is one.
    waiting: Option<Instant>,
}

impl Default for ReadAhead {
    fn default() -> Self {
        Self::with_pauses_of(LONGEST_PAUSE)
    }
}

impl ReadAhead {
    /// With pauses that last this long at most.
    pub(super) fn with_pauses_of(longest_pause: Duration) -> Self {
        Self {
            longest_pause,
            staying: 0,
            waiting: None,
        }
    }

    /// Waits until the next message may be read; `open` calls are open. Cancel safe: to be called again when a call
    /// has ended.
    pub(super) async fn ready(&mut self, open: usize) {
        self.staying = self.staying.min(open);
        let others = open.saturating_sub(self.staying);
        if others > RUNNING_CALLS {
            let many = others >= RUNNING_CALLS.saturating_add(WAITING_CALLS);
            if self.waiting.is_none() && !many {
                return;
            }
            let pause = self.longest_pause;
            let end = self.waiting.get_or_insert_with(|| Instant::now() + pause);
            tokio::time::sleep_until(*end).await;
            self.staying = open;
        } else if self.waiting.is_some() {
            // Calls end quickly: those that stayed may have ended among them.
            self.staying = self.staying.saturating_sub(DECAY_CALLS);
        }
        self.waiting = None;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn reads(read_ahead: &mut ReadAhead, open: usize) -> bool {
        read_ahead.ready(open).now_or_never().is_some()
    }

    #[tokio::test]
    async fn reading_waits_at_many_open_calls_until_no_more_are_open_than_run_together() {
        let mut read_ahead = ReadAhead::with_pauses_of(HOUR);
        for open in 0..128 {
            assert!(reads(&mut read_ahead, open), "{open}");
        }
        for open in (97..=128).rev() {
            assert!(!reads(&mut read_ahead, open), "{open}");
        }
        for open in 96..128 {
            assert!(reads(&mut read_ahead, open), "{open}");
        }
        assert!(!reads(&mut read_ahead, 128));
    }

    /// Lets a pause run out while this many calls are open.
    async fn stay(read_ahead: &mut ReadAhead, open: usize) {
        read_ahead.longest_pause = Duration::ZERO;
        read_ahead.ready(open).await;
        read_ahead.longest_pause = HOUR;
    }

    #[tokio::test]
    async fn calls_that_take_their_time_hold_up_others_once() {
        let mut read_ahead = ReadAhead::with_pauses_of(HOUR);
        for staying in [128, 256, 384] {
            stay(&mut read_ahead, staying).await;
            for open in staying..staying + 128 {
                assert!(reads(&mut read_ahead, open), "{open}");
            }
        }
        // When they have ended, all is as before.
        assert!(reads(&mut read_ahead, 0));
        assert!(reads(&mut read_ahead, 127));
        assert!(!reads(&mut read_ahead, 128));
    }

    #[tokio::test]
    async fn where_calls_end_quickly_again_all_of_them_count_after_a_while() {
        let mut read_ahead = ReadAhead::with_pauses_of(HOUR);
        stay(&mut read_ahead, 128).await;
        for staying in (0..=128).rev().step_by(4) {
            assert!(!reads(&mut read_ahead, staying + 128), "{staying}");
            assert!(!reads(&mut read_ahead, staying + 97), "{staying}");
            assert!(reads(&mut read_ahead, staying + 96), "{staying}");
        }
        assert!(!reads(&mut read_ahead, 128));
    }

    #[tokio::test]
    async fn a_pause_ends_although_calls_end_now_and_then() {
        let mut read_ahead = ReadAhead::with_pauses_of(HOUR);
        assert!(!reads(&mut read_ahead, 128));
        let end = read_ahead.waiting.expect("a pause");
        assert!(!reads(&mut read_ahead, 127));
        assert_eq!(read_ahead.waiting, Some(end));
        read_ahead.waiting = Some(Instant::now());
        read_ahead.ready(126).await;
    }
}
