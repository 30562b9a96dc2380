//! Guests that request as much as possible from the host's interfaces. The tests measure the
//! resident memory of their process: while a guest runs, it may exceed the call's memory limit only
//! slightly, and afterwards it must be freed. The progress reports of an endless guest show that a
//! limit stopped it.

mod crowd;
mod instances;
mod process;
mod results;
mod secrets;
mod together;

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use toolward_host::{CallError, Host, Limit, Limits, Observer, Progress, Request};

use crate::limits::hit;
use crate::server::{Server, to_loopback};
use crate::world::{Bundle, Guest, value};
use process::{MIB, alone, idle, peak, settled};

const TOOL: &str = "hostile.hoard";

/// The number that a guest tries to reach, and never does.
const ENDLESS: u64 = 1_000_000;

/// The most that a DRIVER.md may request.
const MOST: &str = "limits:\n  fuel: 10000000000000\n  memory_mib: 256\n  \
                    output_bytes: 16777216\n  stdio_bytes: 4194304\n  log_records: 10000\n  \
                    resources: 16384\n  http_requests: 64\n  http_body_bytes: 67108864\n";

/// The last report of progress.
#[derive(Default)]
struct Course(AtomicU64);

impl Observer for Course {
    fn progress(&self, progress: &Progress) {
        self.0.store(progress.done as u64, Ordering::Relaxed);
    }
}

/// The resources that a guest may reach.
struct Yard {
    host: Host,
    /// The address to which it may send.
    url: String,
    /// Lives as long as the host.
    _keep: Box<dyn Any>,
}

/// A host of `guest`, with `limits` in its DRIVER.md.
fn yard(guest: Guest, limits: &str) -> Yard {
    // Answers with many header fields, and with a body that is never complete.
    let server = Server::start(|_| {
        let fields: String = (0..90)
            .map(|n| format!("x-{n}: {}\r\n", "v".repeat(500)))
            .collect();
        let body = "b".repeat(60_000);
        Some(format!("HTTP/1.1 200 OK\r\n{fields}content-length: 1000000\r\n\r\n{body}").into())
    });
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("file"), "x".repeat(1 << 20)).unwrap();
    for n in 0..300 {
        let name = format!("{n:03}{}", "n".repeat(240));
        std::fs::write(directory.path().join(name), "").unwrap();
    }
    let name = format!("api.test:{}", server.port());
    let (tool, driver, grant) = match guest {
        Guest::Net => (
            format!("requires:\n  network: [\"{name}\"]\n"),
            format!("network:\n  egress: [\"{name}\"]\n"),
            format!("requires = [\"network:{name}\"]\n"),
        ),
        Guest::Buckets => (
            "requires:\n  database: [things]\nmutates: [\"database:things\"]\napproval: on-mutate\n".to_owned(),
            String::new(),
            "requires = [\"database:things\"]\nmutates = [\"database:things\"]\n".to_owned(),
        ),
        Guest::Plain => (
            "requires:\n  tools: [hostile.below]\nmutates: [\"workspace:/notes\"]\napproval: on-mutate\n"
                .to_owned(),
            String::new(),
            "requires = [\"tool:hostile.below\"]\nmutates = [\"workspace:/notes\"]\n".to_owned(),
        ),
    };
    let bundle = Bundle::of(
        TOOL,
        guest,
        &format!("timeout_ms: 120000\n{tool}"),
        &format!("{driver}{limits}"),
    )
    .with("hostile.below", Guest::Plain, "", limits);
    let policy = format!(
        "[[workspace]]\npath = \"/notes\"\ndirectory = {:?}\n\
         [[grant]]\npublisher = \"PUBLISHER\"\npreapproved = true\nplain_http = true\n\
         addresses = [\"127.0.0.0/8\"]\n{grant}",
        directory.path()
    );
    let mut builder = bundle
        .builder(&policy)
        .transport(to_loopback())
        .limits(Limits {
            timeout: Limit::fixed(Duration::from_secs(120)),
            ..Limits::default()
        });
    if guest == Guest::Buckets {
        builder = builder.buckets(toolward_state::Store::in_memory().unwrap());
    }
    Yard {
        host: builder.build().unwrap(),
        url: format!("http://api.test:{}/", server.port()),
        _keep: Box::new((server, bundle, directory)),
    }
}

/// Calls the tool until a limit ends the call, and checks the resident memory of the process.
async fn hoards(guest: Guest, what: &str, name: &str) {
    for (limits, memory) in [("", 64 * MIB), (MOST, 256 * MIB)] {
        hoards_in(yard(guest, limits), what, name, memory).await;
    }
}

/// Does the same in `yard`, with the memory limit `memory`.
async fn hoards_in(yard: Yard, what: &str, name: &str, memory: u64) {
    let input = |n: u64| json!({"do": what, "name": name, "n": n, "value": yard.url});
    // Everything that is compiled, opened or cached once exists before the measurement.
    value(&yard.host, TOOL, json!({"do": "echo", "value": 7})).await;
    let _ = yard.host.call(Request::with_value(TOOL, input(1))).await;

    let before = idle();
    let course = Arc::new(Course::default());
    let request = Request::with_value(TOOL, input(ENDLESS)).observer(course.clone());
    let (peak, reply) = peak(yard.host.call(request)).await;
    let after = settled(before + 32 * MIB, Duration::from_secs(2)).await;
    let error = reply.result.unwrap_err();
    let reached = course.0.load(Ordering::Relaxed);
    println!(
        "{name}: {} after {reached}; resident {} MiB, at most {}, then {}; counted {} KiB",
        told(&error),
        before / MIB,
        peak / MIB,
        after / MIB,
        reply.metadata.peak_memory / 1024,
    );
    assert!(peak <= before + memory + 32 * MIB, "at most: {peak}");
    assert!(after <= before + 32 * MIB, "two seconds after: {after}");
    assert!((1..ENDLESS).contains(&reached), "{reached}");
    assert!(
        reply.metadata.peak_memory <= memory + MIB,
        "{:?}",
        reply.metadata
    );
}

