//! The allocations of the server for a call over standard input and output, counted by this
//! program's allocator.

#![expect(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use toolward_host::Limits;

use crate::server::{self, Server};

/// The most allocations of a call, and the most bytes that they request: the measured values of a
/// development build and about 2 % more.
const MOST: Allocated = Allocated {
    count: 159,
    bytes: 51_300,
};

/// Calls before the first counted one, which fill pools and caches.
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

// SAFETY: each method calls the method of the system's allocator, and counts.
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

#[test]
fn a_call_allocates_no_more_than_was_measured() {
    let _alone = crate::alone();
    let mut server = Server::start(Limits::default());
    let calls: Vec<_> = (1..=WARM + CALLS).map(server::call).collect();
    let mut counts = Vec::with_capacity(calls.len());
    for call in &calls {
        let before = Allocated::so_far();
        let answer = server.ask(call);
        assert!(answer.contains(r#""words":2"#), "{answer}");
        let after = Allocated::so_far();
        counts.push((after.count - before.count, after.bytes - before.bytes));
    }
    sites::print(|| {
        server.ask(&server::call(0));
    });
    let (mut count, mut bytes): (Vec<_>, Vec<_>) = counts.split_off(WARM).into_iter().unzip();
    count.sort_unstable();
    bytes.sort_unstable();
    let (count, bytes) = (count[CALLS / 2], bytes[CALLS / 2]);
    println!("{count} allocations of {bytes} bytes");
    assert!(
        count <= MOST.count && bytes <= MOST.bytes,
        "{count} allocations of {bytes} bytes; at most {MOST:?}"
    );
}

/// Prints where one more call allocates, if `TOOLWARD_TEST_ALLOCATION_SITES` is set.
mod sites {
    use std::backtrace::Backtrace;
    use std::cell::Cell;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    static ON: AtomicBool = AtomicBool::new(false);
    static SITES: Mutex<Vec<(usize, Backtrace)>> = Mutex::new(Vec::new());

    thread_local! {
        /// Whether this thread is noting a site. The allocations of noting are not noted.
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
