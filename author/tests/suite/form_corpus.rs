//! Reads files of `corpus/forms`. Each has several documents of one kind, each below a line
//! `=== what it shows | the codes that it gives | its hint`. The codes are in alphabetical order,
//! and the hint may be a part of the real one. The tests of other hosts' formats use these files,
//! too.

use std::fs;
use std::path::Path;

use toolward_author::check::CheckReport;
use toolward_contract::diagnostic::Diagnostic;

/// A function that checks a document.
pub(crate) type Check = fn(&Path) -> CheckReport;

/// One document.
pub(crate) struct Form {
    /// A file name for documents of this kind.
    pub(crate) file: String,
    pub(crate) shows: String,
    codes: Vec<String>,
    hint: String,
    pub(crate) text: String,
}

/// Returns the documents of a kind, each after the text with which all of them start.
pub(crate) fn forms(kind: &str, begin: &str) -> Vec<Form> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/forms");
    let corpus = fs::read_to_string(folder.join(format!("{kind}.txt"))).unwrap();
    let forms = corpus.split("=== ").skip(1).map(|form| {
        let (head, text) = form.split_once('\n').unwrap();
        let [shows, codes, hint] = head.split('|').collect::<Vec<_>>()[..] else {
            panic!("{head}");
        };
        let text = match begin.is_empty() {
            true => text.to_owned(),
            false => format!("---\n{begin}{text}---\n"),
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

/// Returns the findings of `check` for a single document.
pub(crate) fn findings(form: &Form, before: &str, check: Check) -> Vec<Diagnostic> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(&form.file);
    fs::write(&path, format!("{before}{}", form.text)).unwrap();
    check(&path).diagnostics
}

/// Asserts that each document gives its codes.
pub(crate) fn hold(forms: &[Form], least: usize, check: Check) {
    assert!(forms.len() >= least, "{}", forms.len());
    let mut wrong = Vec::new();
    // A byte order mark changes nothing.
    for before in ["", "\u{feff}"] {
        for form in forms {
            let found = findings(form, before, check);
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
