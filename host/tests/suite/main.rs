//! The host against real drivers: the hostile guest of `tests/guests` behind contracts that each
//! test defines. Build the guest with `cargo xtask guests`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    reason = "tests"
)]

mod approving;
mod bombs;
mod broker;
mod buckets;
mod cache;
mod cancelled;
mod compiling;
mod confine;
mod contexts;
mod continuing;
mod elicitation;
mod endings;
mod events;
mod executors;
mod fallback;
mod files;
mod fixture;
mod forms;
mod listening;
mod neighbours;
mod nothing_granted;
mod outputs;
mod pipeline;
mod promised;
mod recording;
mod unserved;
