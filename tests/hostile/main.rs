//! Drivers that try to escape, run by the host. Each test asserts what did not happen: for example,
//! no file was read, no packet reached a listener, no neighbour had to wait. The drivers are in
//! `tests/guests`; build them with `cargo xtask guests`.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod approvals;
mod buckets;
mod child;
mod components;
mod files;
mod http_drivers;
mod limits;
mod matrix;
#[expect(clippy::print_stdout, reason = "shown with `--nocapture`")]
mod measured;
mod neighbours;
mod nested;
mod network;
mod partial;
mod schemas;
mod secrets;
mod server;
#[expect(dead_code, reason = "the tests of buckets use all of it")]
#[path = "../../state/tests/suite/bucket.rs"]
mod stored_bucket;
mod transcoding;
mod vault;
mod world;
