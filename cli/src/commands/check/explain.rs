//! `check --explain`: what a code means, from the tables that the book's pages are made of.

use std::fmt::Write as _;

use serde_json::json;
use toolward_egress::{LimitKind, NetworkKind, Rule, SecretProblem, Stage};
use toolward_registry::FailureReason;
use toolward_signing::ErrorKind;
use toolward_support::fields::nearest;
use toolward_support::report::Kind;

use crate::failure::{Code, Failure, OperatorCode, Result};
use crate::output::Output;
use crate::shared_codes::{OTHER_WORLDS, SHARED};

/// Of other hosts' formats.
#[cfg(feature = "adapters")]
const FOREIGN: &[report::Code] = toolward_adapters::aml::CODES;
#[cfg(not(feature = "adapters"))]
const FOREIGN: &[report::Code] = &[];

/// The rows of all tables whose codes the command prints, those of `check` first.
fn rows() -> impl Iterator<Item = toolward_support::report::Code> {
    let documents = toolward_contract::codes();
    documents
        .chain(toolward_bundle::codes::CODES)
        .chain(FOREIGN)
        .chain(toolward_policy::CODES)
        .chain(each(ErrorKind::ALL))
        .chain(each(FailureReason::ALL))
        .chain(toolward_host::ErrorCode::CODES)
        .chain(each(OperatorCode::ALL))
        .chain(each(Code::ALL))
        .chain(each(Rule::ALL))
        .chain(each(LimitKind::ALL))
        .chain(each(Stage::ALL))
        .chain(each(NetworkKind::ALL))
        .chain(each(SecretProblem::ALL))
        .copied()
        .chain(shared())
}

fn each<K: Kind>(
    all: &'static [K],
) -> impl Iterator<Item = &'static toolward_support::report::Code> {
    all.iter().map(|kind| kind.row())
}

/// The codes whose tables have no meanings.
fn shared() -> impl Iterator<Item = toolward_support::report::Code> {
    SHARED.iter().chain(OTHER_WORLDS).flat_map(|row| {
        row.codes.iter().map(|code| toolward_support::report::Code {
            code,
            severity: row.severity,
            meaning: row.meaning,
            advice: "",
        })
    })
}

pub(super) fn run(code: &str, output: &mut Output) -> Result {
    let Some(row) = rows().find(|row| row.code == code) else {
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
            ("command-errors.md", 150),
            ("reference/diagnostics.md", 100),
            ("reference/refusals.md", 30),
            ("reference/outgoing-requests.md", 40),
        ];
        for (page, least) in pages {
            let codes = listed(page);
            assert!(codes.len() >= least, "{page}: {}", codes.len());
            for code in codes {
                let row = rows().find(|row| row.code == code);
                assert!(
                    row.is_some_and(|row| !row.meaning.is_empty()),
                    "{page}: {code}"
                );
            }
        }
    }

    #[test]
    fn codes_that_pages_name_beside_other_things_have_meanings() {
        for code in [
            "cap_denied",
            "no_route",
            "input_invalid",
            "toolward:withdrawn",
            "wit:error",
            "component:not-utf8",
            "registry-redirect-refused",
            "policy-origin",
            "aml-type-unknown",
        ] {
            let row = rows().find(|row| row.code == code);
            assert!(row.is_some_and(|row| !row.meaning.is_empty()), "{code}");
        }
    }
}
