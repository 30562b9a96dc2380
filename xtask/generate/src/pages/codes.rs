//! The pages of codes, from the tables in the crates that give them.

use std::fmt::Write as _;

use toolward_egress::{LimitKind, NetworkKind, Rule, SecretProblem, Stage};
use toolward_signing::ErrorKind;

use super::GENERATED;

/// A row, and a section, of the page of diagnostics.
struct Entry {
    code: &'static str,
    severity: String,
    summary: &'static str,
    explanation: &'static str,
}

pub(super) fn diagnostics() -> String {
    let mut page = format!(
        "{GENERATED}# Diagnostics\n\n\
         Every finding of `toolward check` has one of these codes. Codes are stable: tools may match on them.\n"
    );
    let documents = toolward_contract::CODES.iter().map(|info| Entry {
        code: info.code,
        severity: info.severity.to_string(),
        summary: info.summary,
        explanation: info.explanation,
    });
    let bundles = toolward_bundle::codes::CODES.iter().map(|info| Entry {
        code: info.code,
        severity: info.severity.to_string(),
        summary: info.summary,
        explanation: info.explanation,
    });
    section(
        &mut page,
        "Contracts, drivers, actions and the index",
        &documents.collect::<Vec<_>>(),
    );
    section(&mut page, "Bundles", &bundles.collect::<Vec<_>>());
    page
}

// Writing to a String can't fail, so results are not looked at.
fn section(page: &mut String, title: &str, entries: &[Entry]) {
    let _ = write!(
        page,
        "\n## {title}\n\n| Code | Severity | Rule |\n|---|---|---|\n"
    );
    for entry in entries {
        let _ = writeln!(
            page,
            "| [`{0}`](#{0}) | {1} | {2} |",
            entry.code, entry.severity, entry.summary
        );
    }
    for entry in entries {
        let _ = write!(
            page,
            "\n### {}\n\n*{}*: {}.\n\n{}\n",
            entry.code, entry.severity, entry.summary, entry.explanation
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
    for kind in ErrorKind::ALL {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} |",
            kind.code(),
            kind.message(),
            kind.hint()
        );
    }
    page
}

pub(super) fn outgoing_requests() -> String {
    let mut page = format!(
        "{GENERATED}# Outgoing requests\n\n\
         Why a driver's HTTP request was not sent, or what ended it. The codes are those of the crate\n\
         `toolward-egress`. A component gets the nearest code of `wasi:http` instead (mostly `HTTP-request-denied`); the\n\
         error of a driver without code (`kind: http`) has the message.\n"
    );
    let mut table = |title: &str, rows: Vec<(&str, &str)>| {
        let _ = write!(page, "\n## {title}\n\n| Code | Meaning |\n|---|---|\n");
        for (code, message) in rows {
            let _ = writeln!(page, "| `{code}` | {message} |");
        }
    };
    let rules = Rule::ALL.iter().map(|one| (one.code(), one.message()));
    let limits = LimitKind::ALL.iter().map(|one| (one.code(), one.message()));
    let stages = Stage::ALL.iter().map(|one| (one.code(), one.message()));
    let failures = NetworkKind::ALL
        .iter()
        .map(|one| (one.code(), one.message()));
    let secrets = SecretProblem::ALL
        .iter()
        .map(|one| (one.code(), one.message()));
    table("Refused by a rule", rules.collect());
    table("Over a limit of the call", limits.collect());
    table("Out of time", stages.collect());
    table("Failed by the network or the server", failures.collect());
    table("A secret that can't be put in", secrets.collect());
    page
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn no_code_has_two_meanings() {
        let contract = toolward_contract::CODES.iter().map(|info| info.code);
        let bundle = toolward_bundle::codes::CODES.iter().map(|info| info.code);
        let mut seen = BTreeSet::new();
        for code in contract.chain(bundle) {
            assert!(seen.insert(code), "{code}");
        }
    }
}
