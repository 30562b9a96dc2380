//! The confinement of the real `toolward serve`, on Linux x86-64, and of a process of each other profile: a tracer makes
//! it do every system call that there is, and looks at which calls are refused while the server works.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod cases;
mod injecting;
mod ledger;
mod profiles;
mod ptrace;
mod scene;
mod server;
mod table;
mod tracee;
mod working;

use std::io::Write as _;

/// Leaves out what needs to trace a process, where that is forbidden.
const SKIP: &str = "TOOLWARD_TEST_WITHOUT_PTRACE";

/// Whether processes are to be traced. Where that is forbidden, the tests fail unless
/// somebody said that this is known.
fn may_trace() -> bool {
    if std::env::var_os(SKIP).is_some() {
        skipped(&format!("{SKIP} is set: no process is traced"));
        return false;
    }
    true
}

/// Says that a test left something out, past the harness, which keeps what a passing test
/// prints.
fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}
