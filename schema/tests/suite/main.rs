//! Hostile schemas and texts.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail the test"
)]

mod hostile_schemas;
mod listed_schemas;
mod strict_json;
