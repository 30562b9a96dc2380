//! The pages of codes, from the tables in the crates that define them.

use std::fmt::Write as _;

use toolward_contract::driver::{ExtractError, RenderErrorKind};
use toolward_egress::{LimitKind, NetworkKind, Rule, RulesError, SecretProblem, Stage};
use toolward_signing::ErrorKind;
use toolward_support::report::Code;

use super::GENERATED;

pub(super) fn diagnostics() -> String {
    let mut page = format!(
        "{GENERATED}# Diagnostics\n\n\
         Every finding of `toolward check` has one of these codes. Codes are stable: programs may match\n\
         on them. The text next to a code is the rule that was broken, or the problem that was found.\n"
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

// Writing to a String can't fail, so results are ignored.
fn section(page: &mut String, title: &str, codes: &[Code]) {
    let _ = write!(
        page,
        "\n## {title}\n\n| Code | Severity | Rule or problem |\n|---|---|---|\n"
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
         A bundle that can't be verified, or a key or trust store that can't be used, is refused\n\
         with one of these codes. The command exits with 3 and uses nothing of the bundle. Codes\n\
         are stable.\n\n\
         | Code | What was found | What to do |\n|---|---|---|\n"
    );
    for row in ErrorKind::CODES {
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
         These codes name why a driver's HTTP request was not sent or failed. The crate\n\
         `toolward-egress` defines them. A component gets the nearest code of `wasi:http`\n\
         instead, mostly `HTTP-request-denied`. For a driver without code (`kind: http`), the\n\
         message of the call's error describes the reason.\n"
    );
    let mut table = |title: &str, rows: &[Code]| {
        let _ = write!(page, "\n## {title}\n\n| Code | Meaning |\n|---|---|\n");
        for row in rows {
            let _ = writeln!(page, "| `{}` | {} |", row.code, row.meaning);
        }
    };
    table("Refused by a rule", Rule::CODES);
    table("Over a limit of the call", LimitKind::CODES);
    table("Out of time", Stage::CODES);
    table("Failed by the network or the server", NetworkKind::CODES);
    table("Secrets that can't be sent", SecretProblem::CODES);
    table("Rules that are invalid", RulesError::CODES);
    table(
        "Values that can't be put into a request, for a driver without code",
        RenderErrorKind::CODES,
    );
    table(
        "A response without an output, for a driver without code",
        ExtractError::CODES,
    );
    page
}

pub(super) fn policy() -> String {
    let mut page = format!(
        "{GENERATED}# Errors in a policy file\n\n\
         These codes name what is wrong in a [policy file](policy.md). `toolward policy check` \
         prints them with the line.\n\n\
         | code | when |\n|---|---|\n"
    );
    for row in toolward_policy::CODES {
        let _ = writeln!(page, "| `{}` | {} |", row.code, row.meaning);
    }
    page + POLICY_WARNINGS
}

const POLICY_WARNINGS: &str = "
## Warnings

These codes name lines that have no effect on the installed bundles. `policy check`, `policy list`,
`list` and `doctor` show them with the file and line.

| code | when |
|---|---|
| `context-without-schema` | A `[[context]]` is for a tool whose contract has no `contextSchema`, so the tool's calls have no context. |
| `context-without-tool` | A `[[context]]` is for a tool that is not installed. |
";

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
