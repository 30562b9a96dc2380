//! How many calls are read before earlier ones have ended.
//!
//! An open call takes about 20 KB. If a thousand calls were read at once, the data of each call
//! would have left the processor's caches by its turn, and each call would take longer. So reading
//! pauses at 32 open calls for each processor until 24 of them have ended.

use std::thread;
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeMetrics};
use tokio::time::Instant;

/// Reading pauses when this many calls are open for each processor.
const BATCH_PER_PROCESSOR: usize = 32;
/// Reading resumes when this many of them have ended. The others keep the processor busy in the
/// meantime.
const ENDED_PER_PROCESSOR: usize = 24;
/// The largest batch, and the batch after a pause that timed out. It is a little larger than the
/// number of calls that run at once by the host's default limits.
const MAX_BATCH: usize = 128;
/// A larger number of processors does not enlarge the batch.
const MAX_BATCH_PROCESSORS: usize = MAX_BATCH / BATCH_PER_PROCESSOR;
/// How much the number of slow calls drops with each pause in which enough calls ended.
const SLOW_CALLS_DECAY: usize = 4;
/// How often a pause looks for an idle processor while no call ends.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_millis(1);
/// How long reading pauses at most. The server must see in time that a client cancels a call or
/// answers a question.
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// The threads that calls run on.
#[derive(Debug)]
pub(super) struct CallThreads {
    runtime: RuntimeMetrics,
    /// How many of the threads can run at once.
    processors: usize,
    /// How many of these threads always run, since they serve the connection: one on the
    /// connection's own runtime, otherwise none.
    serving_threads: usize,
    /// How often threads had parked when reading last resumed.
    parks_at_last_read: u64,
}

impl CallThreads {
    /// The threads of a runtime that does not serve the connection.
    pub(super) fn of(runtime: &Handle) -> Self {
        let runtime = runtime.metrics();
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self {
            processors: processors.min(runtime.num_workers()),
            serving_threads: 0,
            parks_at_last_read: 0,
            runtime,
        }
    }

    /// The threads of the connection's own runtime. The caller runs on one of them.
    pub(super) fn of_connection() -> Self {
        Self {
            serving_threads: 1,
            ..Self::of(&Handle::current())
        }
    }

    /// Remembers how often threads have parked. Call it when reading resumes: only a thread that
    /// parks after that can have run the calls that are read now.
    fn remember_parks(&mut self) {
        self.parks_at_last_read = self.parks();
    }

    /// Whether a processor is idle while calls wait for something else: a thread has parked since
    /// reading last resumed, and fewer threads run than there are processors.
    fn have_an_idle_processor(&self) -> bool {
        // A parked thread has started to park once more than it has stopped.
        let running = self.park_counts().filter(|count| count % 2 == 0).count();
        running < self.processors.saturating_add(self.serving_threads)
            && self.parks() != self.parks_at_last_read
    }

    /// How often threads have parked.
    fn parks(&self) -> u64 {
        self.park_counts().map(|count| count.div_ceil(2)).sum()
    }

    /// How often each thread has started or stopped parking.
    fn park_counts(&self) -> impl Iterator<Item = u64> {
        let threads = 0..self.runtime.num_workers();
        threads.map(|thread| self.runtime.worker_park_unpark_count(thread))
    }
}

/// Decides whether reading continues or waits until calls have ended.
#[derive(Debug)]
pub(super) struct ReadAhead {
    threads: CallThreads,
    longest_pause: Duration,
    /// Reading pauses when this many calls are open, not counting slow calls.
    batch: usize,
    /// The number of slow calls: calls that were open at the end of a pause in which too few ended.
    slow_calls: usize,
    waiting: Option<Pause>,
}

/// A pause that has started.
#[derive(Clone, Copy, Debug)]
struct Pause {
    /// The pause ends when at most this many calls are open, not counting slow calls.
    left: usize,
    /// When the pause ends even if too few calls have ended.
    end: Instant,
}

impl ReadAhead {
    /// Reads ahead for calls on these threads.
    pub(super) fn of(threads: CallThreads) -> Self {
        let mut read_ahead = Self {
            threads,
            longest_pause: LONGEST_PAUSE,
            batch: 0,
            slow_calls: 0,
            waiting: None,
        };
        read_ahead.batch = read_ahead.per_processor(BATCH_PER_PROCESSOR);
        read_ahead
    }

