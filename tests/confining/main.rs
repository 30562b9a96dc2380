//! The confinement of the real `toolward serve` on Linux x86-64, and of a process of each other
//! profile. A tracer makes the process execute every system call, and checks which calls are
//! refused to a working server.
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

/// The variable that leaves out tests that trace a process, for machines that forbid tracing.
const SKIP: &str = "TOOLWARD_TEST_WITHOUT_PTRACE";

/// Whether the tests trace processes: unless [`SKIP`] is set, they do, and fail if tracing is
/// forbidden.
fn may_trace() -> bool {
    if std::env::var_os(SKIP).is_some() {
        skipped(&format!("{SKIP} is set: no process is traced"));
        return false;
    }
    true
}

/// Reports that a test left something out. Writes directly to standard error, since the harness
/// hides the output of a passing test.
fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}
