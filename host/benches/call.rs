//! `host.call` against bare wasmtime on the same component, and parts of a call measured
//! separately. First calls are in `paired.rs`.

#![expect(unreachable_pub, reason = "a benchmark has no users")]
#![expect(clippy::expect_used, reason = "a benchmark may stop")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use toolward_contract::json;
use toolward_host::{Host, Request};
use wasmtime::component::Component;

#[expect(dead_code, reason = "each benchmark uses a part of it")]
mod support;
use support::{Bare, ECHO, TEXT_STATS};

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
}

fn warm(criterion: &mut Criterion) {
    for (name, subject) in [("warm_echo", ECHO), ("warm_text_stats", TEXT_STATS)] {
        let runtime = runtime();
        let engine = support::engine();
        let component = Component::new(&engine, subject.wasm()).expect("compiles");
        let bare = Bare::new(engine, &component, subject);
        let host = Host::builder()
            .bundle(subject.content())
            .build()
            .expect("a host");
        let call = || host.call(Request::new(subject.tool, subject.input));
        let first = runtime.block_on(call());
        assert!(first.result.is_ok(), "{}", first.envelope());

        let mut group = criterion.benchmark_group(name);
        group.bench_function("bare", |bencher| {
            bencher
                .to_async(&runtime)
                .iter(|| async { black_box(bare.call().await) });
        });
        group.bench_function("host", |bencher| {
            bencher
                .to_async(&runtime)
                .iter(|| async { black_box(call().await) });
        });
        group.bench_function("host_and_envelope_text", |bencher| {
            bencher
                .to_async(&runtime)
                .iter(|| async { black_box(serde_json::to_string(&call().await)) });
        });
        group.finish();
    }
}

/// The parts of the difference between `host` and `bare` that can be measured separately.
fn parts(criterion: &mut Criterion) {
    let runtime = runtime();
    let host = Host::builder()
        .bundle(ECHO.content())
        .build()
        .expect("a host");
    let tool = host.tool(ECHO.tool).expect("the tool").contract.clone();
    let reply = runtime.block_on(host.call(Request::new(ECHO.tool, ECHO.input)));
    let output = reply.result.as_ref().expect("an output").structured.clone();
    let text = output.to_string();
    let limits = json::Limits::default();
    let input = json::parse(ECHO.input.as_bytes(), &limits).expect("JSON");

    let mut group = criterion.benchmark_group("parts");
    group.bench_function("parse_input", |bencher| {
        bencher.iter(|| black_box(json::parse(ECHO.input.as_bytes(), &limits)));
    });
    group.bench_function("validate_input", |bencher| {
        bencher.iter(|| black_box(tool.inputs.validate(&input)));
    });
    group.bench_function("write_input", |bencher| {
        bencher.iter(|| black_box(input.to_string()))
    });
    group.bench_function("parse_output", |bencher| {
        bencher.iter(|| black_box(json::parse(text.as_bytes(), &limits)));
    });
    group.bench_function("validate_output", |bencher| {
        bencher.iter(|| black_box(tool.outputs.validate(&output)));
    });
    group.bench_function("write_envelope", |bencher| {
        bencher.iter(|| black_box(serde_json::to_string(&reply)));
    });
    group.finish();
}

criterion_group!(benches, warm, parts);
criterion_main!(benches);
