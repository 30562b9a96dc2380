//! Processor time is shared by principal: while one principal runs many endless loops, another's
//! calls take at most three times as long as with one loop for each core.
//!
//! One loop for each core keeps the machine as busy as many loops. `cargo xtask long` checks the
//! stricter promise, at most three times as long as alone, which needs an otherwise idle machine.
//!
//! These tests are a separate program, since tests that measure time must not run next to others.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[expect(dead_code, reason = "it belongs to the hostile tests")]
#[path = "../hostile/world.rs"]
mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::Mutex;
use toolward_host::{Host, Limit, Limits, Observer, Progress, Request};

use crate::world::{Bundle, Guest};

/// The number of endless loops during a neighbour's calls: many more than one for each core.
fn many() -> usize {
    cores().saturating_mul(16).max(96)
}

/// Fuel of a neighbour's call: about ten turns.
const WORK: u64 = 10_000_000;

/// Calls of a neighbour in one round, with few loops and with many.
const CALLS: usize = 50;

const ROUNDS: usize = 5;

/// How many times as long a neighbour's calls may take at most, at the 99th percentile.
const MAX_SLOWDOWN: f64 = 3.0;

/// How often a test is tried, since other work on the machine may spoil a try.
const TRIES: usize = 5;

/// A slowdown that only missing turns explain: without turns, at least 16 times as many loops run
/// before each slice of a call. Such a try is not repeated.
const HOPELESS_SLOWDOWN: f64 = 12.0;

/// Counts guests that have started.
#[derive(Default)]
struct Begun(AtomicUsize);

impl Observer for Begun {
    fn progress(&self, _: &Progress) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// `a.tool` may call `b.tool`. Neither time nor fuel ends a call, and only the principals' shares
/// delay a call.
fn host() -> (Bundle, Host) {
    let bundle = Bundle::of(
        "a.tool",
        Guest::Plain,
        "timeout_ms: 300000\nrequires:\n  tools: [b.tool]\n",
        "",
    )
    .with("b.tool", Guest::Plain, "timeout_ms: 300000\n", "");
    let limits = Limits {
        fuel: Limit::fixed(u64::MAX / 2),
        concurrency: u32::try_from(many() + 32).unwrap(),
        concurrency_per_tool: u32::try_from(many() + 32).unwrap(),
        concurrency_per_publisher: u32::try_from(many() + 32).unwrap(),
        ..Limits::default()
    };
    let host = bundle
        .builder("[[grant]]\npublisher = \"PUBLISHER\"\nrequires = [\"tool:b.tool\"]\n")
        .limits(limits)
        .build()
        .unwrap();
    (bundle, host)
}

/// Makes one call of the modest principal in a task, as a server does. A future that a test awaits
/// directly is polled by a thread that no task keeps busy.
async fn modest(host: &Host, times: u64) -> (Duration, u64) {
    let echo = json!({"do": "echo", "value": 1});
    let input = json!({"do": "repeat", "times": times, "step": echo});
    let request = Request::with_value("b.tool", input).principal("modest");
    let host = host.clone();
    let call = tokio::spawn(async move {
        let started = Instant::now();
        (host.call(request).await, started.elapsed())
    });
    let (reply, took) = call.await.unwrap();
    assert_eq!(reply.result.unwrap().structured["value"]["times"], times);
    (took, reply.metadata.fuel)
}

/// Makes calls, and pauses after each as long as the call took. A principal that computes all the
/// time gets only its equal share of a core, so it would not be a neighbour that needs less than
/// its share.
async fn calls(host: &Host, times: u64, took: &mut Vec<Duration>) {
    for _ in 0..CALLS {
        let (time, _) = modest(host, times).await;
        took.push(time);
        tokio::time::sleep(time).await;
    }
}

/// Returns the 99th percentile.
fn p99(times: &mut [Duration]) -> f64 {
    times.sort();
    times[times.len() * 99 / 100].as_secs_f64()
}

/// The number of loops in the reference measurement.
fn few() -> usize {
    match std::env::var_os("TOOLWARD_LONG") {
        Some(_) => 0,
        None => cores(),
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().unwrap().get()
}

/// Times the modest principal's calls while the greedy one makes this number of calls.
async fn calls_beside(
    host: &Host,
    loops: usize,
    greedy: &Value,
    times: u64,
    took: &mut Vec<Duration>,
) {
    let begun = Arc::new(Begun::default());
    let tasks: Vec<_> = (0..loops)
        .map(|_| {
            let request = Request::with_value("a.tool", greedy.clone())
                .principal("greedy")
                .observer(begun.clone());
            let host = host.clone();
            tokio::spawn(async move { host.call(request).await })
        })
        .collect();
    while begun.0.load(Ordering::Relaxed) < loops {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    calls(host, times, took).await;
    for task in tasks {
        assert!(!task.is_finished(), "it runs for minutes");
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
    }
}

/// Returns how many times as long a neighbour's calls take while the greedy principal makes many
/// calls, compared with few calls. Both measurements take turns, so that other work of the machine
/// affects them equally.
async fn slowdown(host: &Host, greedy: &Value) -> f64 {
    assert_eq!(host.prepare().await.len(), 0);
    // The same amount of work on each machine, since fuel counts instructions.
    let (_, little) = modest(host, 10).await;
    let (_, more) = modest(host, 110).await;
    let times = WORK * 100 / (more - little);
    let (mut beside_few, mut beside_many) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        calls_beside(host, few(), greedy, times, &mut beside_few).await;
        calls_beside(host, many(), greedy, times, &mut beside_many).await;
    }
    p99(&mut beside_many) / p99(&mut beside_few)
}

/// Runs as a server does, with one more worker than guests that run at once.
fn is_fair(greedy: &Value) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores() + 1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(measured(greedy));
}

async fn measured(greedy: &Value) {
    // Two of these tests at once would affect each other.
    static ONE: Mutex<()> = Mutex::const_new(());
    let _one = ONE.lock().await;
    let (_bundle, host) = host();
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        let slowdown = slowdown(&host, greedy).await;
        if slowdown <= MAX_SLOWDOWN {
            return;
        }
        seen.push(slowdown);
        if slowdown > HOPELESS_SLOWDOWN {
            break;
        }
    }
    let (many, few) = (many(), few());
    panic!("beside {many} loops a neighbour's calls took {seen:.1?} times as long as beside {few}");
}

#[test]
fn a_neighbours_calls_keep_their_pace_beside_endless_loops_of_another() {
    is_fair(&json!({"do": "steps", "steps": [{"do": "progress", "n": 1}, {"do": "loop"}]}));
}

#[test]
fn what_called_tools_compute_is_their_root_principals() {
    let endless = json!({"do": "call-tool", "tool": "b.tool", "input": {"do": "loop"}});
    is_fair(&json!({"do": "steps", "steps": [{"do": "progress", "n": 1}, endless]}));
}
