//! Formats of other hosts: records of a real host, with the hostile guest of `tests/guests` behind
//! contracts for these tests (build it with `cargo xtask guests`), and imported bundles.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod aml;
mod calls;
mod definitions;
mod descriptions;
mod fixture;
mod foreign_words;
mod importing;
mod importing_runloop;
mod objects;
mod other_forms;
mod schemas;
// A fixture for writing bundles and corpora that several crates share.
#[expect(dead_code, reason = "bundles of other crates' tests need more of it")]
#[path = "../../../bundle/tests/suite/demo.rs"]
mod demo;
#[path = "../../../author/tests/suite/form_corpus.rs"]
mod form_corpus;
#[path = "../../../contract/tests/suite/noted.rs"]
mod noted;

use std::path::Path;

use toolward_adapters::import::{FORMATS, NewBundle};
use toolward_author::check::{CheckOptions, CheckReport, check_with};

/// A check that knows these formats.
fn check_path(path: &Path) -> CheckReport {
    let options = CheckOptions {
        formats: FORMATS,
        ..CheckOptions::default()
    };
    check_with(path, &options)
}

/// A bundle `acme` of the publisher of that name.
fn acme() -> NewBundle {
    NewBundle {
        id: "acme".to_owned(),
        publisher: "acme".to_owned(),
        created: 0,
    }
}
