//! Calls each example over `toolward serve`. Its results must be the same with and without the
//! filter, and no call may be refused except those in [`EXPECTED`].

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use serde_json::{Value, json};

use super::cases::names;
use super::may_trace;
use super::ptrace::{self, Event, Thread};
use super::scene::{Scene, User};
use super::server::Server;
use super::tracee::seize;

/// Calls that are refused to a working server, with the reason why it works anyway.
const EXPECTED: [(&str, &str); 3] = [
    ("clone3", "the C library then takes `clone`"),
    (
        "socket",
        "resolvers ask a cache over a Unix socket, and the kernel over netlink, first",
    ),
    (
        "fchown",
        "SQLite gives its files to the owner of the database, as root alone",
    ),
];

/// Calls each tool, and returns the results by tool. For the page from the network it records only
/// that an answer came, since the network may be missing.
fn call_all(server: &mut Server) -> BTreeMap<&'static str, Value> {
    let calls = [
        (
            "csv.summary",
            json!({"csv": "city,amount\nUlm,10.10\nAarau,5\n"}),
        ),
        ("files.search", json!({"pattern": "TODO"})),
        ("json.query", json!({"query": ".a + 1", "data": {"a": 1}})),
        ("kv.counter", json!({"action": "add", "counter": "visits"})),
        (
            "markdown.to-html",
            json!({"markdown": "# Hello, *world*\n"}),
        ),
        ("notes.append", json!({"note": "journal", "text": "Tea"})),
        ("text.digest", json!({"text": "One. Two."})),
        ("text.stats", json!({"text": "One. Two."})),
    ];
    let page = server.call("http.fetch", &json!({"url": "https://docs.rs/"}));
    assert!(page["content"].is_array(), "{page}");
    let answers = calls.into_iter().map(|(tool, input)| {
        let result = server.call(tool, &input);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        (tool, result["structuredContent"].clone())
    });
    answers.collect()
}

#[test]
fn each_example_works_under_the_filter_and_nothing_was_refused_that_was_needed() {
    if !may_trace() {
        return;
    }
    let free = Scene::new(User::Ordinary);
    let mut server = Server::start(free.command("--no-confine"));
    let expected = call_all(&mut server);
    drop(server);

    let scene = Scene::new(User::Ordinary);
    let mut server = scene.serve();
    let process = server.process().try_into().unwrap();
    let watching = spawn(move || refusals(process));
    assert_eq!(call_all(&mut server), expected);
    let written = fs::read_to_string(scene.path("notes/journal.md")).unwrap();
    assert!(written.contains("Tea"), "{written}");
    // The end of the server is watched as well.
    server.hang_up();
    only_expected(watching);
}

#[track_caller]
fn only_expected(watching: JoinHandle<BTreeMap<u64, Refused>>) {
    let names = names();
    let refused = watching.join().unwrap();
    let unexpected: Vec<String> = refused
        .iter()
        .map(|(number, refused)| (names.get(number).copied().unwrap_or("-"), refused))
        .filter(|(name, _)| !EXPECTED.iter().any(|(expected, _)| expected == name))
        .map(|(name, refused)| format!("{name}{:x?}, {} times", refused.first, refused.times))
        .collect();
    assert!(unexpected.is_empty(), "{unexpected:?}");
}

/// How often a call was refused, and the first arguments of such a call.
struct Refused {
    times: u64,
    first: [u64; 3],
}

/// Watches all threads of a process until it ends, and returns the refused calls. It runs on a
/// separate thread, since it gets the events of all threads that its own thread traces.
fn refusals(process: Thread) -> BTreeMap<u64, Refused> {
    const REFUSED: [i64; 2] = [-libc::EPERM as i64, -libc::ENOSYS as i64];
    let mut refused: BTreeMap<u64, Refused> = BTreeMap::new();
    // For each thread, whether it is within a call.
    let mut threads: HashMap<Thread, bool> = HashMap::new();
    seize_all(process, &mut threads);
    loop {
        match ptrace::event(-1) {
            Ok(None) => sleep(Duration::from_micros(50)),
            Ok(Some((thread, Event::Call))) => {
                let within = threads.entry(thread).or_default();
                let ends = *within;
                *within = !ends;
                if ends
                    && let Ok(registers) = ptrace::registers(thread)
                    && REFUSED.contains(&registers.rax.cast_signed())
                {
                    let found = refused.entry(registers.orig_rax).or_insert(Refused {
                        times: 0,
                        first: [registers.rdi, registers.rsi, registers.rdx],
                    });
                    found.times += 1;
                }
                go_on(thread, 0);
            }
            Ok(Some((thread, Event::Stopped))) => go_on(thread, 0),
            Ok(Some((thread, Event::Signal(signal)))) => go_on(thread, signal),
            Ok(Some((_, Event::Ended))) => {}
            // No traced thread is left.
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => return refused,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Lets a thread run to its next call. A thread that has ended in the meantime has its own event.
fn go_on(thread: Thread, signal: i32) {
    if let Err(error) = ptrace::to_next_call(thread, signal) {
        assert_eq!(error.raw_os_error(), Some(libc::ESRCH), "{error}");
    }
}

/// Traces all threads, including threads that they start.
fn seize_all(process: Thread, threads: &mut HashMap<Thread, bool>) {
    let mut more = true;
    while std::mem::take(&mut more) {
        for entry in fs::read_dir(format!("/proc/{process}/task")).unwrap() {
            let name = entry.unwrap().file_name();
            let thread = name.to_str().unwrap().parse().unwrap();
            if threads.contains_key(&thread) {
                continue;
            }
            more = true;
            threads.insert(thread, false);
            if seize(thread, ptrace::THREADS_TOO | ptrace::CALLS_APART) {
                let _ = ptrace::interrupt(thread);
            }
        }
    }
}
