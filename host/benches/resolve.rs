//! Measures the cost of picking the driver of a call. Compares a tool with one driver to the same
//! tool with ten drivers, of which only the last accepts the input. The policy denies the call, so
//! nothing runs: the difference is the cost of nine more candidates. Everything that does not
//! depend on the input was decided when the host was built.

#![expect(clippy::expect_used, reason = "a benchmark may stop")]

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use toolward_bundle::content::Content;
use toolward_host::{Host, Request};
use toolward_policy::Policy;

fn write(directory: &Path, path: &str, text: String) {
    let path = directory.join(path);
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    std::fs::write(path, text).expect("a file");
}

/// A host with one tool and this many drivers of it.
fn host(drivers: usize) -> Host {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path();
    let head = "id = \"bench.bundle\"\nversion = \"1.0.0\"\nsequence = 1\npublisher = \"bench\"\n\
                created = \"2026-01-01T00:00:00Z\"\n";
    write(directory, "bundle.toml", head.to_owned());
    let tool = "---\nname: Bench\nid: bench.run\ndescription: Runs.\nversion: 1.0.0\n\
                inputs: { type: object, properties: { x: { type: integer } } }\noutputs: {}\n\
                requires: { network: [api.test] }\n---\n";
    write(directory, "tools/bench.run/TOOL.md", tool.to_owned());
    for number in 1..=drivers {
        let narrowing = match number == drivers {
            true => "",
            false => "    schema_narrowing: { drop_inputs: [x] }\n",
        };
        let text = format!(
            "---\nname: Driver\nid: bench.driver-{number:02}\ndescription: Runs.\nversion: 1.0.0\nkind: http\n\
             base_url: https://api.test\nnetwork: {{ egress: [api.test] }}\nimplements:\n  - tool: bench.run\n    \
             version: 1.x\n{narrowing}    metadata: {{ http: {{ endpoint: /, method: GET }} }}\n---\n"
        );
        write(directory, &format!("drivers/d{number:02}/DRIVER.md"), text);
    }
    let content = Content::from_dev(directory).expect("a bundle");
    let publisher = content.origin.publisher();
    // All drivers but the last are granted, and would be picked if they accepted the input.
    let granted: String = (1..drivers)
        .map(|number| {
            format!(
                "[[grant]]\npublisher = {publisher:?}\ndriver = \"bench.driver-{number:02}\"\n\
                 requires = [\"network:api.test\"]\n"
            )
        })
        .collect();
    let policy =
        Policy::from_toml(&format!("[resolve]\nfallback = true\n{granted}")).expect("a policy");
    let host = Host::builder()
        .bundle(content)
        .policy(policy)
        .defer_engine();
    host.build().expect("a host")
}

fn candidates(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let mut group = criterion.benchmark_group("resolve");
    for drivers in [1, 10] {
        let host = host(drivers);
        let call = || Request::new("bench.run", r#"{"x": 1}"#);
        let reply = runtime.block_on(host.call(call()));
        let error = reply.result.expect_err("a denied call");
        assert_eq!(error.code.as_str(), "unauthorised");
        group.bench_function(format!("{drivers}_candidates"), |bencher| {
            bencher.iter(|| runtime.block_on(host.call(black_box(call()))));
        });
    }
    group.finish();
}

criterion_group!(benches, candidates);
criterion_main!(benches);
