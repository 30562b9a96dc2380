//! Every diagnostic code with its severity and its explanation: the source of the book's page. Not the checks.

mod table;

pub use table::CODES;
pub(crate) use table::*;

use std::fmt::Write as _;

use crate::diagnostic::Severity;

/// What a diagnostic code means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeInfo {
    /// The stable kebab-case code.
    pub code: &'static str,
    /// The severity that its diagnostics have.
    pub severity: Severity,
    /// The rule in one line, without a full stop.
    pub summary: &'static str,
    /// Why the rule is there and how to satisfy it.
    pub explanation: &'static str,
}

/// The page of the book that lists all codes, generated from [`CODES`]. Ends with a line feed.
#[must_use]
pub fn codes_markdown() -> String {
    let mut page = String::from(
        "<!-- Generated from the table in the contract crate; do not edit. -->\n\n# Diagnostics\n\n\
         Every finding of `toolward check` has one of these codes. Codes are stable: tools may match on them.\n\n\
         | Code | Severity | Rule |\n|---|---|---|\n",
    );
    for info in CODES {
        // Writing to a String can't fail.
        let _ = writeln!(
            page,
            "| [`{0}`](#{0}) | {1} | {2} |",
            info.code, info.severity, info.summary
        );
    }
    for info in CODES {
        let _ = write!(
            page,
            "\n## {}\n\n*{}*: {}.\n\n{}\n",
            info.code, info.severity, info.summary, info.explanation
        );
    }
    page
}
