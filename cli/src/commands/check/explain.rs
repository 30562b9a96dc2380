//! `check --explain`: what a code means, from the tables that the book's pages are made of.

use std::fmt::Write as _;

use serde_json::json;
use toolward_support::fields::nearest;
use toolward_support::report::Code as Row;

use crate::codes::rows;
use crate::failure::{Code, Failure, Result};
use crate::output::Output;

/// The row that has the meaning of a code.
fn row(code: &str) -> Option<&'static Row> {
    rows().find(|row| row.code == code && !row.meaning.is_empty())
}

pub(super) fn run(code: &str, output: &mut Output) -> Result {
    let Some(row) = row(code) else {
        let hint = match nearest(code, rows().map(|row| row.code)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "the book lists all codes: `Diagnostics`, `Refusals`, `Errors of the command` \
                     and `Results and error codes`"
                .to_owned(),
        };
        let message = format!("no explanation has the code {code}");
        return Err(Failure::usage(Code::NotExplained, message).hint(hint));
    };
    if output.json() {
        return output.value(&json!({
            "ok": true,
            "code": row.code,
            "severity": row.severity,
            "meaning": row.meaning,
            "advice": Some(row.advice).filter(|advice| !advice.is_empty()),
        }));
    }
    let meaning = row.meaning.trim_end_matches('.');
    let mut text = format!("{}[{}]: {meaning}", row.severity, row.code);
    if !row.advice.is_empty() {
        // Writing to a String can't fail.
        let _ = write!(text, "\n\n{}", row.advice);
    }
    output.line(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes::TABLES;

    /// The codes in the first column of a page's tables.
    fn listed(page: &str) -> Vec<String> {
        let path = format!("{}/../docs/src/{page}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).expect("a page of the book");
        let cells = text.lines().filter_map(|line| {
            line.strip_prefix("| ")?
                .split(" |")
                .next()
                .map(str::to_owned)
        });
        let codes = cells.flat_map(|cell| {
            let codes: Vec<_> = cell
                .split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect();
            codes
        });
        codes.collect()
    }

    #[test]
    fn each_code_of_the_book_has_a_meaning() {
        let pages = [
            ("command-errors.md", 200),
            ("reference/diagnostics.md", 100),
            ("reference/refusals.md", 30),
            ("reference/outgoing-requests.md", 40),
        ];
        for (page, least) in pages {
            let codes = listed(page);
            assert!(codes.len() >= least, "{page}: {}", codes.len());
            for code in codes {
                assert!(row(&code).is_some(), "{page}: {code}");
            }
        }
    }

    #[test]
    fn each_code_that_is_printed_has_a_meaning() {
        for printed in rows() {
            assert!(row(printed.code).is_some(), "{}", printed.code);
        }
    }

    #[test]
    fn each_page_names_the_codes_of_its_tables() {
        for (page, tables) in TABLES {
            let path = format!("{}/../docs/src/{page}", env!("CARGO_MANIFEST_DIR"));
            let text = std::fs::read_to_string(path).expect("a page of the book");
            for row in tables.iter().flat_map(|table| table.iter()) {
                assert!(text.contains(row.code), "{page}: {}", row.code);
            }
        }
    }
}
