//! The book's page on the errors of the command, from the command's list of tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use toolward_support::report::{Code as Row, Severity};

use self::codes::{COMMAND_ERRORS, TABLES};
use super::GENERATED;

/// The command's table, and its list of all tables. They are included here because the command is a
/// program and not a library.
#[path = "../../../../cli/src/codes.rs"]
mod codes;

const INTRODUCTION: &str = "\
# Errors of the command

This page lists the errors of the `toolward` command itself, by code. Other errors are on other pages:

* errors of a call in [Results and error codes](results.md)
* errors in a policy file in [Policy](policy-errors.md)
* findings in documents in [Diagnostics](reference/diagnostics.md)
* refused bundles and documents in [Refusals](reference/refusals.md)
* errors of registries and `https` sources in [Registry](formats/registry.md#codes)
* errors of requests in [Outgoing requests](reference/outgoing-requests.md)

`toolward check --explain CODE` prints the meaning of any of these codes. With `--json`, the code is in
`error.code`. A code without an exit code (–) occurs in a warning, in the error of a call, or in `left_out`
or `remarks` of `import`.
";

/// Returns each code of the page once: the row with its meaning, otherwise the first row.
fn rows() -> BTreeMap<&'static str, &'static Row> {
    let mut rows: BTreeMap<&str, &Row> = BTreeMap::new();
    let tables = TABLES.iter().filter(|(page, _)| *page == COMMAND_ERRORS);
    for row in tables.flat_map(|(_, tables)| *tables).copied().flatten() {
        let known = rows.entry(row.code).or_insert(row);
        if known.meaning.is_empty() {
            *known = row;
        }
    }
    rows
}

/// Returns the meaning of a code, which may be in a table of another page.
fn meaning(row: &Row) -> &'static str {
    let mut all = codes::rows().filter(|other| other.code == row.code);
    let explained = all.find(|other| !other.meaning.is_empty());
    explained.map_or("", |other| other.meaning)
}

pub(super) fn page() -> String {
    let mut page =
        format!("{GENERATED}{INTRODUCTION}\n| code | exit | what is wrong |\n|---|---|---|\n");
    for (code, row) in rows() {
        let exit = match (row.exit, row.severity) {
            ("", Severity::Error) => "1",
            ("", _) => "–",
            (exit, _) => exit,
        };
        let meaning = match row.meaning {
            "" => meaning(row),
            meaning => meaning,
        };
        // Writing to a String can't fail.
        let _ = writeln!(page, "| `{code}` | {exit} | {meaning} |");
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_page_has_one_meaning() {
        let tables = TABLES.iter().filter(|(page, _)| *page == COMMAND_ERRORS);
        let all: Vec<&Row> = tables
            .flat_map(|(_, tables)| *tables)
            .copied()
            .flatten()
            .collect();
        assert!(all.len() > 200, "{}", all.len());
        for (code, row) in rows() {
            let explained = all
                .iter()
                .filter(|row| row.code == code && !row.meaning.is_empty());
            assert!(explained.count() < 2, "{code} has two meanings");
            assert!(!meaning(row).is_empty(), "{code} has no meaning");
        }
    }

    #[test]
    fn every_code_is_on_the_page_once() {
        let page = page();
        for code in TABLES.iter().filter(|(page, _)| *page == COMMAND_ERRORS) {
            for row in code.1.iter().copied().flatten() {
                let lines = page
                    .lines()
                    .filter(|line| line.starts_with(&format!("| `{}` |", row.code)));
                assert_eq!(lines.count(), 1, "{}", row.code);
            }
        }
    }
}
