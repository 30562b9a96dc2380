//! While drivers misbehave in many ways, a neighbour's calls are not held up. Afterwards the
//! process has no more threads and files than before, and little more memory.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode};
use serde_json::{Value, json};
use toolward_host::secrets::Sources;
use toolward_host::{Host, Limit, Limits, Request};

use crate::child;
use crate::server::{Server, to_loopback};
use crate::world::{Bundle, Guest, policy_of, value};

/// Far more than a neighbour's call takes on a busy machine. `tests/fair` measures how much such
/// calls slow a neighbour down.
const NORMAL: Duration = Duration::from_secs(20);

/// The kernel's figures for this process.
#[derive(Debug, Clone, Copy)]
struct Process {
    threads: usize,
    files: usize,
    kilobytes: usize,
}

impl Process {
    fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let number = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        Self {
            threads: number("Threads:"),
            files: std::fs::read_dir("/proc/self/fd").unwrap().count(),
            kilobytes: number("VmRSS:"),
        }
    }

    fn is_back_at(&self, before: &Self) -> bool {
        self.threads <= before.threads
            && self.files <= before.files
            && self.kilobytes <= before.kilobytes + (48 << 10)
    }
}

#[test]
fn neighbours_notice_nothing_and_the_process_is_as_it_was() {
    let test = concat!(
        module_path!(),
        "::neighbours_notice_nothing_and_the_process_is_as_it_was"
    );
    let printed = child::run(test, || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(4)
            .thread_keep_alive(Duration::from_millis(200))
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(measured());
    });
    // No output of a guest may appear on the host's own streams.
    let printed = printed.unwrap_or_default();
    assert!(!printed.contains("xxxxxxxx"), "{printed}");
}

struct Yard {
    host: Host,
    silent: Server,
    _bundle: Bundle,
    _directories: [tempfile::TempDir; 2],
}

