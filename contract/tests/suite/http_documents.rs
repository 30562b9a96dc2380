//! The corpus of AIP-31, `corpus/aip-31`. Each document starts with comments: the rule that it
//! tests (`rule`), its diagnostics (`gives`: code and line), and, if the rules of AIP-31 alone give
//! another result (`schema`), the reason for the difference (`why`).
//!
//! [`crate::published`] has AIP-31's schema, which gives the second opinion on every document here.

use std::path::Path;

use toolward_contract::driver::Driver;

use crate::noted::{self, Document};
use crate::second_opinion::disagreements;

fn corpus() -> Vec<Document> {
    noted::documents(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/aip-31"))
}

#[test]
fn every_document_of_the_http_corpus_gives_what_its_rule_says() {
    let wrong = noted::wrong(&corpus(), |document| {
        Driver::parse("DRIVER.md", &document.text).diagnostics
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_rules_of_http_drivers_alone_say_the_same_wherever_no_reason_is_given() {
    let wrong = disagreements(&corpus(), &crate::published::HTTP.schema());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_http_corpus_is_large_enough() {
    let corpus = corpus();
    let (valid, invalid): (Vec<_>, Vec<_>) = corpus.iter().partition(|one| one.is_valid);
    assert!(valid.len() >= 30 && invalid.len() >= 50);
}
