//! Tests of the crate against real listeners on loopback. Tests of refusals also assert that no
//! listener saw a request.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail the test"
)]

mod addresses;
mod connections;
mod echoes;
mod framing;
mod limits;
mod properties;
mod requests;
mod scrubbing;
mod secrets;
mod server;
mod shares;
mod time;
mod tls;
mod world;