/// Asserts that an expected limit ended the call, and describes the limit.
fn told(error: &CallError) -> String {
    let (code, limit) = hit(error);
    assert!(
        matches!(
            (code, limit),
            ("toolward:memory_exceeded", "memory_bytes")
                | (
                    "toolward:limit_exceeded",
                    "resources"
                        | "open_files"
                        | "log_records"
                        | "log_bytes"
                        | "bucket_operations"
                        | "bucket_traffic"
                        | "host_call_bytes"
                )
        ),
        "{error:?}"
    );
    format!(
        "{limit}, {} of {}",
        error.limit.unwrap().used,
        error.limit.unwrap().allowed
    )
}

/// Makes a test for each guest, in a separate process.
macro_rules! hoards {
    ($($test:ident: $guest:ident $what:literal $name:literal;)*) => {$(
        #[test]
        fn $test() {
            alone(concat!(module_path!(), "::", stringify!($test)), || {
                hoards(Guest::$guest, $what, $name)
            });
        }
    )*};
}

hoards! {
    header_maps: Net "hoard-http" "fields";
    header_maps_filled_one_by_one: Net "hoard-http" "appended";
    header_values: Net "hoard-http" "values";
    emptied_header_maps: Net "hoard-http" "emptied";
    copies_of_header_maps: Net "hoard-http" "clones";
    headers_of_requests: Net "hoard-http" "request-headers";
    unsent_bodies: Net "hoard-http" "bodies";
    bodies_of_responses: Net "hoard-http" "response-bodies";
    empty_bodies: Net "hoard-http" "empty-bodies";
    texts_of_requests: Net "hoard-http" "texts";
    request_options: Net "hoard-http" "options";
    pending_responses: Net "hoard-http" "futures";
    unread_responses: Net "hoard-http" "responses";
    pollables: Plain "hoard" "pollables";
    streams: Plain "hoard" "streams";
    pollables_of_streams: Plain "hoard" "stream-pollables";
    polling: Plain "hoard" "poll";
    networks: Plain "hoard" "networks";
    sockets: Plain "hoard" "sockets";
    random_bytes: Plain "hoard" "random";
    preopens: Plain "hoard" "preopens";
    descriptors: Plain "hoard" "descriptors";
    directory_streams: Plain "hoard" "listings";
    streams_of_files: Plain "hoard" "file-streams";
    log_records: Plain "hoard" "log";
    buckets_and_cursors: Buckets "hoard-kv" "things";
}

/// Calls the tool to its end, and checks the resident memory of the process.
async fn ends(input: Value, limits: &str, memory: u64) -> toolward_host::Reply {
    let yard = yard(Guest::Plain, limits);
    value(&yard.host, TOOL, json!({"do": "echo", "value": 7})).await;
    let before = idle();
    let (peak, reply) = peak(yard.host.call(Request::with_value(TOOL, input.clone()))).await;
    let shown = reply.metadata.peak_memory;
    println!(
        "{input}: resident {} MiB, at most {}",
        before / MIB,
        peak / MIB
    );
    assert!(peak <= before + memory + 32 * MIB, "at most: {peak}");
    assert!(shown <= memory + MIB, "{shown}");
    let after = match reply.result {
        // A caller that keeps a result also keeps the result's memory.
        Ok(_) => return reply,
        Err(_) => settled(before + 32 * MIB, Duration::from_secs(2)).await,
    };
    assert!(after <= before + 32 * MIB, "two seconds after: {after}");
    reply
}

/// The host does not store every report, so the guest is not stopped.
#[test]
fn reports_of_progress() {
    alone(concat!(module_path!(), "::reports_of_progress"), || async {
        let input = json!({"do": "hoard", "name": "progress", "n": 5000});
        let reply = ends(input, "", 64 * MIB).await;
        assert!(reply.result.is_ok(), "{:?}", reply.result);
    });
}

#[test]
fn results_of_small_values() {
    alone(
        concat!(module_path!(), "::results_of_small_values"),
        || async {
            for (name, n) in [("objects", 120_000), ("zeros", 240_000)] {
                let small = "limits:\n  memory_mib: 16\n";
                let input = json!({"do": "hoard", "name": name, "n": n});
                let error = ends(input, small, 16 * MIB).await.result.unwrap_err();
                assert_eq!(hit(&error), ("toolward:memory_exceeded", "memory_bytes"));
            }
        },
    );
}

/// A driver that has used most of its memory returns the largest allowed result.
#[test]
fn a_large_result_of_a_large_driver() {
    alone(
        concat!(module_path!(), "::a_large_result_of_a_large_driver"),
        || async {
            let input = json!({"do": "hoard", "name": "text", "n": 51});
            let reply = ends(input, "limits:\n  output_bytes: 4194304\n", 64 * MIB).await;
            let output = reply.result.unwrap_or_else(|error| panic!("{error:?}"));
            assert!(output.structured.to_string().len() > 3 << 20);
            assert!(reply.metadata.peak_memory >= 51 * MIB);
        },
    );
}

#[test]
fn results_of_called_tools() {
    alone(
        concat!(module_path!(), "::results_of_called_tools"),
        || async {
            for (limits, memory) in [("limits:\n  memory_mib: 16\n", 16 * MIB), ("", 64 * MIB)] {
                let input = json!({"do": "hoard", "name": "tools", "n": 20});
                let reply = ends(input, limits, memory).await;
                assert!(reply.result.is_ok(), "{:?}", reply.result);
            }
        },
    );
}
