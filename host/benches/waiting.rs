//! Measures the memory of a call that waits for a server. Many calls are in flight, each with a
//! request that is never answered. Also measures bare wasmtime with the same guest, its socket
//! included. Prints figures; needs `/proc`.

#![expect(unreachable_pub, reason = "a benchmark has no users")]
#![expect(
    unsafe_code,
    reason = "bare wasmtime deserialises what this benchmark compiled"
)]
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark may stop, and reports"
)]

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use toolward_bundle::content::Content;
use toolward_egress::{LookupPermit, Resolve, Resolving, TransportSettings};
use toolward_host::{Cache, Host, Limits, Request};
use toolward_policy::Policy;
use wasmtime::component::Component;

#[expect(dead_code, reason = "each benchmark uses a part of it")]
mod support;
use support::{Bare, WAITING};

const CALLS: u32 = 1000;

/// Memory of this process, in KiB. A page that many mappings share, such as a page of a driver's
/// compiled code, counts once.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/smaps_rollup").expect("Linux");
    let line = status
        .lines()
        .find(|line| line.starts_with("Pss:"))
        .expect("a Pss line");
    let kib = line.split_whitespace().nth(1).expect("a number");
    kib.parse().expect("a number")
}

struct Loopback;

impl Resolve for Loopback {
    fn resolve<'a>(&'a self, _: &'a str, _: LookupPermit) -> Resolving<'a> {
        Box::pin(std::future::ready(Ok(vec![IpAddr::V4(
            Ipv4Addr::LOCALHOST,
        )])))
    }
}

fn limits() -> Limits {
    Limits {
        concurrency: CALLS,
        concurrency_per_tool: CALLS,
        concurrency_per_publisher: CALLS,
        concurrency_per_principal: CALLS,
        ..Limits::default()
    }
}

fn host(directory: &Path, port: u16) -> Host {
    let write = |path: &str, bytes: &[u8]| {
        let path = directory.join("bundle").join(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        std::fs::write(path, bytes).expect("writes");
    };
    write(
        "bundle.toml",
        b"id = \"bench.bundle\"\nversion = \"1.0.0\"\nsequence = 1\npublisher = \"bench\"\n\
          created = \"2026-01-01T00:00:00Z\"\n",
    );
    write(
        "tools/tool/TOOL.md",
        format!(
            "---\nname: Bench\nid: bench.wait\ndescription: Benchmarks.\nversion: 1.0.0\n\
             inputs:\n  type: object\noutputs:\n  type: object\ntimeout_ms: 120000\n\
             requires:\n  network: [\"api.test:{port}\"]\n---\n"
        )
        .as_bytes(),
    );
    write(
        "drivers/driver/DRIVER.md",
        format!(
            "---\nname: Bench\nid: bench-driver\ndescription: Benchmarks.\nversion: 1.0.0\n\
             kind: component\ncomponent: driver.wasm\nimplements:\n  - tool: bench.wait\n    \
             version: ^1.0.0\nnetwork:\n  egress: [\"api.test:{port}\"]\n---\n"
        )
        .as_bytes(),
    );
    write("drivers/driver/driver.wasm", &WAITING.wasm());
    let content = Content::from_dev(&directory.join("bundle")).expect("a bundle");
    let policy = format!(
        "[[grant]]\npublisher = {:?}\nrequires = [\"network:api.test:{port}\"]\n\
         plain_http = true\naddresses = [\"127.0.0.1\"]\n",
        content.origin.publisher()
    );
    Host::builder()
        .bundle(content)
        .policy(Policy::from_toml(&policy).expect("a policy"))
        .limits(limits())
        .transport(
            TransportSettings {
                resolver: Arc::new(Loopback),
                connections: CALLS as usize,
                connections_per_route: CALLS as usize,
                ..TransportSettings::default()
            }
            .build(),
        )
        .cache(Cache::open(directory.join("cache")).expect("a cache"))
        .build()
        .expect("a host")
}

fn main() {
    let nofile = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: nofile.maximum,
            maximum: nofile.maximum,
        },
    )
    .expect("a limit within the maximum");

    let arguments: Vec<String> = std::env::args().collect();
    let of_bare = |word: &String| word == "--bare";
    let of_host = |word: &String| word == "--host";
    if let Some(at) = arguments
        .iter()
        .position(|word| of_bare(word) || of_host(word))
    {
        let directory = PathBuf::from(arguments.get(at + 1).expect("a directory"));
        let port = arguments.get(at + 2).expect("a port").parse();
        let port = port.expect("a number");
        return match arguments.iter().any(of_bare) {
            true => measure_bare(&directory, port),
            false => measure_host(&directory, port),
        };
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    // Accepts each connection and never answers. It runs in this process, so that only the host's
    // side is measured.
    let held = Arc::new(AtomicUsize::new(0));
    let count = held.clone();
    std::thread::spawn(move || {
        let mut connections = Vec::new();
        for connection in listener.incoming().flatten() {
            connections.push(connection);
            count.store(connections.len(), Ordering::Release);
        }
    });
    // Compiling takes memory that a serving process never needs.
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let failed = runtime.block_on(host(directory.path(), port).prepare());
    assert!(failed.is_empty(), "{failed:?}");
    let artifact = support::engine_for(&limits()).precompile_component(&WAITING.wasm());
    let artifact = artifact.expect("compiles");
    std::fs::write(directory.path().join(ARTIFACT), artifact).expect("writes");
    for (number, of) in ["--bare", "--host"].into_iter().enumerate() {
        let status = std::process::Command::new(std::env::current_exe().expect("itself"))
            .arg(of)
            .arg(directory.path())
            .arg(port.to_string())
            .status()
            .expect("runs");
        assert!(status.success());
        assert!(held.load(Ordering::Acquire) >= CALLS as usize * (number + 1));
    }
}

