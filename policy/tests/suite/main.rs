//! Tests of the crate through its public interface.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail the test"
)]

mod actions;
mod approval_policies;
mod approvals;
mod contexts;
mod drivers;
mod execs;
mod explanations;
mod files;
mod grants;
mod layers;
mod matrix;
mod narrowing;
mod network;
mod partial;
mod properties;
mod routing;
mod secrets;
mod suggestions;
mod support;
