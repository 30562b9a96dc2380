//! Drivers report progress on the thread that runs them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use toolward_host::{CallFacts, Observer, Progress};

use super::*;
use crate::call::testing;

/// Longer than anything takes that comes at all.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);
/// A poll that a busy machine interrupts counts as long. That does not happen each time.
const TRIES: usize = 100;

/// Where a call reported progress, and whether it was cancelled.
#[derive(Default)]
struct Seen {
    /// Whether on the runtime for long calls, for each report.
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

/// A connection's runtime, and that for long calls.
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
        // The driver is compiled before anything is looked at.
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
        let request = Request::with_value("notes.ask", json!({ "do": "steps", "steps": steps }))
            .observer(Arc::new(Watched {
                long_calls: long_calls.id(),
                seen,
            }));
        let runtime = CallRuntime {
            host: &self.host,
            long_calls: Some(long_calls),
            others_open,
        };
        runtime.call(request).await
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
