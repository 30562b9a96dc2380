//! Bundles as an author makes them: written, checked, packed, signed.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "helpers of tests fail the test"
)]

mod against;
mod authoring;
mod building;
mod cascades;
mod checking;
mod form_corpus;
mod forms;
// One fixture for those who make bundles and those who read them.
#[path = "../../../bundle/tests/suite/demo.rs"]
mod demo;
mod dotted;
mod lints;
mod near_names;
mod scaffolding;
