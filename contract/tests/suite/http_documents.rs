//! The corpus of AIP-31, `corpus/aip-31`: each document begins with comments that say which rule it stands for
//! (`rule`), the diagnostics that it gives (`gives`: code and line), and, where the rules of AIP-31 alone would say
//! otherwise (`schema`), why this host does not (`why`).
//!
//! [`crate::published`] states what AIP-31's schema says. It is the second opinion on every document here.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolward_contract::driver::Driver;
use toolward_contract::schema::Schema;
use toolward_contract::tool::Tool;
use toolward_contract::{Diagnostic, NoScope};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/aip-31")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// One document of the corpus.
struct Case {
    name: String,
    is_valid: bool,
    text: String,
    /// The comments at its head, by their first word.
    notes: BTreeMap<String, String>,
}

impl Case {
    fn read(path: &Path, is_valid: bool) -> Case {
        let text = read(path);
        let comments = text
            .lines()
            .skip(1)
            .map_while(|line| line.strip_prefix("# "));
        let notes = comments.map(|comment| {
            let (key, note) = comment.split_once(": ").expect("a comment is `key: text`");
            (key.to_owned(), note.to_owned())
        });
        let name = path.file_name().expect("a name").to_string_lossy();
        Case {
            name: name.into_owned(),
            is_valid,
            notes: notes.collect(),
            text,
        }
    }

    fn note(&self, key: &str) -> &str {
        self.notes.get(key).map_or("", String::as_str)
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (folder, is_valid) in [("valid", true), ("invalid", false)] {
        let entries = fs::read_dir(corpus().join(folder)).expect("the corpus is there");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        cases.extend(paths.map(|path| Case::read(&path, is_valid)));
    }
    cases.sort_by(|a, b| (a.is_valid, &a.name).cmp(&(b.is_valid, &b.name)));
    cases
}

#[test]
fn every_document_of_the_http_corpus_gives_what_its_rule_says() {
    let mut wrong = Vec::new();
    for case in cases() {
        let found = Driver::parse("DRIVER.md", &case.text).diagnostics;
        let gives: Vec<String> = found
            .iter()
            .map(|one| format!("{}:{}", one.code, one.line))
            .collect();
        let refused = found.iter().any(Diagnostic::is_error);
        if refused == case.is_valid || gives.join(" ") != case.note("gives") {
            wrong.push(format!("{} ({}): {found:?}", case.name, case.note("gives")));
        }
        if case.note("rule").is_empty() {
            wrong.push(format!("{}: stands for no rule", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The front matter as JSON, read by the reader under test: as a part of a contract's metadata, which is kept as
/// it is written.
fn as_json(text: &str) -> Value {
    let inner = text
        .strip_prefix("---\n")
        .and_then(|rest| rest.split_once("\n---\n"));
    let (inner, _) = inner.expect("front matter");
    let indented: String = inner.lines().map(|line| format!("    {line}\n")).collect();
    let tool = format!(
        "---\nname: A\nid: a.b\ndescription: A.\nversion: 1.0.0\ninputs: {{ type: object }}\noutputs: {{}}\n\
         metadata:\n  document:\n{indented}---\n"
    );
    let tool = Tool::parse("TOOL.md", &tool, &NoScope).into_result();
    tool.unwrap_or_else(|found| panic!("{found:?}\n{text}"))
        .metadata["document"]
        .clone()
}

#[test]
fn the_rules_of_http_drivers_alone_say_the_same_wherever_no_reason_is_given() {
    let rules = Schema::compile(&crate::published::HTTP.schema(), &NoScope);
    let rules = rules.expect("the rules are a schema");
    let mut wrong = Vec::new();
    for case in cases() {
        let expected = match case.note("schema") {
            "" => case.is_valid,
            "valid" => true,
            "invalid" => false,
            other => panic!("{}: {other}", case.name),
        };
        let found = rules.validate(&as_json(&case.text));
        if found.is_ok() != expected {
            wrong.push(format!("{}: {found:?}", case.name));
        }
        let differs = expected != case.is_valid;
        if differs == case.note("why").is_empty() {
            wrong.push(format!("{}: a reason goes with a difference", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_http_corpus_is_large_enough() {
    let cases = cases();
    let (valid, invalid): (Vec<_>, Vec<_>) = cases.iter().partition(|case| case.is_valid);
    assert!(valid.len() >= 30 && invalid.len() >= 50);
}
