//! How many calls are read before earlier ones have ended.
//!
//! An open call keeps some 20 KB. Were a thousand of them read at once, what a call uses would have left the
//! processor's caches when its turn comes, and each would take a third longer.

use std::thread;
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeMetrics};
use tokio::time::Instant;

/// As many calls for each processor as its caches have room for. At so many, reading waits.
const BATCH_CALLS: usize = 32;
/// As many calls for each processor as keep it busy until more have been read.
const LEFT_CALLS: usize = 8;
/// As many calls as are read after a pause in which too few of a batch ended; the largest batch.
const SLOW_BATCH_CALLS: usize = 128;
/// By how many the calls that count no more become fewer with each pause that ends early.
const DECAY_CALLS: usize = 4;
/// How often a pause looks for a processor that has nothing to do.
const STEP: Duration = Duration::from_millis(1);
/// How long reading waits at most. Whoever cancels a call, or answers what one asks, has to be heard.
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// The threads that calls run on.
#[derive(Debug)]
pub(super) struct CallThreads {
    runtime: RuntimeMetrics,
    processors: usize,
}

impl CallThreads {
    pub(super) fn of(runtime: &Handle) -> Self {
        Self {
            runtime: runtime.metrics(),
            processors: thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// Whether a processor has nothing to do: calls wait for something else.
    fn leave_a_processor_idle(&self) -> bool {
        // A thread that sleeps has begun to once more than it has ended it.
        let runs = |thread: &usize| self.runtime.worker_park_unpark_count(*thread) % 2 == 0;
        let running = (0..self.runtime.num_workers()).filter(runs).count();
        running < self.processors
    }
}

/// Lets reading go on, or wait until calls have ended.
#[derive(Debug)]
pub(super) struct ReadAhead {
    threads: CallThreads,
    longest_pause: Duration,
    /// At so many open calls, without those that stay, reading waits.
    batch: usize,
    /// As many calls as were open at the end of a pause in which too few ended. So many count no more.
    staying: usize,
    /// The end of the pause, while there is one.
    waiting: Option<Instant>,
}

impl ReadAhead {
    /// For calls on these threads.
    pub(super) fn of(threads: CallThreads) -> Self {
        let mut read_ahead = Self {
            threads,
            longest_pause: LONGEST_PAUSE,
            batch: 0,
            staying: 0,
            waiting: None,
        };
        read_ahead.batch = read_ahead.of_each_processor(BATCH_CALLS);
        read_ahead
    }

    fn of_each_processor(&self, calls: usize) -> usize {
        let calls = self.threads.processors.saturating_mul(calls);
        calls.min(SLOW_BATCH_CALLS)
    }

    /// Waits until the next message may be read; `open` calls are open. Cancel safe: to be called again when a call
    /// has ended.
    pub(super) async fn ready(&mut self, open: usize) {
        self.staying = self.staying.min(open);
        let others = open.saturating_sub(self.staying);
        if others > self.of_each_processor(LEFT_CALLS) {
            if self.waiting.is_none() && others < self.batch {
                return;
            }
            self.batch = match self.pause().await {
                Pause::Idle => self.of_each_processor(BATCH_CALLS),
                Pause::RanOut => SLOW_BATCH_CALLS,
            };
            self.staying = open;
        } else if self.waiting.is_some() {
            self.batch = self.of_each_processor(BATCH_CALLS);
            // Calls end quickly: those that stayed may have ended among them.
            self.staying = self.staying.saturating_sub(DECAY_CALLS);
        }
        self.waiting = None;
    }

    /// Waits, and goes on with a pause that has begun. Cancel safe.
    async fn pause(&mut self) -> Pause {
        let begun = Instant::now();
        let longest = self.longest_pause;
        let end = *self.waiting.get_or_insert_with(|| begun + longest);
        let mut now = begun;
        while now < end {
            tokio::time::sleep_until(end.min(now + STEP)).await;
            if self.threads.leave_a_processor_idle() {
                // Calls that have ended may wait to be answered; then this is dropped.
                tokio::task::yield_now().await;
                return Pause::Idle;
            }
            now = Instant::now();
        }
        Pause::RanOut
    }
}

/// Why a pause ended before calls did.
enum Pause {
    /// A processor had nothing to do.
    Idle,
    /// It lasted as long as it may.
    RanOut,
}

#[cfg(test)]
impl ReadAhead {
    /// For calls on one thread that always runs, which this one does while it asks.
    pub(super) fn of_one_thread(longest_pause: Duration) -> Self {
        let threads = CallThreads {
            runtime: Handle::current().metrics(),
            processors: 1,
        };
        Self {
            longest_pause,
            ..Self::of(threads)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::FutureExt as _;
    use tokio::runtime::Builder;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn reads(read_ahead: &mut ReadAhead, open: usize) -> bool {
        read_ahead.ready(open).now_or_never().is_some()
    }

    #[tokio::test]
    async fn reading_waits_at_many_open_calls_until_few_are_left() {
        let mut read_ahead = ReadAhead::of_one_thread(HOUR);
        for open in 0..32 {
            assert!(reads(&mut read_ahead, open), "{open}");
        }
        for open in (9..=32).rev() {
            assert!(!reads(&mut read_ahead, open), "{open}");
        }
        for open in 8..32 {
            assert!(reads(&mut read_ahead, open), "{open}");
        }
        assert!(!reads(&mut read_ahead, 32));
    }

    /// Lets a pause run out while this many calls are open.
    async fn run_out(read_ahead: &mut ReadAhead, open: usize) {
        read_ahead.longest_pause = Duration::ZERO;
        read_ahead.ready(open).await;
        read_ahead.longest_pause = HOUR;
    }

    #[tokio::test]
    async fn after_slow_calls_more_are_read_at_once() {
        let mut read_ahead = ReadAhead::of_one_thread(HOUR);
        for staying in [32, 160, 288] {
            run_out(&mut read_ahead, staying).await;
            for open in staying..staying + 128 {
                assert!(reads(&mut read_ahead, open), "{open}");
            }
        }
        assert!(!reads(&mut read_ahead, 416));
        // When they have ended, all is as before.
        assert!(reads(&mut read_ahead, 0));
        assert!(reads(&mut read_ahead, 31));
        assert!(!reads(&mut read_ahead, 32));
    }

    #[tokio::test]
    async fn where_calls_end_quickly_again_all_of_them_count_after_a_while() {
        let mut read_ahead = ReadAhead::of_one_thread(HOUR);
        run_out(&mut read_ahead, 64).await;
        assert!(!reads(&mut read_ahead, 64 + 128));
        assert!(reads(&mut read_ahead, 64 + 8));
        for staying in (0..=60).rev().step_by(4) {
            assert!(!reads(&mut read_ahead, staying + 32), "{staying}");
            assert!(!reads(&mut read_ahead, staying + 9), "{staying}");
            assert!(reads(&mut read_ahead, staying + 8), "{staying}");
        }
        assert!(!reads(&mut read_ahead, 32));
    }

    #[tokio::test]
    async fn a_pause_ends_although_calls_end_now_and_then() {
        let mut read_ahead = ReadAhead::of_one_thread(HOUR);
        assert!(!reads(&mut read_ahead, 32));
        let end = read_ahead.waiting.expect("a pause");
        assert!(!reads(&mut read_ahead, 31));
        assert_eq!(read_ahead.waiting, Some(end));
        read_ahead.waiting = Some(Instant::now());
        read_ahead.ready(30).await;
    }

    #[tokio::test]
    async fn a_processor_with_nothing_to_do_ends_a_pause() {
        let calls = Builder::new_multi_thread()
            .worker_threads(2)
            .build()
            .unwrap();
        let mut threads = CallThreads::of(calls.handle());
        threads.processors = 1;
        let mut read_ahead = ReadAhead {
            longest_pause: HOUR,
            ..ReadAhead::of(threads)
        };
        let (end, computing) = mpsc::channel::<()>();
        let (tell, begun) = mpsc::channel();
        let call = calls.spawn(async move {
            tell.send(()).unwrap();
            computing.recv()
        });
        begun.recv().unwrap();
        let many_steps = tokio::time::timeout(STEP * 20, read_ahead.ready(32));
        assert!(many_steps.await.is_err(), "a call computes");
        end.send(()).unwrap();
        call.await.unwrap().unwrap();
        for staying in [32, 64, 96] {
            read_ahead.ready(staying).await;
            for open in staying..staying + 32 {
                assert!(reads(&mut read_ahead, open), "{open}");
            }
        }
        calls.shutdown_background();
    }
}
