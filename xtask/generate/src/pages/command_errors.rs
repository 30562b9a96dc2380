//! The book's page on the errors of the command. Codes and meanings come from the tables
//! of the command and of the operator's library, and the exit codes of these are here.

use std::fmt::Write as _;

use toolward_operator::Code as OperatorCode;
use toolward_support::report::Kind;

use self::codes::Code;
use self::shared_codes::SHARED;
use super::GENERATED;

/// The command's own table. The command is a program, so it is included here.
#[path = "../../../../cli/src/codes.rs"]
mod codes;

/// What the command says of other libraries' codes, which `check --explain` prints, too.
#[path = "../../../../cli/src/shared_codes.rs"]
#[expect(dead_code, reason = "only the command reads severities")]
mod shared_codes;

const INTRODUCTION: &str = "\
# Errors of the command

Errors of the `toolward` command itself, by code. Errors of a call are in [Results and error codes](results.md), of policy
files in [Policy](policy-errors.md), findings in documents in [Diagnostics](reference/diagnostics.md), refused bundles and
documents in [Refusals](reference/refusals.md), of registries and `https` in [Registry](formats/registry.md#codes),
of requests in [Outgoing requests](reference/outgoing-requests.md). `toolward check --explain CODE` prints what any of them
means. With `--json` the code is in `error.code`.
";

/// A row of a code with a table.
struct Row {
    code: &'static str,
    /// The exit codes, in words where they differ by command.
    exit: &'static str,
    meaning: &'static str,
}

/// A code with its meaning from the table.
fn own(code: impl Kind, exit: &'static str) -> Row {
    Row {
        code: code.row().code,
        exit,
        meaning: code.row().meaning,
    }
}

fn rows() -> Vec<Row> {
    vec![
        own(Code::UsageInvalid, "2"),
        own(OperatorCode::NobodyTrusted, "2"),
        own(OperatorCode::PublisherKnown, "2"),
        own(OperatorCode::PublisherUnknown, "2"),
        own(OperatorCode::PublisherBare, "2"),
        own(OperatorCode::KeyMisplaced, "3"),
        own(OperatorCode::PrefixTaken, "4"),
        own(Code::FingerprintUnconfirmed, "3"),
        own(Code::FingerprintMismatch, "3"),
        own(OperatorCode::TrustInvalid, "2"),
        own(OperatorCode::TrustUnusable, "2"),
        own(OperatorCode::TrustBusy, "1"),
        own(OperatorCode::ChannelUnknown, "2"),
        own(Code::FreshnessUnanswered, "2"),
        own(OperatorCode::ReleaseMissing, "1"),
        own(OperatorCode::ChannelAmbiguous, "2"),
        own(Code::DocumentUnknown, "1 or 2"),
        own(OperatorCode::SourceInvalid, "2 or 1"),
        own(OperatorCode::SourceMoves, "4"),
        own(Code::BundleOther, "2"),
        own(Code::NotExplained, "2"),
        own(Code::PolicyMissing, "2"),
        own(OperatorCode::CaFileInvalid, "2, or 1 of `policy check`"),
        own(
            OperatorCode::RegistrySettingInvalid,
            "2, or 1 of `policy check`",
        ),
        own(OperatorCode::RegistryPasswordMissing, "2"),
        own(OperatorCode::BundleMissing, "2"),
        own(OperatorCode::DemoExists, "1"),
        own(OperatorCode::DemoUnknown, "1"),
        own(Code::BundleUnsigned, "2"),
        own(Code::KeyMissing, "2"),
        own(Code::KeyEncrypted, "2"),
        own(Code::PassphraseMissing, "2"),
        own(Code::PassphraseEmpty, "2"),
        own(
            OperatorCode::ClientSettingInvalid,
            "2, or 1 of `policy check`",
        ),
        own(
            OperatorCode::LedgerSettingInvalid,
            "2, or 1 of `policy check`",
        ),
        own(OperatorCode::LedgerPlaceless, "2"),
        own(OperatorCode::RecorderUnavailable, "1"),
        own(Code::LedgerMissing, "1"),
        own(Code::DeletionUnconfirmed, "4"),
        own(Code::RerunUnconfirmed, "4"),
        own(OperatorCode::CassettePrincipals, "2"),
        own(OperatorCode::SettingInvalid, "2"),
        own(Code::SourceDateEpochInvalid, "2"),
        own(OperatorCode::FileUnreadable, "2 or 1"),
        own(Code::FlagRefused, "2"),
        own(OperatorCode::GrantRefused, "2"),
        own(OperatorCode::GrantImpossible, "4"),
        own(OperatorCode::ChoiceOpen, "4"),
        own(OperatorCode::FileUnfit, "1"),
        own(OperatorCode::ClientFileInvalid, "1"),
        own(OperatorCode::EntryForeign, "1"),
        own(Code::ChangeUnconfirmed, "4"),
        own(OperatorCode::FileChanged, "1"),
        own(OperatorCode::WriteFailed, "1"),
        own(OperatorCode::OutputExists, "1"),
        own(Code::OutputUnwritable, "1"),
        own(OperatorCode::UnwritableValue, "1"),
        own(OperatorCode::RuntimeUnavailable, "1"),
        own(Code::EngineUnavailable, "1"),
        own(OperatorCode::ToolMissing, "1"),
        own(OperatorCode::DriverUnknown, "1"),
        own(OperatorCode::StoreUnusable, "1 or 2"),
        own(Code::BrokerUnavailable, "1"),
        own(Code::ExecBrokerUnavailable, "1"),
        own(OperatorCode::ConfineSettingInvalid, "2"),
        own(Code::AddressUnusable, "2"),
        own(Code::ListenerUnusable, "2"),
        own(OperatorCode::ReloadWider, "–"),
        own(OperatorCode::ReloadTrust, "–"),
        own(OperatorCode::WatchEnded, "1"),
        own(Code::ProgramUnknown, "1"),
        own(Code::NothingToTest, "1"),
        own(Code::BuildUnconfirmed, "4"),
        own(Code::InstallUnconfirmed, "4"),
        own(Code::EntryMissing, "2"),
        own(Code::ImportTooMany, "2"),
        own(Code::ImportSpecFailed, "1"),
        own(OperatorCode::DuplicateId, "1 or 3"),
        own(OperatorCode::DevClash, "3"),
    ]
}

pub(super) fn page() -> String {
    let mut page =
        format!("{GENERATED}{INTRODUCTION}\n| code | exit | what is wrong |\n|---|---|---|\n");
    let own = rows()
        .into_iter()
        .map(|row| (format!("`{}`", row.code), row.exit, row.meaning));
    let shared = SHARED.iter().map(|row| {
        let codes = row.codes.join("`, `");
        (format!("`{codes}`"), row.exit, row.meaning)
    });
    let mut lines: Vec<_> = own.chain(shared).collect();
    lines.sort();
    for (codes, exit, meaning) in lines {
        // Writing to a String can't fail.
        let _ = writeln!(page, "| {codes} | {exit} | {meaning} |");
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_row() {
        let rows: Vec<_> = {
            let own = rows().into_iter().map(|row| row.code);
            let shared = SHARED.iter().flat_map(|row| row.codes.iter().copied());
            own.chain(shared).collect()
        };
        let own = Code::ALL.iter().map(|code| code.code());
        let operator = OperatorCode::ALL.iter().map(|code| code.code());
        for code in own.chain(operator) {
            let found = rows.iter().filter(|row| **row == code).count();
            assert_eq!(found, 1, "{code}");
        }
    }
}
