//! Bundles from an author's side: written, checked, packed, signed.
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
// A fixture that tests of making and of reading bundles share.
#[path = "../../../bundle/tests/suite/demo.rs"]
mod demo;
mod dotted;
mod lints;
mod near_names;
mod scaffolding;
