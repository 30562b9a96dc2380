//! Tests how hosts and operators use ledgers, and how others tamper with them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests"
)]

mod calls;
mod cassettes;
mod crash;
mod disks;
mod given;
mod payloads;
mod queue;
mod records;
mod remote;
mod rows;
mod support;
mod tamper;
mod trees;
