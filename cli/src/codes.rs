//! The command's own codes, and the list of all tables with codes that the command can print.
//! `check --explain` and the book's page on the errors of the command are made from them.

use toolward_contract::driver::{ExtractError, RenderErrorKind};
use toolward_egress::{LimitKind, NetworkKind, Rule, SecretProblem, Stage};
use toolward_support::report::{Code as Row, codes};

codes! {
    /// Why the command did not do what it was asked to.
    pub(crate) enum Code {
        UsageInvalid = "usage-invalid" ["2"], "with `--json`: the command line is not understood; `mcp config`: the flags after `--` are not flags of `serve`";
        FlagRefused = "flag-refused" ["2"],
            "`mcp config --write` was given a flag or an address that it does not write into a client's file; or `serve --metrics` was given the file of the clients' tokens";
        ChangeUnconfirmed = "change-unconfirmed" ["4"],
            "a lasting change of a file was not confirmed on a terminal, after the difference was shown";
        FingerprintUnconfirmed = "fingerprint-unconfirmed" ["3"],
            "`trust add` of a document without `--fingerprint` and without confirmation on a terminal, or of a bare key whose fingerprint was not typed on a terminal";
        FingerprintMismatch = "fingerprint-mismatch" ["3"],
            "a document or a bare key has another fingerprint than the one given";
        FreshnessUnanswered = "freshness-unanswered" ["2"],
            "`trust add` asked how old a publisher's releases may be, and got no answer";
        DocumentUnknown = "document-unknown" ["1 or 2"],
            "a file is not one of a publisher's signed documents, or not the requested one";
        BundleOther = "bundle-other" ["2"], "`check --against` was given another bundle than the one that is checked";
        NotExplained = "code-unknown" ["2"], "`check --explain` was given a code that no table has";
        PolicyMissing = "policy-missing" ["2"], "no file was named, and this user has no configuration directory";
        BundleUnsigned = "bundle-unsigned" ["2"],
            "a bundle under work was named where a signed one is expected; `--dev` runs it";
        KeyMissing = "key-missing" ["2"],
            "an archive was to be packed without a key, or a publisher document has no key with this id";
        KeyEncrypted = "key-encrypted" ["2"], "a key was to be encrypted, but it is encrypted already";
        PassphraseMissing = "passphrase-missing" ["2"],
            "a passphrase is needed, and no terminal can ask for it";
        PassphraseEmpty = "passphrase-empty" ["2"], "the first line of the passphrase file is empty";
        SourceDateEpochInvalid = "source-date-epoch-invalid" ["2"],
            "`SOURCE_DATE_EPOCH` is not a number of seconds";
        OutputUnwritable = "output-unwritable", "standard output can't be written to";
        EngineUnavailable = "engine-unavailable",
            "the WebAssembly engine can't be made, for instance for lack of address space";
        BrokerUnavailable = "broker-unavailable", "the compile broker can't be started";
        ExecBrokerUnavailable = "exec-broker-unavailable", "the broker that runs programs can't be started";
        AddressUnusable = "address-unusable" ["2"],
            "`serve --http` can't listen there: it is not an address of this machine, or its port is taken";
        ListenerUnusable = "listener-unusable" ["2"],
            "`LISTEN_FDS` did not hand over exactly one TCP socket that listens on the address of `serve --http`";
        ProgramUnknown = "program-unknown", "`mcp config` can't find out where this program is";
        BuildUnconfirmed = "build-unconfirmed" ["4"],
            "the first build of a directory was not confirmed; a build starts programs on the directory's sources";
        EntryMissing = "entry-missing" ["2"], "a new tools.json needs an entry, and none was described";
        ImportTooMany = "import-too-many" ["2"], "a bundle can't be made of so many definitions";
        ImportSpecFailed = "import-spec-failed", "a tool of Amplifier gave no description of itself";
        LedgerMissing = "ledger-missing", "the ledger that was to be read does not exist";
        DeletionUnconfirmed = "deletion-unconfirmed" ["4"],
            "`ledger prune` or `erase` without `--yes`, and without confirmation on a terminal";
        NothingToTest = "nothing-to-test", "no contract with examples has a driver here";
    }
}

