//! Compares the driver that `toolward new` writes, in each language, with bare wasmtime that runs
//! the same component. Also measures two small drivers in C, with and without imports of WASI.
//!
//! `bench/drivers.py` builds them; `cargo bench --workspace --bench languages` prints a
//! table.

#![expect(unreachable_pub, reason = "a benchmark has no users")]
#![expect(clippy::expect_used, reason = "a benchmark may stop")]
#![expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use toolward_host::{Cache, Host, HostBuilder, Request};
use toolward_policy::Policy;
use wasmtime::component::Component;
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

#[expect(dead_code, reason = "each benchmark uses a part of it")]
mod support;
use support::{Bare, Pairs, Subject, timed};

/// The directory of each driver's bundle.
const BUNDLES: [&str; 8] = [
    "target/drivers/rust",
    "target/drivers/js",
    "target/drivers/js-requests",
    "target/drivers/python",
    "target/drivers/go",
    "target/drivers/c",
    "target/drivers/c-bare-wasi",
    "target/drivers/c-bare",
];

/// Calls in each half of a pair.
const CALLS: u32 = 5;
const PAIRS: usize = 400;

/// The bytes that a slot of the pool keeps resident, in the host and in a pool for large guests.
const KEPT: usize = 512 << 10;
const KEPT_FOR_LARGE: usize = 16 << 20;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    println!(
        "{:12} {:>9} {:>10} {:>10} {:>10} {:>8} {:>9} {:>9} {:>9} {:>11}",
        "driver",
        "size KB",
        "compile s",
        "first ms",
        "memory KiB",
        "fuel k",
        "bare us",
        "host us",
        "host/bare",
        "large/small"
    );
    for bundle in BUNDLES {
        let subject = support::greeter(bundle);
        let name = bundle.trim_start_matches("target/drivers/");
        let wasm = subject.wasm();
        let (compiled, first, reply) = cold(&runtime, subject);
        let mut line = format!(
            "{name:12} {:>9.0} {:>10.2} {:>10.2} {:>10} {:>8}",
            wasm.len() as f64 / 1e3,
            compiled.as_secs_f64(),
            first.as_secs_f64() * 1e3,
            reply.0 >> 10,
            reply.1 / 1000,
        );
        let (bare, host, ratio) = against_bare(&runtime, subject);
        line += &format!(" {bare:>9.1} {host:>9.1} {ratio:>9.3}");
        println!("{line} {:>11.3}", large_against_small(&runtime, subject));
    }
}

/// The processor time that compiling takes, the time of a new host's first call with the compiled
/// artifact, and the memory and fuel of that call.
fn cold(runtime: &Runtime, subject: Subject) -> (Duration, Duration, (u64, u64)) {
    let engine = support::engine();
    let wasm = subject.wasm();
    let before = processor_time();
    black_box(engine.precompile_component(&wasm).expect("compiles"));
    let compiled = processor_time().saturating_sub(before);

    let directory = tempfile::tempdir().expect("a directory");
    let host = || {
        let cache = Cache::open(directory.path().join("cache")).expect("a cache");
        granting(subject).cache(cache).build().expect("a host")
    };
    let call = |host: &Host| {
        let reply = runtime.block_on(host.call(Request::new(subject.tool, subject.input)));
        assert!(reply.result.is_ok(), "{}", reply.envelope());
        (reply.metadata.peak_memory, reply.metadata.fuel)
    };
    call(&host());
    let mut times = Vec::new();
    let mut used = (0, 0);
    for _ in 0..11 {
        let host = host();
        let started = Instant::now();
        used = call(&host);
        times.push(started.elapsed());
    }
    times.sort();
    (compiled, times.get(5).copied().unwrap_or_default(), used)
}

/// A host that grants the requests that one driver declares but does not make.
fn granting(subject: Subject) -> HostBuilder {
    let content = subject.content();
    let policy = format!(
        "[[grant]]\npublisher = \"{}\"\nrequires = [\"network:greetings.example\"]\n",
        content.origin.publisher()
    );
    let policy = Policy::from_toml(&policy).expect("a policy");
    Host::builder().policy(policy).bundle(content)
}

/// The processor time of all threads of this process.
fn processor_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(
        used.tv_sec.unsigned_abs(),
        u32::try_from(used.tv_nsec).unwrap_or_default(),
    )
}

/// The fastest call of bare wasmtime and of the host in microseconds, and the median of
/// the ratios of all pairs.
fn against_bare(runtime: &Runtime, subject: Subject) -> (f64, f64, f64) {
    let engine = support::engine();
    let component = Component::new(&engine, subject.wasm()).expect("compiles");
    let bare = Bare::new(engine, &component, subject);
    let host = granting(subject).build().expect("a host");
    in_pairs(
        || runtime.block_on(bare_calls(&bare)),
        || {
            runtime.block_on(async {
                for _ in 0..CALLS {
                    let reply = host.call(Request::new(subject.tool, subject.input)).await;
                    assert!(black_box(reply).result.is_ok());
                }
            });
        },
    )
}

/// Compares bare wasmtime whose pool keeps much memory resident with a pool that keeps as little as
/// the host's. Returns the median of the ratios.
fn large_against_small(runtime: &Runtime, subject: Subject) -> f64 {
    let [small, large] = [KEPT, KEPT_FOR_LARGE].map(|kept| {
        let engine = keeping(kept);
        let component = Component::new(&engine, subject.wasm()).expect("compiles");
        Bare::new(engine, &component, subject)
    });
    let (_, _, ratio) = in_pairs(
        || runtime.block_on(bare_calls(&small)),
        || runtime.block_on(bare_calls(&large)),
    );
    ratio
}

async fn bare_calls(bare: &Bare) {
    for _ in 0..CALLS {
        black_box(bare.call().await);
    }
}

/// An engine with a pool like the host's, whose slots keep `bytes` resident.
fn keeping(bytes: usize) -> Engine {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(512)
        .max_core_instances_per_component(128)
        .max_memories_per_component(4)
        .max_tables_per_component(16)
        .max_tables_per_module(16)
        .table_elements(100_000)
        .linear_memory_keep_resident(bytes)
        .table_keep_resident(64 << 10)
        .async_stack_keep_resident(64 << 10)
        .pagemap_scan(Enabled::Auto);
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&config).expect("an engine")
}

/// Runs both in turns. Returns the fastest call of each in microseconds, and the median of the
/// ratios of second to first.
fn in_pairs(first: impl Fn(), second: impl Fn()) -> (f64, f64, f64) {
    let each = |time: f64| time / f64::from(CALLS);
    let pairs = Pairs::of(PAIRS, || each(timed(&first)), || each(timed(&second)));
    (pairs.first, pairs.second, pairs.quartile(2))
}
