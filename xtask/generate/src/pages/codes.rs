//! The pages of codes, from the tables in the crates that give them.

use std::fmt::Write as _;

use toolward_egress::{LimitKind, NetworkKind, Rule, SecretProblem, Stage};
use toolward_signing::ErrorKind;
use toolward_support::report::Code;

use super::GENERATED;

pub(super) fn diagnostics() -> String {
    let mut page = format!(
        "{GENERATED}# Diagnostics\n\n\
         Every finding of `toolward check` has one of these codes. Codes are stable: tools may match on them.\n"
    );
    let documents = "Contracts, drivers, actions and the index";
    let codes: Vec<Code> = toolward_contract::codes().copied().collect();
    section(&mut page, documents, &codes);
    section(&mut page, "Bundles", toolward_bundle::codes::CODES);
    section(
        &mut page,
        "Tool definitions of AML",
        toolward_adapters::aml::CODES,
    );
    page
}

// Writing to a String can't fail, so results are not looked at.
fn section(page: &mut String, title: &str, codes: &[Code]) {
    let _ = write!(
        page,
        "\n## {title}\n\n| Code | Severity | Rule |\n|---|---|---|\n"
    );
    for row in codes {
        let _ = writeln!(
            page,
            "| [`{0}`](#{0}) | {1} | {2} |",
            row.code, row.severity, row.meaning
        );
    }
    for row in codes {
        let _ = write!(
            page,
            "\n### {}\n\n*{}*: {}.\n\n{}\n",
            row.code, row.severity, row.meaning, row.advice
        );
    }
}

pub(super) fn refusals() -> String {
    let mut page = format!(
        "{GENERATED}# Refusals\n\n\
         A bundle that can't be verified, or a key or trust store that can't be used, is refused with one of these\n\
         codes. The command exits with 3, and nothing of the bundle has been used. Codes are stable.\n\n\
         | Code | What was found | What to do |\n|---|---|---|\n"
    );
    for row in ErrorKind::ALL.iter().map(|kind| kind.row()) {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} |",
            row.code, row.meaning, row.advice
        );
    }
    page
}

pub(super) fn outgoing_requests() -> String {
    let mut page = format!(
        "{GENERATED}# Outgoing requests\n\n\
         Why a driver's HTTP request was not sent, or what ended it. The crate\n\
         `toolward-egress` has the codes. A component gets the nearest code of `wasi:http` instead (mostly `HTTP-request-denied`); the\n\
         error of a driver without code (`kind: http`) has the message.\n"
    );
    let mut table = |title: &str, rows: &mut dyn Iterator<Item = &'static Code>| {
        let _ = write!(page, "\n## {title}\n\n| Code | Meaning |\n|---|---|\n");
        for row in rows {
            let _ = writeln!(page, "| `{}` | {} |", row.code, row.meaning);
        }
    };
    table(
        "Refused by a rule",
        &mut Rule::ALL.iter().map(|one| one.row()),
    );
    table(
        "Over a limit of the call",
        &mut LimitKind::ALL.iter().map(|one| one.row()),
    );
    table("Out of time", &mut Stage::ALL.iter().map(|one| one.row()));
    table(
        "Failed by the network or the server",
        &mut NetworkKind::ALL.iter().map(|one| one.row()),
    );
    table(
        "A secret that can't be put in",
        &mut SecretProblem::ALL.iter().map(|one| one.row()),
    );
    page
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn no_code_has_two_meanings() {
        let mut seen = BTreeSet::new();
        for row in toolward_contract::codes()
            .chain(toolward_bundle::codes::CODES)
            .chain(toolward_adapters::aml::CODES)
        {
            assert!(seen.insert(row.code), "{}", row.code);
        }
    }
}