    /// Whether calls that come while others are open run on threads that do not serve the
    /// connection.
    pub(super) fn calls_run_elsewhere(&self) -> bool {
        self.threads.serving_threads == 0
    }

    fn per_processor(&self, calls: usize) -> usize {
        calls.saturating_mul(self.threads.processors.min(MAX_BATCH_PROCESSORS))
    }

    /// Waits until the next message may be read, while `open` calls are open. Cancel safe. Call it
    /// again when a call has ended.
    pub(super) async fn ready(&mut self, open: usize) {
        self.slow_calls = self.slow_calls.min(open);
        let others = open.saturating_sub(self.slow_calls);
        let pause = match self.waiting {
            Some(pause) => pause,
            None if others < self.batch => {
                self.threads.remember_parks();
                return;
            }
            None => self.begin(others),
        };
        if others <= pause.left {
            // Calls end quickly, so slow calls may have ended, too.
            self.slow_calls = self.slow_calls.saturating_sub(SLOW_CALLS_DECAY);
            self.batch = self.per_processor(BATCH_PER_PROCESSOR);
        } else {
            self.batch = self.wait_for_end(pause, open).await;
            self.slow_calls = open;
        }
        self.waiting = None;
        self.threads.remember_parks();
    }

    fn begin(&mut self, others: usize) -> Pause {
        let pause = Pause {
            left: others.saturating_sub(self.per_processor(ENDED_PER_PROCESSOR)),
            end: Instant::now() + self.longest_pause,
        };
        self.waiting = Some(pause);
        pause
    }

