//! Bundles from end to end, without a host: written, packed, signed, verified,
//! read.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail the test"
)]

mod authoring;
mod checking;
mod declarations;
mod fuzz_corpus;
mod indexes;
mod reading;
mod scaffolding;
mod showing;
mod support;
mod surfaces;
