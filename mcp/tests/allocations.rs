//! What a call over standard input and output allocates in the server, counted by the
//! allocator of this program. The client in the same process allocates nothing.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests"
)]
#![expect(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;
use toolward_bundle::content::Content;
use toolward_host::Host;
use toolward_mcp::principal::{Principal, Tools};
use toolward_mcp::stdio::{self, Streams};
use toolward_mcp::{ServerFeatures, Service};
use toolward_policy::Policy;

/// The most allocations of a call, and the most bytes that they ask for: what a
/// development build was measured to take, and some 2 % more.
const MOST: Allocated = Allocated {
    count: 172,
    bytes: 56_500,
};

/// Calls before the first that counts: pools and caches are full then.
const WARM: usize = 100;
const CALLS: usize = 301;

static COUNT: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(bytes: usize) {
    COUNT.fetch_add(1, Relaxed);
    BYTES.fetch_add(bytes, Relaxed);
    sites::note(bytes);
}

// SAFETY: each method does what that of the system's allocator does, and counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        unsafe { System.dealloc(old, layout) }
    }
}

#[derive(Clone, Copy, Debug)]
struct Allocated {
    count: usize,
    bytes: usize,
}

impl Allocated {
    fn so_far() -> Self {
        Self {
            count: COUNT.load(Relaxed),
            bytes: BYTES.load(Relaxed),
        }
    }
}

/// A client at two pipes, with a buffer for one answer.
struct Client {
    requests: PipeWriter,
    answers: PipeReader,
    answer: [u8; 8192],
}

impl Client {
    /// The answer to a message, which ends with a line feed.
    fn ask(&mut self, message: &str) -> &str {
        self.requests
            .write_all(message.as_bytes())
            .expect("written");
        let mut length = 0;
        while length == 0 || self.answer[length - 1] != b'\n' {
            let read = self.answers.read(&mut self.answer[length..]);
            let read = read.expect("an answer");
            assert_ne!(read, 0, "the server ended");
            length += read;
        }
        str::from_utf8(&self.answer[..length]).expect("text")
    }
}

/// A server of an example's tool on standard input and output, as `toolward serve`
/// makes it.
fn connect(shutdown: &CancellationToken) -> Client {
    let bundle = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/text-stats");
    let content = Content::from_dev(&bundle).expect("a bundle; run `cargo xtask guests` first");
    let host = Host::builder().bundle(content.clone()).build();
    let host = host.expect("a host");
    let features = ServerFeatures::new(host, &[content], &Policy::empty(), usize::MAX);
    let service = Service::new(features.expect("features"));
    let principal = Principal {
        name: "anybody".into(),
        tools: Tools::All,
        may_approve: false,
    };
    let (input, requests) = std::io::pipe().expect("a pipe");
    let (answers, output) = std::io::pipe().expect("a pipe");
    let flags = fcntl_getfl(&input).expect("its flags");
    fcntl_setfl(&input, flags | OFlags::NONBLOCK).expect("one that doesn't block");
    let flags = fcntl_getfl(&output).expect("its flags");
    fcntl_setfl(&output, flags | OFlags::NONBLOCK).expect("one that doesn't block");
    let streams = Streams::of(input.into(), output.into());
    let shutdown = shutdown.clone();
    std::thread::spawn(move || {
        let runtime = |threads| {
            let mut runtime = Builder::new_multi_thread();
            runtime
                .worker_threads(threads)
                .enable_all()
                .build()
                .expect("a runtime")
        };
        let (connection, others) = (runtime(1), runtime(2));
        let handler = service.connection(Some(principal));
        let handler = handler.long_calls_on(others.handle().clone());
        let serving = connection.spawn(stdio::serve(handler, streams, shutdown));
        let served = connection.block_on(serving);
        served.expect("its task").expect("a connection");
    });
    Client {
        requests,
        answers,
        answer: [0; 8192],
    }
}

fn call(id: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"text.stats","arguments":{{"text":"two words"}}}}}}"#
    ) + "\n"
}

#[test]
fn a_call_allocates_no_more_than_was_measured() {
    let shutdown = CancellationToken::new();
    let mut client = connect(&shutdown);
    let opening = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
    client.ask(&format!("{opening}\n"));
    let opened = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    client
        .requests
        .write_all(format!("{opened}\n").as_bytes())
        .expect("written");

    let calls: Vec<_> = (1..=WARM + CALLS).map(call).collect();
    let mut counts = Vec::with_capacity(calls.len());
    for call in &calls {
        let before = Allocated::so_far();
        let answer = client.ask(call);
        assert!(answer.contains(r#""words":2"#), "{answer}");
        let after = Allocated::so_far();
        counts.push((after.count - before.count, after.bytes - before.bytes));
    }
    sites::print(|| {
        client.ask(&call(0));
    });
    let (mut count, mut bytes): (Vec<_>, Vec<_>) = counts.split_off(WARM).into_iter().unzip();
    count.sort_unstable();
    bytes.sort_unstable();
    let (count, bytes) = (count[CALLS / 2], bytes[CALLS / 2]);
    shutdown.cancel();
    println!("{count} allocations of {bytes} bytes");
    assert!(
        count <= MOST.count && bytes <= MOST.bytes,
        "{count} allocations of {bytes} bytes; at most {MOST:?}"
    );
}

/// Prints where one more call allocates, where `TOOLWARD_TEST_ALLOCATION_SITES` is set.
mod sites {
    use std::backtrace::Backtrace;
    use std::cell::Cell;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    static ON: AtomicBool = AtomicBool::new(false);
    static SITES: Mutex<Vec<(usize, Backtrace)>> = Mutex::new(Vec::new());

    thread_local! {
        /// Whether this thread is noting a site: what that allocates is not noted.
        static NOTING: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn note(bytes: usize) {
        if ON.load(Relaxed) && !NOTING.replace(true) {
            let site = Backtrace::force_capture();
            SITES.lock().expect("sites").push((bytes, site));
            NOTING.set(false);
        }
    }

    pub(super) fn print(call: impl FnOnce()) {
        if std::env::var_os("TOOLWARD_TEST_ALLOCATION_SITES").is_none() {
            return;
        }
        ON.store(true, Relaxed);
        call();
        ON.store(false, Relaxed);
        let sites = std::mem::take(&mut *SITES.lock().expect("sites"));
        for (bytes, site) in &sites {
            println!("{bytes} bytes\n{site}");
        }
    }
}