/// The page of the book on the errors of the command.
pub(crate) const COMMAND_ERRORS: &str = "command-errors.md";

/// Tables, each with the page of the book that lists its codes. A row without a meaning has the
/// meaning of the same code in another table.
pub(crate) const TABLES: &[(&str, &[&[Row]])] = &[
    ("reference/diagnostics.md", toolward_contract::TABLES),
    (
        "reference/diagnostics.md",
        &[
            toolward_bundle::codes::CODES,
            #[cfg(feature = "adapters")]
            toolward_adapters::aml::CODES,
        ],
    ),
    ("policy-errors.md", &[toolward_policy::CODES]),
    (
        "reference/refusals.md",
        &[toolward_signing::ErrorKind::CODES],
    ),
    (
        "formats/registry.md",
        &[toolward_registry::FailureReason::CODES],
    ),
    ("results.md", &[toolward_host::ErrorCode::CODES]),
    (
        "importing.md",
        &[
            toolward_host::WorldErrorCode::CODES,
            #[cfg(feature = "adapters")]
            toolward_adapters::amplifier::AmplifierCode::CODES,
        ],
    ),
    (
        COMMAND_ERRORS,
        &[
            toolward_operator::Code::CODES,
            Code::CODES,
            toolward_store::Error::CODES,
            toolward_state::Error::CODES,
            toolward_ledger::Error::CODES,
            toolward_ledger::cassette::CassetteError::CODES,
            toolward_bundle::ContentError::CODES,
            toolward_bundle::ReadError::CODES,
            toolward_bundle::files::FilesError::CODES,
            toolward_bundle::arguments::ArgumentError::CODES,
            toolward_bundle::component::SurfaceError::CODES,
            toolward_bundle::component::WithheldFunction::CODES,
            toolward_author::AuthorError::CODES,
            toolward_author::build::BuildError::CODES,
            toolward_author::build::BuildReason::CODES,
            toolward_author::scaffold::ScaffoldError::CODES,
            toolward_host::HostError::CODES,
            toolward_host::confine::ConfineError::CODES,
            toolward_mcp::NameProblem::CODES,
            toolward_mcp::DocumentsError::CODES,
            toolward_host::DenialsError::CODES,
            toolward_mcp::stdio::StdioError::CODES,
            toolward_mcp::http::HttpError::CODES,
        ],
    ),
    (COMMAND_ERRORS, toolward_host::BLOCKED_TABLES),
    #[cfg(feature = "adapters")]
    (COMMAND_ERRORS, toolward_adapters::import::TABLES),
    #[cfg(feature = "programs")]
    (
        COMMAND_ERRORS,
        &[
            toolward_programs::StartError::CODES,
            toolward_programs::ExecProblem::CODES,
        ],
    ),
    (
        "reference/outgoing-requests.md",
        &[
            Rule::CODES,
            LimitKind::CODES,
            Stage::CODES,
            NetworkKind::CODES,
            SecretProblem::CODES,
            toolward_egress::RulesError::CODES,
            RenderErrorKind::CODES,
            ExtractError::CODES,
        ],
    ),
    ("confinement.md", &[toolward_host::CompileReason::CODES]),
    ("serve-http.md", toolward_mcp::http::REJECTIONS),
    ("serve-messages.md", &[toolward_mcp::MESSAGE_CODES]),
];

/// All rows, in the order of the tables.
pub(crate) fn rows() -> impl Iterator<Item = &'static Row> {
    let tables = TABLES.iter().flat_map(|(_, tables)| *tables);
    tables.flat_map(|table| table.iter())
}
