//! The book's page on the errors of the command. Codes and meanings come from the tables
//! of the command and of the operator's library; exit codes, and the meanings of codes
//! from other libraries' tables, which have none, are here.

use std::fmt::Write as _;

use toolward_operator::Code as OperatorCode;
use toolward_operator::toolward_report::Kind;

use self::codes::Code;
use super::GENERATED;

/// The command's own table. The command is a program, so it is included here.
#[path = "../../../../cli/src/codes.rs"]
mod codes;

const INTRODUCTION: &str = "\
# Errors of the command

Errors of the `toolward` command itself. Errors of a call are in [Results and error codes](results.md), findings in
documents in [Diagnostics](reference/diagnostics.md), refused bundles and documents in [Refusals](reference/refusals.md),
those of registries and `https` in [Registry](formats/registry.md#codes). With `--json` the code is in `error.code`.
";

/// A row of the page.
struct Row {
    codes: Vec<&'static str>,
    /// The exit codes, in words where they differ by command.
    exit: &'static str,
    meaning: &'static str,
}

/// A code with its meaning from the table.
fn own(code: impl Kind, exit: &'static str) -> Row {
    other(&[code.row().code], exit, code.row().meaning)
}

/// Codes of other libraries.
fn other(codes: &[&'static str], exit: &'static str, meaning: &'static str) -> Row {
    Row {
        codes: codes.to_vec(),
        exit,
        meaning,
    }
}

fn rows() -> Vec<Row> {
    vec![
        own(Code::UsageInvalid, "2"),
        own(OperatorCode::NobodyTrusted, "2"),
        own(OperatorCode::PublisherKnown, "2"),
        own(OperatorCode::PublisherUnknown, "2"),
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
        other(
            &["policy-…"],
            "2, or 1 of `policy check`",
            "a policy file is wrong: [the codes](policy.md#errors)",
        ),
        own(Code::BundleOther, "2"),
        own(Code::NotExplained, "2"),
        own(Code::PolicyMissing, "2"),
        other(
            &["workspace-refused"],
            "2",
            "a workspace's directory lies in a protected place, or in another workspace",
        ),
        other(
            &[
                "workspace-missing",
                "workspace-not-a-directory",
                "workspace-unreadable",
                "workspace-unmapped",
                "workspace-ambiguous",
            ],
            "4",
            "why a tool that needs this workspace is blocked: its directory is missing, not a directory, unreadable, not in the policy, or there twice",
        ),
        own(OperatorCode::CaFileInvalid, "2, or 1 of `policy check`"),
        own(OperatorCode::BundleMissing, "2"),
        own(OperatorCode::DemoExists, "1"),
        own(OperatorCode::DemoUnknown, "1"),
        own(Code::BundleUnsigned, "2"),
        own(Code::KeyMissing, "2"),
        own(Code::KeyEncrypted, "2"),
        own(Code::PassphraseMissing, "2"),
        own(Code::PassphraseEmpty, "2"),
        own(
            OperatorCode::LedgerSettingInvalid,
            "2, or 1 of `policy check`",
        ),
        own(OperatorCode::LedgerPlaceless, "2"),
        own(OperatorCode::RecorderUnavailable, "1"),
        other(
            &["recorder-failed"],
            "1",
            "[the process that records calls](ledger.md) has ended, or can't use the ledger; `serve` ends then",
        ),
        own(Code::LedgerMissing, "1"),
        own(Code::DeletionUnconfirmed, "4"),
        own(Code::RerunUnconfirmed, "4"),
        own(OperatorCode::CassettePrincipals, "2"),
        own(OperatorCode::SettingInvalid, "2"),
        other(
            &["input-not-object"],
            "2",
            "`--set` was used on an input that is not an object",
        ),
        own(Code::SourceDateEpochInvalid, "2"),
        own(OperatorCode::FileUnreadable, "2 or 1"),
        own(Code::FlagRefused, "2"),
        own(OperatorCode::GrantRefused, "2"),
        own(OperatorCode::GrantImpossible, "4"),
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
        other(
            &["cache-unusable"],
            "1",
            "the cache directory can't be used safely",
        ),
        own(OperatorCode::ToolMissing, "1"),
        own(OperatorCode::DriverUnknown, "1"),
        own(OperatorCode::StoreUnusable, "1 or 2"),
        other(
            &["store-corrupt", "store-version", "store-io"],
            "1",
            "one of the two is damaged, another version's, or can't be read or written",
        ),
        other(
            &["store-busy"],
            "1",
            "other processes held the store of bundles for too long",
        ),
        other(
            &["store-read-only"],
            "1",
            "the store's disk or directory is read-only",
        ),
        other(
            &["store-log-unreadable"],
            "1",
            "the store's latest changes, revocations among them, are in a log that can't be read on a full or read-only disk",
        ),
        other(
            &["disk-full"],
            "1",
            "no room for a bundle; the old release stays",
        ),
        other(&["not-installed"], "1", "no bundle of this id is installed"),
        other(
            &["not-held"],
            "1",
            "no update of this bundle waits to be accepted",
        ),
        other(
            &["surface-mismatch"],
            "3",
            "the held update has another surface than the one accepted",
        ),
        other(
            &["object-missing", "object-changed"],
            "3",
            "the file of an installed bundle is gone, or holds another bundle",
        ),
        other(
            &["actions-changed"],
            "3",
            "an action that an installed bundle takes from a library demands something else than when the bundle was accepted",
        ),
        other(
            &["publisher-changed"],
            "3",
            "the keys of an installed bundle belong to another publisher now",
        ),
        own(Code::BrokerUnavailable, "1"),
        own(Code::ExecBrokerUnavailable, "1"),
        other(
            &[
                "exec-unopened",
                "exec-unsafe",
                "exec-digest",
                "exec-interpreter",
                "exec-workspace",
                "exec-secret",
                "exec-unconfined",
                "exec-unstarted",
            ],
            "4",
            "why the program of a tool was not run, as `rule` of the error: its file can't be opened without links, others may \
             write to it, it has another digest, another interpreter, no directory, a secret has no value, this kernel can't \
             confine it, or it could not be started; `doctor` says more",
        ),
        other(
            &["exec-broker-missing", "exec-line-new"],
            "4",
            "the host has no broker that runs programs, or was started before the `[[exec]]` was written",
        ),
        other(
            &["confine-threads", "confine-path", "confine-refused"],
            "1",
            "the process can't be confined; `--no-confine` runs drivers without",
        ),
        own(OperatorCode::ConfineSettingInvalid, "2"),
        other(
            &["mcp-name-taken"],
            "–",
            "a warning: every name that a tool could have over MCP is taken, and it is left out",
        ),
        other(
            &["mcp-name-outside"],
            "–",
            "a warning: the name that a tool asks for over MCP lies outside its publisher's prefixes, and it is shown by its id",
        ),
        other(
            &["denials-unusable", "denials-unsafe"],
            "–",
            "a warning: denials can't be kept in the state directory, or others could read them there; they are forgotten when the server ends",
        ),
        other(
            &["document-clash"],
            "2",
            "two prompts or resources would have one name or URI",
        ),
        own(Code::AddressUnusable, "2"),
        own(Code::ListenerUnusable, "2"),
        own(OperatorCode::ReloadWider, "–"),
        own(OperatorCode::ReloadTrust, "–"),
        other(
            &["stdio-unusable", "stdio-opening", "stdio-failed"],
            "1",
            "standard input or output can't be used; the client's first message does not initialize; the connection failed",
        ),
        own(OperatorCode::WatchEnded, "1"),
        other(
            &["http-listener"],
            "1",
            "the listening socket can't be used",
        ),
        other(
            &["http-open-address"],
            "2",
            "`--no-token` on an address that other machines reach",
        ),
        other(
            &["http-no-hosts"],
            "2",
            "clients can't name this address, and no `--allow-host` was given",
        ),
        other(
            &["http-name-invalid"],
            "2",
            "an `--allow-host` or `--allow-origin` is invalid",
        ),
        other(
            &[
                "token-file-unusable",
                "token-file-unsafe",
                "token-file-invalid",
            ],
            "2",
            "the file of tokens can't be read or written, others may read or change it, or it is invalid",
        ),
        other(
            &["token-invalid"],
            "2",
            "`mcp token` got an invalid name or tool",
        ),
        other(
            &["token-known"],
            "2",
            "the file of tokens has an entry of this name already",
        ),
        other(
            &["random-unavailable"],
            "1",
            "the system gives no random bytes for a token",
        ),
        own(Code::ProgramUnknown, "1"),
        other(
            &["confine-incomplete"],
            "1",
            "the kernel supports only a part of the confinement, and an embedder requires all",
        ),
        own(Code::NothingToTest, "1"),
        other(
            &["nothing-to-build"],
            "1",
            "`bundle.toml` has no `[[build]]`",
        ),
        other(
            &["crate-missing"],
            "1",
            "a `[[build]]` names a directory without Cargo.toml",
        ),
        other(
            &["cargo-unusable"],
            "1",
            "the guest toolchain's Cargo can't be started",
        ),
        other(
            &["guest-target-missing"],
            "1",
            "its compiler lacks the target `wasm32-wasip2`",
        ),
        other(&["build-failed"], "1", "a driver doesn't compile"),
        other(
            &["build-confine-refused"],
            "1",
            "the kernel refuses to confine a build",
        ),
        own(Code::BuildUnconfirmed, "4"),
        other(
            &["source-missing"],
            "1",
            "the `source` of a `[[build]]` is not there, or a link leads to it",
        ),
        other(
            &["build-tool-missing"],
            "1",
            "a tool of the driver's language is not installed",
        ),
        other(
            &["build-tool-unusable"],
            "1",
            "a tool of the driver's language can't be started",
        ),
        other(
            &["component-wrap-failed"],
            "1",
            "no component can be made of a core module",
        ),
        other(
            &["component-features"],
            "1",
            "a component uses proposals of WebAssembly that no host runs",
        ),
        other(
            &["component-missing"],
            "1",
            "a build made no component, or a driver's component is missing",
        ),
        other(
            &["component-world"],
            "1 or 3",
            "a component exports no known world",
        ),
        other(
            &["component-too-large", "component-too-complex"],
            "1 or 3",
            "a component is larger or more deeply nested, or makes more instances, than allowed",
        ),
        other(
            &["component-type-unsupported", "component-type-too-large"],
            "1 or 3",
            "a function of a component is to be called that has a type no call can pass, or too large a type",
        ),
        other(
            &["import-nothing-offered"],
            "1",
            "what is to be imported has no function or entry that can be called",
        ),
        other(
            &["import-name-taken", "import-name-unusable"],
            "none: it is in `left_out` of `import`",
            "no tool is made of a function: another one has its id, or its name makes none",
        ),
        other(
            &["import-invalid"],
            "1",
            "what was made of a component or definition is not valid: a flag declares what can't be, or a schema is too costly",
        ),
        own(Code::EntryMissing, "2"),
        other(
            &["scaffold-entry-invalid"],
            "1",
            "an entry of a new tools.json is not valid, or would be denied when the bundle is loaded",
        ),
        own(Code::ImportTooMany, "2"),
        other(
            &["runloop-caps-invalid", "runloop-text-hidden"],
            "1",
            "a policy.caps that can't be read, or a tools.json or schema with invisible characters",
        ),
        other(
            &["import-definition-invalid"],
            "1",
            "a definition to be imported breaks rules of its own format; the findings come first",
        ),
        other(
            &["aml-draft", "aml-disabled", "aml-spec-version-refused"],
            "1 where no tool is made; else none: it is in `left_out` of `import`",
            "a definition of AML that is not in use, or of a version that is not approved",
        ),
        other(
            &[
                "aml-url-insecure",
                "aml-request-unusable",
                "aml-text-hidden",
            ],
            "1 where no tool is made; else none: it is in `left_out` of `import`",
            "a definition of AML whose request can't be made safely (not https, a place that is not said, a placeholder \
             that is none), or whose schema has invisible characters",
        ),
        other(
            &[
                "aml-function-without-driver",
                "aml-human-without-driver",
                "aml-lambda-unsupported",
                "aml-mcp-unsupported",
                "aml-message-queue-unsupported",
                "aml-database-unsupported",
                "aml-grpc-unsupported",
                "aml-iam-role-unsupported",
                "aml-oauth2-unsupported",
            ],
            "none: it is in `remarks` of `import`",
            "a definition of AML became a contract only: this host has nothing that carries it out",
        ),
        other(
            &[
                "aml-deprecated",
                "aml-human-asked-here",
                "aml-reads-by-change",
                "aml-one-attempt",
                "aml-inputs-in-query",
                "aml-header-assumed",
                "aml-status-ignored",
                "aml-description-cut",
            ],
            "none: it is in `remarks` of `import`",
            "what a tool takes over from its definition of AML in another way, or not",
        ),
        own(Code::ImportSpecFailed, "1"),
        other(
            &["component-is-module"],
            "1 or 3",
            "a core WebAssembly module stands where a component should",
        ),
        other(
            &["component-malformed"],
            "1 or 3",
            "a file is not WebAssembly",
        ),
        other(
            &["bundle-toml-missing"],
            "1",
            "the directory has no `bundle.toml`",
        ),
        other(
            &["created-missing"],
            "1",
            "neither `bundle.toml` nor `SOURCE_DATE_EPOCH` says when the bundle was made",
        ),
        other(
            &["file-not-regular"],
            "1",
            "a link, device or pipe lies among a bundle's files",
        ),
        other(&["file-name"], "1", "a file's name can't be in a bundle"),
        other(
            &["folder-twice"],
            "1",
            "a directory has a folder with and without a dot, such as `tools` and `.tools`",
        ),
        other(
            &["bundle-too-large"],
            "1",
            "a directory holds more than a bundle may",
        ),
        other(&["not-a-bundle"], "3", "what was named is not a bundle"),
        own(OperatorCode::DuplicateId, "1 or 3"),
        other(
            &["prefix-not-granted"],
            "3",
            "a contract, driver or action has an id that its publisher may not publish",
        ),
        other(
            &["role-mismatch"],
            "3",
            "the manifest gives a file another role than its name does",
        ),
    ]
}

pub(super) fn page() -> String {
    let mut page =
        format!("{GENERATED}{INTRODUCTION}\n| code | exit | what is wrong |\n|---|---|---|\n");
    for row in rows() {
        // Writing to a String can't fail.
        let _ = writeln!(
            page,
            "| `{}` | {} | {} |",
            row.codes.join("`, `"),
            row.exit,
            row.meaning
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_row() {
        let rows: Vec<_> = rows().into_iter().flat_map(|row| row.codes).collect();
        let own = Code::ALL.iter().map(|code| code.code());
        let operator = OperatorCode::ALL.iter().map(|code| code.code());
        for code in own.chain(operator) {
            let found = rows.iter().filter(|row| **row == code).count();
            assert_eq!(found, 1, "{code}");
        }
    }
}
