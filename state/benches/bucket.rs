//! Measures the cost of one operation, called directly and from an async runtime through its
//! blocking threads, on a file and in memory.

#![expect(clippy::expect_used, reason = "a benchmark, as a test")]

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use toolward_state::{Access, Limits, Store};

#[expect(clippy::panic, dead_code, reason = "a module of the tests")]
#[path = "../tests/suite/bucket.rs"]
mod bucket;

use bucket::{Bucket, OpenBucket as _};

fn filled(store: &Store) -> Bucket {
    let bucket = store.bucket("acme", "alice", "bench", Access::Write, Limits::default());
    for n in 0..1000 {
        let key = format!("key-{n:04}");
        bucket.set(&key, &[7; 100]).expect("sets");
    }
    bucket
}

fn operations(criterion: &mut Criterion) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = Store::open(directory.path().join("state/store")).expect("a store");
    let memory = Store::in_memory().expect("a store");
    for (place, store) in [("file", file), ("memory", memory)] {
        let bucket = filled(&store);
        let keys: Vec<_> = (0..100).map(|n| format!("key-{n:04}")).collect();
        let pairs: Vec<_> = keys.iter().map(|key| (key, [8; 100])).collect();
        let mut group = criterion.benchmark_group(place);
        group.bench_function("get", |b| b.iter(|| black_box(bucket.get("key-0500"))));
        group.bench_function("get of 100", |b| {
            b.iter(|| black_box(bucket.get_many(&keys)));
        });
        group.bench_function("list 1000", |b| {
            b.iter(|| black_box(bucket.list_keys(None)))
        });
        group.bench_function("set", |b| {
            b.iter(|| bucket.set("key-0500", &[9; 100]).expect("sets"));
        });
        group.bench_function("set of 100", |b| {
            b.iter(|| bucket.set_many(&pairs).expect("sets"));
        });
        group.bench_function("increment", |b| {
            b.iter(|| bucket.increment("number", 1).expect("increments"));
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .build()
            .expect("a runtime");
        group.bench_function("get, on a blocking thread", |b| {
            b.to_async(&runtime).iter(|| {
                let bucket = bucket.clone();
                tokio::task::spawn_blocking(move || black_box(bucket.get("key-0500")))
            });
        });
        group.bench_function("set, on a blocking thread", |b| {
            b.to_async(&runtime).iter(|| {
                let bucket = bucket.clone();
                tokio::task::spawn_blocking(move || bucket.set("key-0500", &[9; 100]))
            });
        });
        group.finish();
    }
}

criterion_group!(benches, operations);
criterion_main!(benches);
