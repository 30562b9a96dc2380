//! Runs a test in a separate process, so that measurements do not include the threads and files of
//! other tests.

use std::process::{Command, Stdio};

use crate::world::{CACHE_VARIABLE, cache};

/// Set in the child.
const CHILD: &str = "TOOLWARD_HOSTILE_CHILD";

/// Runs this test again, alone, in a child process, which calls `measured`. Returns the child's
/// output, or `None` in the child itself. `test` is the test's path: `module_path!()` with the
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
        // The child finds the drivers that other tests have compiled.
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
