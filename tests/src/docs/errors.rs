//! Error codes in the sources and in the book: whoever meets one finds it.

use std::collections::BTreeSet;

use super::markdown::Page;
use super::threats::read_all;
use crate::support::root;

/// The string literals that directly follow `before`, which ends in a quote.
fn literals<'a>(source: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    source
        .split(before)
        .skip(1)
        .filter_map(|after| after.split('"').next())
}

fn sources(folders: &[&str]) -> String {
    let mut text = String::new();
    for folder in folders {
        read_all(&root().join(folder), &mut text);
    }
    text.retain(|character| !character.is_whitespace());
    text
}

/// Whether it has the form of a code: `write-failed`.
fn is_code(text: &str) -> bool {
    text.contains('-')
        && text
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_lowercase())
}

fn page(name: &str) -> String {
    Page::read(&root().join("docs/src").join(name)).text()
}

#[test]
fn every_error_code_of_the_command_is_in_the_book() {
    let sources = sources(&[
        "author/src",
        "bundle/src",
        "cli/src",
        "host/src",
        "mcp/src",
        "operator/src",
    ]);
    let mut codes = BTreeSet::new();
    for made in ["Failure::usage(\"", "Error::usage(\""] {
        codes.extend(literals(&sources, made));
    }
    for after in sources.split("::new(Kind::").skip(1) {
        codes.extend(
            after
                .split_once(",\"")
                .and_then(|(_, code)| code.split('"').next()),
        );
    }
    // `fn code` of the libraries' errors.
    for body in sources.split("fncode(&self)->&'staticstr{").skip(1) {
        let body = body.split("fn").next().unwrap();
        codes.extend(literals(body, "=>\""));
    }
    codes.retain(|code| is_code(code));
    assert!(
        codes.len() > 25,
        "only {} codes found in the sources",
        codes.len()
    );
    // Refused requests stand with what serving over HTTP is.
    let book = page("command-errors.md") + &page("serve-http.md");
    for code in codes {
        assert!(
            book.contains(&format!("`{code}`")),
            "{code} is not on the page"
        );
    }
}

#[test]
fn every_error_code_of_a_call_is_in_the_book() {
    let mut source = String::new();
    read_all(&root().join("host/src/result"), &mut source);
    let table = source
        .split_once("codes! {")
        .unwrap()
        .1
        .split_once("\n}")
        .unwrap()
        .0;
    let codes: Vec<&str> = literals(table, " = \"").collect();
    assert!(
        codes.len() > 10,
        "only {} codes found in the sources",
        codes.len()
    );
    let book = page("results.md");
    for code in codes {
        assert!(
            book.contains(&format!("| `{code}` |")),
            "{code} is not on the page"
        );
    }
}
