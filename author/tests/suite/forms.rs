//! Documents as their authors write them, in the forms of AIP-14, 30, 31 and 39, of Runloop and of AML. A file of
//! `corpus/forms` has several of one kind, each below `=== what it shows | the codes that it gives | its hint`; the codes
//! in alphabetical order, and a part of a hint.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use toolward_author::check::check_path;
use toolward_author::import::{self, AmlFile, AmlOptions, ImportError};
use toolward_contract::NoScope;
use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::tool::Tool;

/// What every definition of AML begins with.
const DEFINITION: &str = "spec_version: \"1.2\"\ntool_id: find-parcel\nversion: \"1.0.0\"\n";

struct Form {
    /// The name of a file of its kind.
    file: String,
    shows: String,
    codes: Vec<String>,
    hint: String,
    text: String,
}

fn forms(kind: &str) -> Vec<Form> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/forms");
    let corpus = fs::read_to_string(folder.join(format!("{kind}.txt"))).unwrap();
    let forms = corpus.split("=== ").skip(1).map(|form| {
        let (head, text) = form.split_once('\n').unwrap();
        let [shows, codes, hint] = head.split('|').collect::<Vec<_>>()[..] else {
            panic!("{head}");
        };
        let text = match kind.ends_with(".tool.md") {
            true => format!("---\n{DEFINITION}{text}---\n"),
            false => text.to_owned(),
        };
        Form {
            file: kind.to_owned(),
            shows: shows.trim().to_owned(),
            codes: codes.split_whitespace().map(str::to_owned).collect(),
            hint: hint.trim().to_owned(),
            text,
        }
    });
    forms.collect()
}

/// What `check` reports of a document alone.
fn findings(form: &Form, before: &str) -> Vec<Diagnostic> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(&form.file);
    fs::write(&path, format!("{before}{}", form.text)).unwrap();
    check_path(&path).diagnostics
}

fn hold(kind: &str, least: usize) {
    let forms = forms(kind);
    assert!(forms.len() >= least, "{}", forms.len());
    let mut wrong = Vec::new();
    // A byte order mark changes nothing.
    for before in ["", "\u{feff}"] {
        for form in &forms {
            let found = findings(form, before);
            let mut codes: Vec<&str> = found.iter().map(|one| one.code).collect();
            codes.sort_unstable();
            let hints = found.iter().filter_map(|one| one.hint.as_deref());
            let hinted =
                form.hint.is_empty() || hints.into_iter().any(|hint| hint.contains(&form.hint));
            if codes != form.codes || !hinted {
                wrong.push(format!("{}: {found:#?}", form.shows));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The codes that AML's definitions of the corpus give.
pub(crate) fn codes_of_definitions() -> BTreeSet<&'static str> {
    let forms = forms("definition.tool.md").into_iter();
    let found = forms.flat_map(|form| findings(&form, ""));
    found.map(|one| one.code).collect()
}

#[test]
fn contracts_in_the_forms_of_aip_14_get_the_verdict_beside_them() {
    hold("TOOL.md", 15);
}

#[test]
fn drivers_in_the_forms_of_aip_30_and_31_get_the_verdict_beside_them() {
    hold("DRIVER.md", 17);
}

#[test]
fn actions_in_the_forms_of_aip_39_get_the_verdict_beside_them() {
    hold("ACTION.md", 7);
}

#[test]
fn tools_json_as_a_scaffold_of_runloop_writes_it_gets_the_verdict_beside_it() {
    hold("tools.json", 20);
}

#[test]
fn definitions_of_all_transports_of_aml_get_the_verdict_beside_them() {
    hold("definition.tool.md", 40);
}

#[test]
fn check_and_import_agree_on_every_definition_of_the_corpus() {
    const LEFT_OUT: [&str; 2] = ["aml-not-imported", "aml-request-incomplete"];
    let options = AmlOptions {
        prefix: "acme".to_owned(),
        publisher: "acme".to_owned(),
        ..AmlOptions::default()
    };
    for form in forms("definition.tool.md") {
        let found = findings(&form, "");
        let refused = found.iter().any(Diagnostic::is_error);
        let left_out = found.iter().any(|one| LEFT_OUT.contains(&one.code));
        let file = AmlFile {
            name: form.file,
            text: form.text.clone(),
        };
        match import::aml(&[file], &options) {
            Ok(imported) => {
                assert!(!refused && !left_out, "{}: {found:#?}", form.shows);
                let is_contract = |(name, _): &&(String, Vec<u8>)| name.ends_with("/TOOL.md");
                let (_, text) = imported.files.iter().find(is_contract).expect("a contract");
                let text = std::str::from_utf8(text).expect("UTF-8");
                let tool = Tool::parse("TOOL.md", text, &NoScope).value.expect("valid");
                let kept = tool.metadata["aml"].get("transport");
                let written = form.text.contains("\ntransport:\n");
                assert_eq!(kept.is_some(), written, "{}", form.shows);
            }
            Err(ImportError::Definition(_)) => assert!(refused, "{}", form.shows),
            Err(ImportError::NoTool(_)) => assert!(!refused && left_out, "{}", form.shows),
            Err(error) => panic!("{}: {error}", form.shows),
        }
    }
}
