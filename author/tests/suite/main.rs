//! Bundles as an author makes them: written, checked, packed, signed.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail the test"
)]

mod against;
mod aml;
mod authoring;
mod building;
mod cascades;
mod checking;
mod forms;
// One fixture for those who make bundles and those who read them.
#[path = "../../../bundle/tests/suite/demo.rs"]
mod demo;
mod dotted;
mod importing;
mod importing_runloop;
mod lints;
mod near_names;
// How corpora are written is one for all crates.
#[path = "../../../contract/tests/suite/noted.rs"]
mod noted;
mod scaffolding;
