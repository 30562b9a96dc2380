//! What a call over standard input and output costs, in numbers that do not depend on how
//! fast a machine is. A program of its own, since its allocator counts.

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

/// The tests run one after the other: each counts what the whole process does.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
