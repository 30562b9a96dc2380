//! A test in a process of its own: what is measured there is not what other tests,
//! with threads and files of theirs, take beside it.

use std::process::{Command, Stdio};

use crate::world::{CACHE_VARIABLE, cache};

/// Set in the child.
const CHILD: &str = "TOOLWARD_HOSTILE_CHILD";

/// Runs `measured` in a child, which is this test again, alone. Returns what the child
/// printed; in the child itself `None`. `test` is its path: `module_path!()` with the
/// function's name.
pub(crate) fn run(test: &str, measured: impl FnOnce()) -> Option<String> {
    if std::env::var_os(CHILD).is_some() {
        measured();
        return None;
    }
    let (_, test) = test.split_once("::").unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "--test-threads=1", test])
        .env(CHILD, "1")
        // The child finds the drivers that other tests had compiled.
        .env(CACHE_VARIABLE, cache().directory())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let printed = format!(
        "{}{}",
        String::from_utf8_lossy(&child.stdout),
        String::from_utf8_lossy(&child.stderr)
    );
    assert!(child.status.success(), "{printed}");
    assert!(printed.contains("1 passed"), "it ran: {printed}");
    Some(printed)
}