fn yard() -> Yard {
    // A server that never answers.
    let silent = Server::start(|_| None);
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.txt"), "a").unwrap();
    let pipe = directory.path().join("pipe");
    rustix::fs::mknodat(CWD, pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let name = format!("api.test:{}", silent.port());
    let bundle = Bundle::of(
        "bad.plain",
        Guest::Plain,
        "requires:\n  tools: [bad.plain]\nmutates: [\"workspace:/notes\", \
         \"secret:own\"]\napproval: on-mutate\n",
        "",
    )
    .with(
        "bad.net",
        Guest::Net,
        &format!("requires:\n  network: [\"{name}\"]\n"),
        &format!("network:\n  egress: [\"{name}\"]\n"),
    )
    .with("good.tool", Guest::Plain, "", "");
    let policy = format!(
        "[[secret]]\nslug = \"own\"\npublisher = \"PUBLISHER\"\n\
         [[workspace]]\npath = \"/notes\"\ndirectory = {:?}\n\
         [[grant]]\npublisher = \"PUBLISHER\"\npreapproved = true\nplain_http = true\n\
         addresses = [\"127.0.0.0/8\"]\nrequires = [\"network:{name}\", \"tool:bad.plain\"]\n\
         mutates = [\"workspace:/notes\", \"secret:own\"]\n",
        directory.path().display().to_string()
    );
    let kept = tempfile::tempdir().unwrap();
    let sources = Sources::new(
        &policy_of(&policy, &bundle.publisher()),
        "/".as_ref(),
        |_| None,
    )
    .stored_in(kept.path().join("secrets"));
    let limits = Limits {
        memory_bytes: Limit::fixed(32 << 20),
        workspace_bytes: Limit::fixed(1 << 20),
        ..Limits::default()
    };
    let host = bundle
        .builder(&policy)
        .transport(to_loopback())
        .limits(limits)
        .secrets(sources)
        .build()
        .unwrap();
    Yard {
        host,
        silent,
        _bundle: bundle,
        _directories: [directory, kept],
    }
}

/// Returns the ways to misbehave, by tool and input.
fn behaviours(silent: &Server) -> Vec<(&'static str, Value)> {
    let url = format!("http://api.test:{}/", silent.port());
    let plain = [
        json!({"do": "loop"}),
        json!({"do": "loop-host-call"}),
        json!({"do": "large-host-calls", "n": 200_000}),
        json!({"do": "sleep", "n": 60_000}),
        json!({"do": "block-forever"}),
        json!({"do": "recurse", "n": 0}),
        json!({"do": "allocate-forever"}),
        json!({"do": "allocate-once", "n": 500}),
        json!({"do": "handles", "n": 1_000_000}),
        json!({"do": "print-forever", "name": "stdout"}),
        json!({"do": "print-forever", "name": "stderr"}),
        json!({"do": "log-forever"}),
        json!({"do": "progress-forever"}),
        json!({"do": "trap"}),
        json!({"do": "panic", "name": "x", "n": 4 << 20}),
        json!({"do": "exit", "n": 1}),
        json!({"do": "huge-result", "n": 16}),
        json!({"do": "many-blocks", "n": 100_000}),
        json!({"do": "deep", "n": 100_000}),
        json!({"do": "forged-import", "name": "log", "n": 1 << 30}),
        json!({"do": "forged-output", "name": "bytes", "n": 1 << 30}),
        json!({"do": "large-import", "name": "tool-input", "n": 8 << 20}),
        json!({"do": "random", "n": 1_u64 << 40}),
        json!({"do": "nest", "chain": ["bad.plain"]}),
        json!({"do": "call-tool", "tool": "bad.plain", "input": {"do": "loop"}}),
        json!({"do": "fs", "op": "write-stream", "path": "big", "how": ["create"], "n": 8 << 20}),
        json!({"do": "fs", "op": "open-many", "path": "a.txt", "n": 1000}),
        json!({"do": "fs", "op": "list-many", "path": ".", "n": 1000}),
        json!({"do": "repeat", "for_ms": 10_000, "step": {"do": "fs", "op": "read", "path": "pipe"}}),
        json!({"do": "repeat", "for_ms": 10_000, "step": {
            "do": "secrets", "op": "store", "slug": "own", "text": "${fill:10000}",
        }}),
        json!({"do": "connect", "name": silent.address.to_string()}),
    ];
    let net = [
        json!({"do": "http", "url": url}),
        json!({"do": "http-parallel", "n": 200, "hold_ms": 10_000, "request": {"url": url}}),
        json!({"do": "fields-flood", "n": 100_000}),
    ];
    let plain = plain.into_iter().map(|input| ("bad.plain", input));
    let net = net.into_iter().map(|input| ("bad.net", input));
    plain.chain(net).collect()
}

/// Calls that never end by themselves, so each gets a short timeout.
const ENDLESS: [&str; 10] = [
    "loop",
    "loop-host-call",
    "large-host-calls",
    "sleep",
    "block-forever",
    "progress-forever",
    "call-tool",
    "repeat",
    "http",
    "http-parallel",
];

/// Runs all behaviours at once, and calls a neighbour in the same time. Returns how long the
/// neighbour's calls took.
async fn round(yard: &Yard) -> Vec<Duration> {
    let bad: Vec<_> = behaviours(&yard.silent)
        .into_iter()
        .map(|(tool, input)| {
            let host = yard.host.clone();
            tokio::spawn(async move {
                let shown = input.to_string();
                let endless = ENDLESS.iter().any(|one| input["do"] == *one);
                let mut request = Request::with_value(tool, input);
                if endless {
                    request = request.timeout(Duration::from_millis(800));
                }
                let limit = Duration::from_secs(60);
                let ended = tokio::time::timeout(limit, host.call(request)).await;
                ended.unwrap_or_else(|_| panic!("it never ended: {shown}"))
            })
        })
        .collect();
    let mut times = Vec::new();
    for number in 0..40 {
        let started = Instant::now();
        let got = value(
            &yard.host,
            "good.tool",
            json!({"do": "echo", "value": number}),
        )
        .await;
        assert_eq!(got, json!(number));
        times.push(started.elapsed());
    }
    let mut endings = BTreeMap::new();
    for call in bad {
        let code = match call.await.unwrap().result {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.code.to_string(),
        };
        *endings.entry(code).or_insert(0) += 1;
    }
    assert!(
        endings.len() > 5,
        "they did end in different ways: {endings:?}"
    );
    times.sort();
    times
}

async fn measured() {
    let yard = yard();
    assert_eq!(yard.host.prepare().await.len(), 0);
    // The first round creates everything that is created once: pools, threads, arenas of
    // allocators.
    round(&yard).await;
    let before = settled(|_| true).await;
    for _ in 0..2 {
        let times = round(&yard).await;
        assert!(times.iter().all(|took| *took < NORMAL), "{times:?}");
    }
    let after = settled(|now| now.is_back_at(&before)).await;
    assert!(after.is_back_at(&before), "{before:?}, then {after:?}");
}

/// Waits a second, and then until `done` holds, for at most half a minute. Returns the figures
/// after that.
async fn settled(done: impl Fn(&Process) -> bool) -> Process {
    tokio::time::sleep(Duration::from_millis(1000)).await;
    for _ in 0..300 {
        if done(&Process::now()) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Process::now()
}
