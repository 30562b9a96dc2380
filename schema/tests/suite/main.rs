//! Hostile schemas and texts.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail the test"
)]

mod hostile_schemas;
mod listed_schemas;
mod strict_json;
