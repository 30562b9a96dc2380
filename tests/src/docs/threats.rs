//! The threat model names tests that exist.

use std::path::Path;

use super::markdown::Page;
use crate::support::root;

/// Appends all Rust sources below a folder, except build output.
pub(super) fn read_all(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let built = path.ends_with("target") || path.ends_with(".git");
        if path.is_dir() && !path.is_symlink() && !built {
            read_all(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_test_that_the_threat_model_names_exists() {
    let mut sources = String::new();
    read_all(&root(), &mut sources);
    let page = ["threat-model.md", "threat-model-sandbox.md"]
        .map(|name| Page::read(&root().join("docs/src").join(name)).text())
        .concat();
    let named: Vec<&str> = page
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|code| code.matches('_').count() >= 2 && !code.contains(' '))
        .collect();
    assert!(
        named.len() > 30,
        "the page names only {} tests",
        named.len()
    );
    for name in named {
        assert!(
            sources.contains(&format!("fn {name}(")),
            "there is no test {name}"
        );
    }
}
