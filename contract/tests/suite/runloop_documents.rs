//! The corpus of tools.json version 1, `corpus/runloop`. Each document starts with comments: the
//! rule of Runloop that it tests (`rule`), its diagnostics in this host (`gives`: code and line),
//! and the reason if this host is stricter (`why`). A document that is valid for Runloop is read
//! here; an attachment that can't be run safely is denied.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use toolward_contract::action::{Action, Reference};
use toolward_contract::index::Index;
use toolward_contract::{Diagnostic, SchemaScope, Scope};

use crate::noted::{self, Document};

/// The schemas that documents refer to.
struct Schemas;

impl SchemaScope for Schemas {
    fn schema(&self, id: &str) -> Option<Value> {
        let known = ["mail.send.request.v1", "mail.send.result.v1"].contains(&id);
        known.then(|| serde_json::json!({ "type": "object" }))
    }
}

impl Scope for Schemas {
    fn action(&self, _reference: &Reference) -> Option<Arc<Action>> {
        None
    }
}

/// The diagnostics of a document and of its attachments.
fn findings(document: &Document) -> Vec<Diagnostic> {
    // JSON has no comments, so comment lines become empty lines, which keeps the positions.
    let lines = document.text.lines();
    let lines = lines.map(|line| if line.starts_with("# ") { "" } else { line });
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    let parsed = Index::parse("tools.json", text.as_bytes(), &Schemas);
    let mut found = parsed.diagnostics;
    if let Some(index) = parsed.value {
        let contracts = index.contracts();
        let pairs = index.tools.iter().zip(&contracts);
        found.extend(
            pairs.filter_map(|(entry, contract)| entry.driver(contract, "tools.json")?.err()),
        );
    }
    found
}

fn corpus() -> Vec<Document> {
    noted::documents(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/runloop"))
}

#[test]
fn every_document_of_the_runloop_corpus_gives_what_its_rule_says() {
    let wrong = noted::wrong(&corpus(), findings);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_runloop_document_that_is_valid_there_and_gives_something_here_has_a_reason() {
    for document in corpus() {
        let stricter = document.is_valid && !document.note("gives").is_empty();
        assert!(
            !stricter || !document.note("why").is_empty(),
            "{}",
            document.name
        );
    }
}

#[test]
fn the_runloop_corpus_has_both_kinds() {
    let corpus = corpus();
    let (valid, invalid): (Vec<_>, Vec<_>) = corpus.iter().partition(|one| one.is_valid);
    assert!(valid.len() >= 20 && invalid.len() >= 20);
}
