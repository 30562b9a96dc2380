//! Every error code in a table of the sources is also in the book.

use std::collections::BTreeSet;

use toolward_host::ErrorCode;

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

/// Whether a text has the form of a code, such as `write-failed`.
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
fn every_error_code_of_a_table_is_in_the_book() {
    // The command lists the tables, and the generator makes the page from the list. This test finds
    // a table that is missing in the list.
    let sources = sources(&[
        "adapters/src",
        "author/src",
        "bundle/src",
        "cli/src",
        "confine/src",
        "contract/src",
        "egress/src",
        "host/src",
        "ledger/src",
        "mcp/src",
        "operator/src",
        "programs/src",
        "registry/src",
        "sandbox/src",
        "schema/src",
        "signing/src",
        "state/src",
        "store/src",
    ]);
    let mut codes = BTreeSet::new();
    for table in sources.split("codes!{").skip(1) {
        let table = table.split("}}").next().unwrap();
        codes.extend(literals(table, "=\""));
    }
    codes.retain(|code| is_code(code));
    assert!(
        codes.len() > 300,
        "only {} codes found in the sources",
        codes.len()
    );
    let pages = [
        "command-errors.md",
        "confinement.md",
        "formats/registry.md",
        "reference/diagnostics.md",
        "reference/outgoing-requests.md",
        "reference/refusals.md",
        "serve-http.md",
        "serve-messages.md",
    ];
    let book: String = pages.iter().map(|name| page(name)).collect();
    for code in codes {
        assert!(
            book.contains(&format!("`{code}`")),
            "{code} is not on a page"
        );
    }
}

#[test]
fn every_error_code_of_a_call_is_in_the_book() {
    let book = page("results.md");
    for row in ErrorCode::CODES {
        assert!(
            book.contains(&format!("| `{}` |", row.code)),
            "{} is not on the page",
            row.code
        );
    }
}
