//! Measures the cost of each limit on a guest: bare wasmtime without limits, with one limit at a
//! time, with all limits, and the host. A guest that only echoes shows the cost per call. A guest
//! that counts the words of a long text shows the cost per instruction.
//!
//! All variants take turns, so that other load on the machine affects them equally. The fastest
//! tenth of each counts.

#![expect(unreachable_pub, reason = "a benchmark has no users")]
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark may stop, and reports"
)]

use std::hint::black_box;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use toolward_host::{Host, Request};
use wasmtime::component::Component;
use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

#[expect(dead_code, reason = "each benchmark uses a part of it")]
mod support;
use support::{Bare, ECHO, Guards, Subject, TEXT_STATS};

/// The number of turns of each variant.
const ROUNDS: usize = 300;

/// The host's settings, with and without code that counts instructions.
fn engine(fuel: bool) -> Engine {
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(64)
        .max_memory_size(256 << 20)
        .max_unused_warm_slots(32)
        .linear_memory_keep_resident(512 << 10)
        .table_keep_resident(64 << 10)
        .async_stack_keep_resident(64 << 10)
        .pagemap_scan(Enabled::Auto);
    let mut config = Config::new();
    config
        .shared_memory(false)
        .wasm_memory64(false)
        .wasm_tail_call(false)
        .wasm_relaxed_simd(false)
        .consume_fuel(fuel)
        .max_wasm_stack(512 << 10)
        .async_stack_size(1 << 20)
        .native_unwind_info(false)
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    Engine::new(&config).expect("an engine")
}

/// One way to make a call.
struct Variant {
    name: &'static str,
    call: Box<dyn Fn(&Runtime)>,
    times: Vec<Duration>,
}

fn bare(name: &'static str, guards: Guards, subject: Subject, input: &str) -> Variant {
    let engine = engine(guards.fuel);
    let component = Component::new(&engine, subject.wasm()).expect("compiles");
    let bare = Bare::new(engine, &component, subject).guarding(guards);
    let input = input.to_owned();
    Variant {
        name,
        call: Box::new(move |runtime| {
            black_box(runtime.block_on(bare.calling(input.clone())));
        }),
        times: Vec::new(),
    }
}

fn host(subject: Subject, input: &str) -> Variant {
    let host = Host::builder().bundle(subject.content()).build();
    let host = host.expect("a host");
    let input = input.to_owned();
    Variant {
        name: "the host",
        call: Box::new(move |runtime| {
            let reply = runtime.block_on(host.call(Request::new(subject.tool, input.clone())));
            assert!(reply.result.is_ok(), "{}", reply.envelope());
        }),
        times: Vec::new(),
    }
}

/// Measures each variant with `calls` in one turn, so that a turn is long enough for the clock.
fn measure(title: &str, subject: Subject, input: &str, calls: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let none = Guards::default();
    let all = Guards {
        fuel: true,
        growth: true,
        crossings: true,
        deadline: true,
        handles: true,
    };
    let fuel = Guards { fuel: true, ..none };
    #[rustfmt::skip]
    let mut variants = vec![
        bare("no limit", none, subject, input),
        bare("growth of memories and tables", Guards { growth: true, ..none }, subject, input),
        bare("handles", Guards { handles: true, ..none }, subject, input),
        bare("a timer", Guards { deadline: true, ..none }, subject, input),
        bare("clock and bytes at crossings", Guards { crossings: true, ..none }, subject, input),
        bare("fuel", fuel, subject, input),
        bare("all of these", all, subject, input),
        host(subject, input),
    ];
    for _ in 0..ROUNDS {
        for variant in &mut variants {
            // A first call that is not measured, so that the caches hold this variant's data.
            (variant.call)(&runtime);
            let start = Instant::now();
            for _ in 0..calls {
                (variant.call)(&runtime);
            }
            variant.times.push(start.elapsed() / calls);
        }
    }
    println!("{title}");
    let mut least = Duration::ZERO;
    for variant in &mut variants {
        variant.times.sort_unstable();
        let time = variant.times.get(ROUNDS / 10).copied().unwrap_or_default();
        if least.is_zero() {
            least = time;
        }
        println!(
            "  {:32} {time:9.1?}  {:.2} x",
            variant.name,
            time.as_secs_f64() / least.as_secs_f64()
        );
    }
}

fn main() {
    let text = "The quick brown fox jumps over the lazy dog. ".repeat(200);
    let long = format!(r#"{{"text":"{text}"}}"#);
    measure("200 bytes, echoed", ECHO, ECHO.input, 20);
    measure("9 KB of text, its words counted", TEXT_STATS, &long, 1);
}
