//! Reading bundles as a host does, but without a host: verified bundles and working directories.
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
