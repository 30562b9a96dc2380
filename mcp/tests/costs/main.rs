//! The cost of a call over standard input and output, in numbers that do not depend on the speed of
//! a machine. It is a separate program, since its allocator counts.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests"
)]

mod allocations;
mod instructions;
mod server;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Makes the tests run one after the other, since each counts what the whole process does.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
