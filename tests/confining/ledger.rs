//! A compromised server can't reach the ledger: it can't open, truncate, rename, replace or link to
//! the ledger's files, and it can't read the key.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use serde_json::json;

use super::may_trace;
use super::scene::{Scene, User};
use super::tracee::{Answer, Tracee};

const HERE: u64 = (-100_i64).cast_unsigned();
const EACCES: i64 = -13;
const EPERM: i64 = -1;
const EXDEV: i64 = -18;

const OPEN: u64 = 2;
const MMAP: u64 = 9;
const TRUNCATE: u64 = 76;
const RENAME: u64 = 82;
const MKDIR: u64 = 83;
const LINK: u64 = 86;
const UNLINK: u64 = 87;
const SYMLINK: u64 = 88;
const CHMOD: u64 = 90;
const OPENAT: u64 = 257;
const RENAMEAT2: u64 = 316;

fn text(path: &Path) -> Vec<u8> {
    [path.as_os_str().as_bytes(), b"\0"].concat()
}

#[test]
fn a_process_that_was_taken_over_can_neither_read_nor_change_the_ledger() {
    if !may_trace() {
        return;
    }
    let scene = Scene::new(User::Ordinary);
    let mut server = scene.serve();
    let count = json!({"action": "add", "counter": "visits"});
    assert_eq!(server.call("kv.counter", &count)["isError"], false);
    let ledger = scene.path("home/.local/state/toolward/ledger");
    let ledger = ledger.canonicalize().unwrap();
    let key = fs::read(ledger.join("key.pem")).unwrap();

    let tracee = Tracee::stop(server.process());
    let memory = tracee.call(MMAP, [0, 0x8000, 3, 0x22, u64::MAX, 0]);
    let Answer::Value(memory @ 1..) = memory else {
        panic!("no memory: {memory:?}");
    };
    let (first, second) = (memory.cast_unsigned(), memory.cast_unsigned() + 0x2000);
    // A file that the server may write, and that could replace a file of the ledger.
    let own = scene.path("notes/kept");
    tracee.write(second, &text(&own));
    let kept = tracee.call(OPENAT, [HERE, second, 2, 0, 0, 0]);
    assert!(
        matches!(kept, Answer::Value(0..)),
        "it may write its own: {kept:?}"
    );
    let refused = |what: &str, number: u64, arguments: [u64; 6]| {
        let answer = tracee.call(number, arguments);
        let Answer::Value(value) = answer else {
            panic!("{what}: {answer:?}");
        };
        assert!([EACCES, EPERM, EXDEV].contains(&value), "{what}: {value}");
    };
    let names = [
        "records.sqlite",
        "records.sqlite-wal",
        "records.sqlite-shm",
        "payloads.sqlite",
        "key.pem",
        "ledger.vkey",
    ];
    for name in names {
        let path = ledger.join(name);
        assert!(path.exists(), "{name}");
        tracee.write(first, &text(&path));
        let read_write = 2;
        let truncate = 0o1001;
        refused(name, OPEN, [first, 0, 0, 0, 0, 0]);
        refused(name, OPENAT, [HERE, first, 0, 0, 0, 0]);
        refused(name, OPENAT, [HERE, first, read_write, 0, 0, 0]);
        refused(name, OPENAT, [HERE, first, truncate, 0, 0, 0]);
        refused(name, TRUNCATE, [first, 0, 0, 0, 0, 0]);
        refused(name, UNLINK, [first, 0, 0, 0, 0, 0]);
        refused(name, CHMOD, [first, 0o666, 0, 0, 0, 0]);
        // Renames the file away, renames another file over it, and makes a second name.
        refused(name, RENAME, [first, second, 0, 0, 0, 0]);
        refused(name, RENAME, [second, first, 0, 0, 0, 0]);
        refused(name, RENAMEAT2, [HERE, second, HERE, first, 2, 0]);
        refused(name, LINK, [first, second, 0, 0, 0, 0]);
        refused(name, SYMLINK, [second, first, 0, 0, 0, 0]);
    }
    // The directory, and a file next to the ledger's files.
    tracee.write(first, &text(&ledger));
    refused("the directory", OPENAT, [HERE, first, 0o200_000, 0, 0, 0]);
    refused("the directory", RENAME, [first, second, 0, 0, 0, 0]);
    tracee.write(first, &text(&ledger.join("sessions/new")));
    refused("a session", OPENAT, [HERE, first, 0o102, 0o600, 0, 0]);
    refused("a session", MKDIR, [first, 0o700, 0, 0, 0, 0]);
    tracee.release();

    assert_eq!(fs::read(ledger.join("key.pem")).unwrap(), key);
    // Calls are still recorded.
    assert_eq!(server.call("kv.counter", &count)["isError"], false);
}