/// The file with the artifact of bare wasmtime.
const ARTIFACT: &str = "bare.cwasm";

fn input(port: u16) -> String {
    format!(r#"{{"do": "http", "url": "http://api.test:{port}/"}}"#)
}

/// Waits until all `calls` wait for the server, and prints the memory of each.
async fn wait<T>(name: &str, before: u64, calls: Vec<tokio::task::JoinHandle<T>>) {
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert!(calls.iter().all(|call| !call.is_finished()), "all wait");
    let during = resident();
    println!("{name}: before                     {before:8} KiB");
    println!("{name}: with {CALLS} calls that wait   {during:8} KiB");
    println!(
        "{name}: for each                   {:8.1} KiB",
        (during.saturating_sub(before)) as f64 / f64::from(CALLS)
    );
}

fn measure_bare(directory: &Path, port: u16) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let engine = support::engine_for(&limits());
        // SAFETY: this benchmark wrote the file, for an engine with the same settings.
        let component = unsafe { Component::deserialize_file(&engine, directory.join(ARTIFACT)) };
        let bare = Arc::new(Bare::new(engine, &component.expect("loads"), WAITING));
        bare.calling(r#"{"do": "echo"}"#.to_owned()).await;
        let before = resident();
        let calls = (0..CALLS).map(|_| {
            let (bare, input) = (bare.clone(), input(port));
            tokio::spawn(async move { bare.calling(input).await })
        });
        wait("bare", before, calls.collect()).await;
    });
    runtime.shutdown_background();
}

fn measure_host(directory: &Path, port: u16) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let host = host(directory, port);
        let failed = host.prepare().await;
        assert!(failed.is_empty(), "{failed:?}");
        let first = host
            .call(Request::new("bench.wait", r#"{"do": "echo"}"#))
            .await;
        assert!(first.result.is_ok(), "{}", first.envelope());
        let before = resident();
        let future = host.call(Request::new("bench.wait", "{}"));
        println!(
            "host: the future of a call        {:7} bytes",
            size_of_val(&future)
        );
        drop(future);
        let calls = (0..CALLS).map(|_| {
            let (host, input) = (host.clone(), input(port));
            tokio::spawn(async move { host.call(Request::new("bench.wait", input)).await })
        });
        wait("host", before, calls.collect()).await;
    });
    runtime.shutdown_background();
}
