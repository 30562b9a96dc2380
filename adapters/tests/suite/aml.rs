//! AML's tool definitions. Each document of `corpus/aml` starts with comments that state which rule
//! it is for (`rule`) and which findings it gives (`gives`: code and line).

use std::collections::BTreeSet;
use std::path::Path;

use toolward_adapters::aml;
use toolward_contract::diagnostic::{Diagnostic, Severity};

use crate::check_path;
use crate::demo::Demo;
use crate::noted::{self, Document};

fn corpus() -> Vec<Document> {
    noted::documents(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/aml"))
}

fn findings(document: &Document) -> Vec<Diagnostic> {
    aml::check("a.tool.md", &document.text)
}

/// The invalid definition with this name.
fn invalid(name: &str) -> String {
    let mut corpus = corpus().into_iter();
    let found = corpus.find(|one| !one.is_valid && one.name == name);
    found.unwrap().text
}

#[test]
fn every_definition_of_the_corpus_gives_what_its_rule_says() {
    let wrong = noted::wrong(&corpus(), findings);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_has_a_definition_that_breaks_it() {
    let findings: Vec<_> = corpus().iter().flat_map(findings).collect();
    let mut found: BTreeSet<&str> = findings.iter().map(|one| one.code).collect();
    found.extend(crate::definitions::codes_of_definitions());
    for row in aml::CODES {
        assert!(found.contains(row.code), "nothing gives {}", row.code);
    }
    // Twelve rules, more rules from the field reference, and six lints.
    let of = |severity| (aml::CODES.iter()).filter(move |row| row.severity == severity);
    assert_eq!(of(Severity::Error).count(), 12 + 3);
    assert_eq!(of(Severity::Warning).count(), 6 + 3);
}

#[test]
fn a_finding_points_at_the_value_in_its_line() {
    let demo = Demo::new();
    let text = invalid("24-transport-unknown.tool.md");
    let path = demo.write("tools/find-parcel.tool.md", text);
    // Wherever the file is, it is not part of a bundle.
    let report = check_path(&path);
    assert_eq!(report.documents, 1);
    let [found] = report.diagnostics.as_slice() else {
        panic!("{:?}", report.diagnostics);
    };
    assert_eq!(found.code, "aml-transport-unknown");
    assert_eq!(
        found.message,
        "expected `transport.type` to be one of rest-api, lambda, mcp, message-queue, database, grpc, found \"soap\""
    );
    let excerpt = found.excerpt.as_ref().unwrap();
    assert_eq!(excerpt.text, "  type: \"soap\"");
    assert_eq!((found.column, excerpt.before), (9, "  type: ".len()));
    assert!(
        found.to_string().starts_with(&format!(
            "{}:{}:9: error[aml-transport-unknown]: ",
            path.display(),
            found.line
        )),
        "{found}"
    );
}

#[test]
fn a_finding_in_a_schema_points_into_it() {
    let text = invalid("26-input-not-schema.tool.md");
    let [found] = &aml::check("a.tool.md", &text)[..] else {
        panic!("one finding");
    };
    let line = text.lines().nth(found.line as usize - 1).unwrap();
    assert!(
        line.chars()
            .skip(found.column as usize - 1)
            .collect::<String>()
            .starts_with("type: text"),
        "{found}: {line}"
    );
}

#[test]
fn what_is_not_text_is_a_finding() {
    let demo = Demo::new();
    let path = demo.write("find-parcel.tool.md", b"---\n\xff\n---\n");
    let report = check_path(&path);
    let codes: Vec<&str> = report.diagnostics.iter().map(|found| found.code).collect();
    assert_eq!(codes, ["file-not-utf8"]);
}

#[test]
fn a_directory_of_definitions_is_checked() {
    let place = tempfile::tempdir().unwrap();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/aml");
    for name in [
        "valid/01-minimal.tool.md",
        "invalid/24-transport-unknown.tool.md",
    ] {
        let to = place.path().join(name.rsplit('/').next().unwrap());
        std::fs::copy(corpus.join(name), to).unwrap();
    }
    let report = check_path(place.path());
    let codes: Vec<_> = report.diagnostics.iter().map(|found| found.code).collect();
    assert_eq!(codes, ["aml-transport-unknown"]);
    assert!(
        report.diagnostics[0]
            .file
            .ends_with("24-transport-unknown.tool.md")
    );
    assert!(report.diagnostics[0].excerpt.is_some());
    assert_eq!(report.documents, 2);
}
