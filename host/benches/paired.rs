//! Compares a call with bare wasmtime. Measures in pairs: some calls of one, then as many of the
//! other, many times. A busy machine slows both halves of a pair alike, so the median of the pairs'
//! ratios is stable even if single medians scatter.
//!
//! `cargo bench --bench paired` prints two lines per driver: without a record of the calls, and
//! with a record on the disk, as `serve` and `call` keep it. A last line is for first calls of
//! `text.stats`, from the cache. `-- cold` prints only the lines whose names contain `cold`. To
//! compare two builds, run them in turns.

#![expect(unreachable_pub, reason = "a benchmark has no users")]
#![expect(
    unsafe_code,
    reason = "the bare cold start deserialises its own artifact"
)]
#![expect(clippy::expect_used, reason = "a benchmark may stop")]
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use tokio::runtime::Runtime;
use toolward_host::{Cache, Host, Request};
use toolward_ledger::record::{Number, Opened, Version, Word};
use toolward_ledger::{LedgerOptions, Writer};
use wasmtime::component::Component;

#[expect(dead_code, reason = "each benchmark uses a part of it")]
mod support;
use support::{Bare, ECHO, Pairs, Subject, TEXT_STATS, TWO_WORDS, timed};

/// Calls in each half of a pair. One half takes some milliseconds.
const CALLS: u32 = 20;
const PAIRS: usize = 1500;
/// Pairs of first calls.
const COLD_PAIRS: usize = 400;

fn main() {
    let subjects = [
        ("echo", ECHO),
        ("text.stats", TEXT_STATS),
        ("text.stats, two words", TWO_WORDS),
    ];
    // `cargo bench` adds the option `--bench`.
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let run = |name: &str, pairs: &dyn Fn() -> Pairs| {
        if wanted.as_deref().is_none_or(|wanted| name.contains(wanted)) {
            print(name, &pairs());
        }
    };
    for (name, subject) in subjects {
        run(name, &|| warm(subject, false));
        run(&format!("{name}, recorded"), &|| warm(subject, true));
    }
    run("text.stats, cold", &|| cold(TEXT_STATS));
}

fn print(name: &str, pairs: &Pairs) {
    let [low, median, high] = [1, 2, 3].map(|part| pairs.quartile(part));
    let (bare, host) = (pairs.first, pairs.second);
    println!(
        "{name}: host/bare {median:.3} (quartiles {low:.3} to {high:.3}, {} pairs); \
         fastest: bare {bare:.1} us, host {host:.1} us, ratio {:.3}",
        pairs.ratios.len(),
        host / bare
    );
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
}

/// Calls of a driver that is loaded.
fn warm(subject: Subject, recorded: bool) -> Pairs {
    let runtime = runtime();
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
    let each = |time: f64| time / f64::from(CALLS);
    Pairs::of(PAIRS, || each(timed(run_bare)), || each(timed(run_host)))
}

/// First calls of a driver whose artifact is in the cache. Engine, linker and bundle are made
/// before the clock starts, and loaded values are dropped after it stops.
fn cold(subject: Subject) -> Pairs {
    let runtime = runtime();
    let folder = tempfile::tempdir().expect("a directory");
    let artifact = folder.path().join("artifact.cwasm");
    let bytes = support::engine()
        .precompile_component(&subject.wasm())
        .expect("compiles");
    std::fs::write(&artifact, bytes).expect("writes");
    let cache = folder.path().join("cache");
    let run_bare = || {
        let engine = support::engine();
        let linker = support::linker(&engine);
        timed(|| {
            let bytes = std::fs::read(&artifact).expect("reads");
            black_box(blake3::hash(&bytes));
            // SAFETY: the artifact was written above and has not changed since.
            let component = unsafe { Component::deserialize_file(&engine, &artifact) };
            let component = component.expect("loads");
            let bare = Bare::linked(engine.clone(), &linker, &component, subject);
            black_box(runtime.block_on(bare.call()));
            (bare, component, bytes)
        })
    };
    let run_host = || {
        let host = Host::builder()
            .bundle(subject.content())
            .cache(Cache::open(&cache).expect("a cache"))
            .build()
            .expect("a host");
        timed(|| {
            let reply = runtime.block_on(host.call(Request::new(subject.tool, subject.input)));
            assert!(black_box(reply).result.is_ok());
        })
    };
    Pairs::of(COLD_PAIRS, run_bare, run_host)
}

/// Writes a ledger from a separate thread. A server does so from a separate process.
fn writer(folder: &Path) -> Writer {
    let opened = Opened {
        build: Version::parse("0.1.0").expect("a version"),
        bundles: Vec::new(),
        bundles_set: None,
        confinement: Word::parse("none").expect("a word"),
        cut: Number::default(),
        policy: None,
    };
    Writer::open(LedgerOptions::new(folder.join("ledger")), opened).expect("a ledger")
}
