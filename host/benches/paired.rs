//! What a call costs beside bare wasmtime, measured in pairs: some calls of one, at
//! once as many of the other, over and over. A busy machine slows both halves of a
//! pair alike, so the median of the pairs' ratios holds where single medians scatter.
//!
//! `cargo bench --bench paired` prints two lines per driver: without a record of the calls, and with one on the disk,
//! as `serve` and `call` keep it. Two builds are compared by
//! letting them take turns.

#![expect(unreachable_pub, reason = "a benchmark has no users")]
#![expect(clippy::expect_used, reason = "a benchmark may stop")]
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use toolward_host::{Host, Request};
use toolward_ledger::record::{Number, Opened, Version, Word};
use toolward_ledger::{Options, Writer};
use wasmtime::component::Component;

#[expect(dead_code, reason = "each benchmark uses a part of it")]
mod support;
use support::{Bare, ECHO, Subject, TEXT_STATS};

/// Calls in each half of a pair: some milliseconds.
const CALLS: u32 = 20;
const PAIRS: usize = 1500;

fn main() {
    let subjects = [("echo", ECHO), ("text.stats", TEXT_STATS)];
    let all = subjects
        .into_iter()
        .flat_map(|(name, subject)| [false, true].map(|recorded| (name, subject, recorded)));
    for (name, subject, recorded) in all {
        let (bare, host, ratios) = measure(subject, recorded);
        let name = format!("{name}{}", if recorded { ", recorded" } else { "" });
        let at = |part: usize| ratios.get(ratios.len() * part / 4).copied();
        let [low, median, high] = [1, 2, 3].map(|part| at(part).unwrap_or(f64::NAN));
        println!(
            "{name}: host/bare {median:.3} (quartiles {low:.3} to {high:.3}, {PAIRS} pairs); \
             fastest: bare {bare:.1} us, host {host:.1} us, ratio {:.3}",
            host / bare
        );
    }
}

/// The fastest call of each in microseconds, and the ratios of all pairs, sorted.
fn measure(subject: Subject, recorded: bool) -> (f64, f64, Vec<f64>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let engine = support::engine();
    let component = Component::new(&engine, subject.wasm()).expect("compiles");
    let bare = Bare::new(engine, &component, subject);
    let folder = tempfile::tempdir().expect("a directory");
    let mut host = Host::builder().bundle(subject.content());
    if recorded {
        host = host.recorder(Arc::new(writer(folder.path())));
    }
    let host = host.build().expect("a host");
    let run_bare = || {
        runtime.block_on(async {
            for _ in 0..CALLS {
                black_box(bare.call().await);
            }
        });
    };
    let run_host = || {
        runtime.block_on(async {
            for _ in 0..CALLS {
                let reply = host.call(Request::new(subject.tool, subject.input)).await;
                assert!(black_box(reply).result.is_ok());
            }
        });
    };
    run_bare();
    run_host();

    let (mut least_bare, mut least_host) = (f64::MAX, f64::MAX);
    let mut ratios = Vec::with_capacity(PAIRS);
    for pair in 0..PAIRS {
        // Who goes first takes turns, too.
        let (bare, host) = if pair % 2 == 0 {
            let bare = timed(run_bare);
            (bare, timed(run_host))
        } else {
            let host = timed(run_host);
            (timed(run_bare), host)
        };
        least_bare = least_bare.min(bare);
        least_host = least_host.min(host);
        ratios.push(host / bare);
    }
    ratios.sort_by(f64::total_cmp);
    (least_bare, least_host, ratios)
}

/// Writes a ledger from a thread of its own; a server's does so in a process of its own.
fn writer(folder: &Path) -> Writer {
    let opened = Opened {
        build: Version::parse("0.1.0").expect("a version"),
        bundles: Vec::new(),
        bundles_set: None,
        confinement: Word::parse("none").expect("a word"),
        cut: Number::default(),
        policy: None,
    };
    Writer::open(Options::new(folder.join("ledger")), opened).expect("a ledger")
}

/// Microseconds per call.
fn timed(run: impl Fn()) -> f64 {
    let started = Instant::now();
    run();
    started.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS)
}
