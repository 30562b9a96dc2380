//! `check --explain`: what a code means, from the tables that the book's pages are made of.

use std::fmt::Write as _;

use serde_json::json;
use toolward_fields::nearest;
use toolward_operator::toolward_report;
use toolward_signing::ErrorKind;

use crate::failure::{Code, Failure, OperatorCode, Result};
use crate::output::Output;

/// The rows of all tables whose codes the command prints, those of `check` first.
fn rows() -> impl Iterator<Item = &'static toolward_report::Code> {
    let documents = toolward_contract::CODES.iter();
    documents
        .chain(toolward_bundle::codes::CODES)
        .chain(toolward_author::aml::CODES)
        .chain(toolward_policy::CODES)
        .chain(ErrorKind::ALL.iter().map(|kind| kind.row()))
        .chain(
            toolward_registry::Reason::ALL
                .iter()
                .map(|reason| reason.row()),
        )
        .chain(toolward_host::ErrorCode::CODES)
        .chain(OperatorCode::ALL.iter().map(|code| code.row()))
        .chain(Code::ALL.iter().map(|code| code.row()))
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

    #[test]
    fn the_codes_of_calls_have_rows() {
        for code in [
            "cap_denied",
            "no_route",
            "input_invalid",
            "toolward:withdrawn",
        ] {
            let row = rows().find(|row| row.code == code);
            assert!(row.is_some_and(|row| !row.meaning.is_empty()), "{code}");
        }
    }
}
