//! The corpus of tools.json version 1, `corpus/runloop`: each document begins with comments that say which rule of
//! Runloop's it stands for (`rule`), what it gives here (`gives`: code and line), and why this host is stricter, where
//! it is (`why`). What is valid there is read here; what can't be run safely is denied as an attachment.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use toolward_contract::action::{Action, Reference};
use toolward_contract::index::Index;
use toolward_contract::{Diagnostic, Scope};

/// The schemas that documents refer to.
struct Schemas;

impl Scope for Schemas {
    fn schema(&self, id: &str) -> Option<Value> {
        let known = ["mail.send.request.v1", "mail.send.result.v1"].contains(&id);
        known.then(|| serde_json::json!({ "type": "object" }))
    }

    fn action(&self, _reference: &Reference) -> Option<Arc<Action>> {
        None
    }
}

struct Case {
    path: PathBuf,
    is_valid: bool,
    text: String,
}

impl Case {
    fn note(&self, key: &str) -> &str {
        let comments = self.text.lines();
        let mut comments = comments.map_while(|line| line.strip_prefix("# "));
        let found = comments.find_map(|comment| comment.strip_prefix(key)?.strip_prefix(':'));
        found.unwrap_or_default().trim()
    }

    /// The document, on the lines where it stands.
    fn document(&self) -> String {
        let lines = self.text.lines();
        let lines = lines.map(|line| if line.starts_with("# ") { "" } else { line });
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// What is wrong with the document, and with its attachments.
    fn findings(&self) -> Vec<Diagnostic> {
        let parsed = Index::parse("tools.json", self.document().as_bytes(), &Schemas);
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
}

fn cases() -> Vec<Case> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/runloop");
    let mut cases = Vec::new();
    for (folder, is_valid) in [("valid", true), ("invalid", false)] {
        for entry in fs::read_dir(corpus.join(folder)).expect("the corpus is there") {
            let path = entry.expect("an entry").path();
            let text = fs::read_to_string(&path).expect("text");
            cases.push(Case {
                path,
                is_valid,
                text,
            });
        }
    }
    cases.sort_by(|a, b| a.path.cmp(&b.path));
    cases
}

#[test]
fn every_document_of_the_runloop_corpus_gives_what_its_rule_says() {
    let mut wrong = Vec::new();
    for case in cases() {
        let found = case.findings();
        let gives: Vec<String> = found
            .iter()
            .map(|one| format!("{}:{}", one.code, one.line))
            .collect();
        let refused = found.iter().any(Diagnostic::is_error);
        if refused == case.is_valid || gives.join(" ") != case.note("gives") {
            wrong.push(format!("{}: {}", case.path.display(), gives.join(" ")));
        }
        // Whatever is warned of although it is valid upstream needs a reason.
        let stricter = case.is_valid && !gives.is_empty();
        if case.note("rule").is_empty() || (stricter && case.note("why").is_empty()) {
            wrong.push(format!("{}: no rule, or no reason", case.path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_runloop_corpus_has_both_kinds() {
    let cases = cases();
    let valid = cases.iter().filter(|case| case.is_valid).count();
    assert!(valid >= 20 && cases.len() - valid >= 20, "{}", cases.len());
}
