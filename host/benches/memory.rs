//! Measures the memory of a host: idle with ten drivers, and per small call in flight. Prints
//! figures; needs `/proc`.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark may stop, and reports"
)]

use std::path::Path;
use std::time::Duration;

use toolward_bundle::content::Content;
use toolward_host::{Cache, Host, Limit, Limits, Request};

const DRIVERS: usize = 10;
/// As many calls as the pool has warm slots. The memory of warm slots belongs to the host, whether
/// calls are in flight or not.
const CALLS: u32 = 32;

/// The resident and the private dirty bytes of this process.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("a VmRSS line");
    let kib = line.split_whitespace().nth(1).expect("a number");
    kib.parse::<u64>().expect("a number") * 1024
}

/// Ten bundles with one driver each, whose components differ in their bytes.
fn bundle(directory: &Path, number: usize) -> Content {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/guests/hostile");
    let mut wasm = std::fs::read(source.join("drivers/hostile/driver.wasm"))
        .expect("the hostile driver; run `cargo xtask guests` first");
    // A custom section turns it into a different component.
    wasm.extend([0, 3, 1, b'n', u8::try_from(number).expect("few")]);
    let write = |path: &str, bytes: &[u8]| {
        let path = directory.join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, bytes).expect("writes");
    };
    write(
        "bundle.toml",
        format!(
            "id = \"bench.b{number}\"\nversion = \"1.0.0\"\nsequence = 1\npublisher = \"bench\"\n\
             created = \"2026-01-01T00:00:00Z\"\n"
        )
        .as_bytes(),
    );
    write(
        "tools/tool/TOOL.md",
        format!(
            "---\nname: Bench\nid: bench.t{number}\ndescription: Benchmarks.\nversion: 1.0.0\n\
             inputs:\n  type: object\noutputs:\n  type: object\ntimeout_ms: 60000\n---\n"
        )
        .as_bytes(),
    );
    write(
        "drivers/driver/DRIVER.md",
        format!(
            "---\nname: Bench\nid: bench-d{number}\ndescription: Benchmarks.\nversion: 1.0.0\n\
             kind: component\ncomponent: driver.wasm\nimplements:\n  - tool: bench.t{number}\n    \
             version: ^1.0.0\n---\n"
        )
        .as_bytes(),
    );
    write("drivers/driver/driver.wasm", &wasm);
    Content::from_dev(directory).expect("a bundle")
}

fn host(directory: &Path) -> Host {
    let limits = Limits {
        concurrency: CALLS,
        timeout: Limit::fixed(Duration::from_secs(60)),
        ..Limits::default()
    };
    let cache = Cache::open(directory.join("cache")).expect("a cache");
    let mut builder = Host::builder().limits(limits).cache(cache);
    for number in 0..DRIVERS {
        builder = builder.bundle(bundle(&directory.join(number.to_string()), number));
    }
    builder.build().expect("a host")
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments
        .iter()
        .position(|argument| argument == "--measure")
    {
        let directory = arguments.get(at + 1).expect("a directory").clone();
        return measure(Path::new(&directory));
    }
    // Compiling takes memory that a serving process never needs: fill the cache here, and measure
    // in a separate process.
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("one");
    let failed = runtime.block_on(host(directory.path()).prepare());
    assert!(failed.is_empty(), "{failed:?}");
    let status = std::process::Command::new(std::env::current_exe().expect("itself"))
        .arg("--measure")
        .arg(directory.path())
        .status()
        .expect("runs");
    assert!(status.success());
}

fn measure(directory: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("one");
    runtime.block_on(async {
        let start = resident();
        let host = host(directory);
        let failed = host.prepare().await;
        assert!(failed.is_empty(), "{failed:?}");
        let call = |number: usize, input: &str| {
            let host = host.clone();
            let request = Request::new(format!("bench.t{number}"), input);
            async move { host.call(request).await }
        };
        for number in 0..DRIVERS {
            let reply = call(number, r#"{"do": "echo"}"#).await;
            assert!(reply.result.is_ok(), "{}", reply.envelope());
        }
        let idle = resident();
        println!("process at start            {:8} KiB", start / 1024);
        println!("idle host, {DRIVERS} drivers       {:8} KiB", idle / 1024);

        // The first round warms the slots; the second shows the additional cost of calls.
        for round in ["cold", "warm"] {
            let before = resident();
            let mut running = Vec::new();
            for _ in 0..CALLS {
                running.push(tokio::spawn(call(0, r#"{"do": "sleep", "n": 2000}"#)));
            }
            tokio::time::sleep(Duration::from_millis(1000)).await;
            let busy = resident();
            for call in running {
                assert!(call.await.expect("no panic").result.is_ok());
            }
            let each = busy.saturating_sub(before) / u64::from(CALLS);
            println!("per call, {CALLS} in flight, {round} slots {each:8} bytes");
            println!("idle again                  {:8} KiB", resident() / 1024);
        }
    });
}
