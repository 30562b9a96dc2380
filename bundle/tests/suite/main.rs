//! Bundles as a host reads them, without a host: verified, or under work.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "helpers of tests fail the test"
)]

mod actions;
mod declarations;
mod demo;
mod fuzz_corpus;
mod indexes;
mod libraries;
mod reading;
mod showing;
mod support;
mod surfaces;
