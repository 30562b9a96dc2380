//! Chooses the runtime of a call: its connection's runtime, or another one if the call would hold
//! up the connection.
//!
//! A client that waits for each answer gets it soonest from the thread that read its message, since
//! waking another thread takes longer than a short call.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;
use toolward_host::{Host, Reply, Request};

/// If a poll takes at least this long and does not finish the call, the call moves to the other
/// runtime. A guest that computes yields less often than this, so its first poll moves the call.
const LONG_POLL: Duration = Duration::from_micros(100);

/// In the extensions of a call that came while other calls of its connection were open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OthersOpen;

/// The host that runs calls, and the facts that decide on which runtime a call runs.
#[derive(Clone, Copy)]
pub(crate) struct CallRuntime<'a> {
    pub(crate) host: &'a Host,
    /// The runtime for calls that would hold up the connection. Without it, no call is moved.
    pub(crate) long_calls: Option<&'a Handle>,
    /// Whether other calls of the connection are open.
    pub(crate) others_open: bool,
}

impl CallRuntime<'_> {
    pub(crate) async fn call(self, request: Box<Request>) -> Reply {
        let host = self.host.clone();
        // Boxed, since the future is large and would be moved with the futures around it.
        let mut call = Box::pin(async move { host.call(request).await });
        let Some(long_calls) = self.long_calls else {
            return call.await;
        };
        if !self.others_open {
            let reply = poll_fn(|context| {
                let began = Instant::now();
                match call.as_mut().poll(context) {
                    Poll::Ready(reply) => Poll::Ready(Some(reply)),
                    Poll::Pending if began.elapsed() >= LONG_POLL => Poll::Ready(None),
                    Poll::Pending => Poll::Pending,
                }
            });
            if let Some(reply) = reply.await {
                return reply;
            }
        }
        run_on(long_calls, call).await
    }
}

/// Runs the rest of a call as a task of `runtime`. Dropping the returned future cancels the call.
async fn run_on(
    runtime: &Handle,
    call: Pin<Box<impl Future<Output = Reply> + Send + 'static>>,
) -> Reply {
    match AbortOnDropHandle::new(runtime.spawn(call)).await {
        Ok(reply) => reply,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime was shut down, so the call is never answered.
            Err(_) => std::future::pending().await,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};
    use tempfile::TempDir;
    use tokio::runtime::{Builder, Runtime};
    use toolward_host::{CallFacts, Observer, Progress};

    use super::*;
    use crate::call::testing;

    /// Longer than any step of these tests takes.
    const TEST_TIMEOUT: Duration = Duration::from_secs(60);
    /// A poll that a busy machine interrupts counts as long, but not in each of these tries.
    const TRIES: usize = 100;

    /// The runtime of each progress report of a call, and whether the call was cancelled.
    #[derive(Default)]
    struct Seen {
        /// For each report, whether it came from the runtime for long calls.
        moved: Mutex<Vec<bool>>,
        canceled: AtomicBool,
    }

    struct Watched {
        long_calls: tokio::runtime::Id,
        seen: Arc<Seen>,
    }

    impl Observer for Watched {
        fn progress(&self, _: &Progress) {
            let moved = Handle::current().id() == self.long_calls;
            self.seen.moved.lock().unwrap().push(moved);
        }

        fn canceled(&self, _: &CallFacts) {
            self.seen.canceled.store(true, Ordering::Relaxed);
        }
    }

    /// A connection's runtime, and the runtime for long calls.
    struct Runtimes {
        connection: Runtime,
        long_calls: Runtime,
        host: Host,
        _bundle: TempDir,
    }

    impl Runtimes {
        fn new() -> Self {
            let of_one = || {
                Builder::new_multi_thread()
                    .worker_threads(1)
                    .enable_all()
                    .build()
            };
            let (bundle, host) = testing::host("Runtimes.");
            let connection = of_one().unwrap();
            // Compiles the driver before anything is measured.
            connection.block_on(host.prepare());
            Self {
                connection,
                long_calls: of_one().unwrap(),
                host,
                _bundle: bundle,
            }
        }

        /// A call that takes these steps.
        async fn call(&self, steps: Value, others_open: bool, seen: Arc<Seen>) -> Reply {
            let long_calls = self.long_calls.handle();
            let request =
                Request::with_value("notes.ask", json!({ "do": "steps", "steps": steps }))
                    .observer(Arc::new(Watched {
                        long_calls: long_calls.id(),
                        seen,
                    }));
            let runtime = CallRuntime {
                host: &self.host,
                long_calls: Some(long_calls),
                others_open,
            };
            runtime.call(Box::new(request)).await
        }

        /// For each report whether the call had moved.
        fn reports(&self, steps: &Value, others_open: bool) -> Vec<bool> {
            let seen = Arc::<Seen>::default();
            let called = self.call(steps.clone(), others_open, seen.clone());
            let reply = self.connection.block_on(called);
            reply.result.unwrap();
            let moved = seen.moved.lock().unwrap();
            moved.clone()
        }

        fn may_stay(&self, steps: &Value) -> bool {
            (0..TRIES).any(|_| !self.reports(steps, false).contains(&true))
        }
    }

    fn report(number: u32) -> Value {
        json!({ "do": "progress", "n": number })
    }

    #[test]
    fn a_call_stays_with_its_connection_unless_it_computes_for_long_or_others_are_open() {
        let runtimes = Runtimes::new();
        let echo = json!({ "do": "echo", "value": 1 });
        let short = json!([report(1), echo]);
        assert!(runtimes.may_stay(&short));
        assert_eq!(runtimes.reports(&short, true), [true]);
        // Many times what a guest computes between two yields.
        let work = json!({ "do": "repeat", "times": 20_000, "step": echo });
        let long = json!([report(1), work, report(2), echo]);
        assert_eq!(runtimes.reports(&long, false).last(), Some(&true));
    }

    #[test]
    fn whoever_drops_a_call_that_runs_elsewhere_cancels_it() {
        let runtimes = Runtimes::new();
        let seen = Arc::<Seen>::default();
        let endless = json!([report(1), { "do": "loop" }]);
        runtimes.connection.block_on(async {
            let mut call = Box::pin(runtimes.call(endless, true, seen.clone()));
            let started = Instant::now();
            while seen.moved.lock().unwrap().is_empty() {
                let soon = tokio::time::sleep(Duration::from_millis(1));
                tokio::select! {
                    reply = &mut call => panic!("{:?}", reply.result),
                    () = soon => assert!(started.elapsed() < TEST_TIMEOUT),
                }
            }
            drop(call);
            while !seen.canceled.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(1)).await;
                assert!(started.elapsed() < TEST_TIMEOUT);
            }
        });
    }
}