    /// Waits until a pause ends although too few calls have ended. Returns the next batch. Cancel
    /// safe.
    async fn wait_for_end(&self, pause: Pause, open: usize) -> usize {
        // If more calls are open, further calls would only wait in the host, so an idle processor
        // does not end the pause.
        let may_be_idle = open < MAX_BATCH;
        loop {
            let now = Instant::now();
            if now >= pause.end {
                return MAX_BATCH;
            }
            if may_be_idle && self.threads.have_an_idle_processor() {
                // Calls that have ended may wait to be answered. Then they are answered during the
                // yield, and this future is dropped.
                tokio::task::yield_now().await;
                return self.per_processor(BATCH_PER_PROCESSOR);
            }
            tokio::time::sleep_until(pause.end.min(now + IDLE_CHECK_INTERVAL)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use futures_util::FutureExt as _;
    use tokio::runtime::{Builder, Runtime};

    use super::*;

    impl ReadAhead {
        /// For calls on the current thread, which always runs while it asks.
        pub(crate) fn of_one_thread(longest_pause: Duration) -> Self {
            Self::of_threads(1, longest_pause)
        }

        fn of_threads(processors: usize, longest_pause: Duration) -> Self {
            let mut threads = CallThreads::of(&Handle::current());
            threads.processors = processors;
            Self {
                longest_pause,
                ..Self::of(threads)
            }
        }
    }

    const HOUR: Duration = Duration::from_secs(3600);
    /// Longer than any step of these tests takes.
    const TEST_TIMEOUT: Duration = Duration::from_secs(60);

    fn reads(read_ahead: &mut ReadAhead, open: usize) -> bool {
        read_ahead.ready(open).now_or_never().is_some()
    }

    #[tokio::test]
    async fn reading_waits_at_many_open_calls_until_few_are_left() {
        for (processors, batch, left) in [(1, 32, 8), (2, 64, 16), (4, 128, 32), (64, 128, 32)] {
            let mut read_ahead = ReadAhead::of_threads(processors, HOUR);
            // No thread has parked since then, so a processor is not known to be idle.
            read_ahead.threads.remember_parks();
            for open in 0..batch {
                assert!(reads(&mut read_ahead, open), "{open}");
            }
            for open in (left + 1..=batch).rev() {
                assert!(!reads(&mut read_ahead, open), "{open}");
            }
            for open in left..batch {
                assert!(reads(&mut read_ahead, open), "{open}");
            }
            assert!(!reads(&mut read_ahead, batch));
        }
    }

    /// Lets a pause time out while this many calls are open.
    async fn time_out(read_ahead: &mut ReadAhead, open: usize) {
        read_ahead.longest_pause = Duration::ZERO;
        read_ahead.ready(open).await;
        read_ahead.longest_pause = HOUR;
    }

    #[tokio::test]
    async fn after_slow_calls_more_are_read_at_once() {
        let mut read_ahead = ReadAhead::of_one_thread(HOUR);
        for staying in [32, 160, 288] {
            time_out(&mut read_ahead, staying).await;
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
    async fn after_a_pause_that_was_too_long_quick_calls_come_down_to_a_batch() {
        let mut read_ahead = ReadAhead::of_one_thread(HOUR);
        time_out(&mut read_ahead, 32).await;
        let mut open: usize = 32;
        // A call ends whenever no more messages may be read.
        let mut after = |messages: usize| {
            let mut most = 0;
            for _ in 0..messages {
                while !reads(&mut read_ahead, open) {
                    open -= 1;
                }
                open += 1;
                most = most.max(open);
            }
            most
        };
        assert_eq!(after(128), 160);
        assert!(after(300) > 32);
        assert_eq!(after(300), 32);
    }

    #[tokio::test]
    async fn a_pause_ends_although_calls_end_now_and_then() {
        let mut read_ahead = ReadAhead::of_one_thread(HOUR);
        assert!(!reads(&mut read_ahead, 32));
        let end = read_ahead.waiting.expect("a pause").end;
        assert!(!reads(&mut read_ahead, 31));
        let pause = read_ahead.waiting.as_mut().expect("the same pause");
        assert_eq!(pause.end, end);
        pause.end = Instant::now();
        read_ahead.ready(30).await;
    }

    /// A runtime with two threads, one of which computes until something is sent.
    fn computing() -> (Runtime, mpsc::Sender<()>) {
        let calls = Builder::new_multi_thread().worker_threads(2).build();
        let calls = calls.expect("a runtime");
        let (end, computing) = mpsc::channel();
        let (tell, begun) = mpsc::channel();
        calls.spawn(async move {
            tell.send(()).expect("somebody waits");
            computing.recv()
        });
        begun.recv().expect("a call");
        (calls, end)
    }

    fn on(calls: &Runtime, processors: usize) -> ReadAhead {
        let mut threads = CallThreads::of(calls.handle());
        threads.processors = processors;
        let mut read_ahead = ReadAhead::of(threads);
        read_ahead.longest_pause = HOUR;
        read_ahead
    }

    #[tokio::test]
    async fn a_processor_with_nothing_to_do_ends_a_pause() {
        let (calls, end) = computing();
        let mut read_ahead = on(&calls, 1);
        read_ahead.ready(0).await;
        let many_steps = tokio::time::timeout(IDLE_CHECK_INTERVAL * 20, read_ahead.ready(32));
        assert!(many_steps.await.is_err(), "a call computes");
        end.send(()).expect("it computes");
        let idle = tokio::time::timeout(TEST_TIMEOUT, read_ahead.ready(32));
        idle.await.expect("the call has ended");
        for open in 33..64 {
            assert!(reads(&mut read_ahead, open), "{open}");
        }
        // No thread has parked since.
        let many_steps = tokio::time::timeout(IDLE_CHECK_INTERVAL * 20, read_ahead.ready(64));
        assert!(many_steps.await.is_err(), "nothing runs the calls");
        calls.shutdown_background();
    }

    #[tokio::test]
    async fn where_more_calls_are_open_than_run_together_no_idle_processor_ends_a_pause() {
        let (calls, end) = computing();
        let mut read_ahead = on(&calls, 1);
        read_ahead.ready(0).await;
        end.send(()).expect("it computes");
        let idle = tokio::time::timeout(TEST_TIMEOUT, read_ahead.ready(127));
        idle.await.expect("the call has ended");
        read_ahead.threads.parks_at_last_read = 0;
        read_ahead.slow_calls = 0;
        let many_steps = tokio::time::timeout(IDLE_CHECK_INTERVAL * 20, read_ahead.ready(128));
        assert!(many_steps.await.is_err(), "they would only wait");
        calls.shutdown_background();
    }
}
