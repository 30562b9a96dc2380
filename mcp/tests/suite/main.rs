//! The HTTP server against correct and incorrect clients, all on loopback, with a handler of a few
//! lines instead of the real one.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "tests"
)]

mod client;
mod cors;
mod draining;
mod fixture;
mod flood;
mod limits;
mod names;
mod sessions;
mod tokens;
mod tolerance;
mod vanishing;
