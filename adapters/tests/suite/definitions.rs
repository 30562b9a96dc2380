//! AML's definitions as authors write them.

use std::collections::BTreeSet;

use toolward_adapters::import::{self, AmlFile, AmlOptions, ImportError};
use toolward_contract::NoScope;
use toolward_contract::diagnostic::Diagnostic;
use toolward_contract::tool::Tool;

use crate::form_corpus::{Form, findings, forms, hold};
use crate::{acme, check_path};

/// The start of every definition.
const DEFINITION: &str = "spec_version: \"1.2\"\ntool_id: find-parcel\nversion: \"1.0.0\"\n";

fn definitions() -> Vec<Form> {
    forms("definition.tool.md", DEFINITION)
}

/// Returns the codes that AML's definitions of the corpus give.
pub(crate) fn codes_of_definitions() -> BTreeSet<&'static str> {
    let forms = definitions().into_iter();
    let found = forms.flat_map(|form| findings(&form, "", check_path));
    found.map(|one| one.code).collect()
}

#[test]
fn definitions_of_all_transports_of_aml_get_the_verdict_beside_them() {
    hold(&definitions(), 40, check_path);
}

#[test]
fn check_and_import_agree_on_every_definition_of_the_corpus() {
    const LEFT_OUT: [&str; 2] = ["aml-not-imported", "aml-request-incomplete"];
    let options = AmlOptions {
        bundle: acme(),
        ..AmlOptions::default()
    };
    for form in definitions() {
        let found = findings(&form, "", check_path);
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
