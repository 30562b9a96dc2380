//! The command's own codes, one table. Those of what it calls are in the tables of the
//! crates that give them.

use toolward_support::report::codes;

codes! {
    /// Why the command did not do what it was asked to.
    pub(crate) enum Code {
        UsageInvalid = "usage-invalid", "with `--json`: the command line is not understood; `mcp config`: the flags after `--` are not those of `serve`";
        FlagRefused = "flag-refused",
            "`mcp config --write` was given a flag or an address that is not written into a client's file; `serve --metrics` the file of clients' tokens";
        ChangeUnconfirmed = "change-unconfirmed",
            "a lasting change of a file was not confirmed on a terminal, after the difference was shown";
        FingerprintUnconfirmed = "fingerprint-unconfirmed",
            "`trust add` of a document without `--fingerprint` and without confirmation on a terminal, or of a bare key whose fingerprint was not typed there";
        FingerprintMismatch = "fingerprint-mismatch",
            "a document or a bare key has another fingerprint than the one given";
        FreshnessUnanswered = "freshness-unanswered",
            "`trust add` asked how old a publisher's releases may be, and got no answer";
        DocumentUnknown = "document-unknown",
            "a file is not one of a publisher's signed documents, or not the requested one";
        BundleOther = "bundle-other", "`check --against` was given another bundle than the one that is checked";
        NotExplained = "code-unknown", "`check --explain` was given a code that no table has";
        PolicyMissing = "policy-missing", "no file was named, and this user has no configuration directory";
        BundleUnsigned = "bundle-unsigned",
            "a bundle under work was named where a signed one is expected; `--dev` runs it";
        KeyMissing = "key-missing",
            "an archive was to be packed without a key, or a publisher document has no key with this id";
        KeyEncrypted = "key-encrypted", "a key that is encrypted already was to be encrypted";
        PassphraseMissing = "passphrase-missing",
            "a passphrase is needed, and no terminal can ask for it";
        PassphraseEmpty = "passphrase-empty", "the first line of the passphrase file is empty";
        SourceDateEpochInvalid = "source-date-epoch-invalid",
            "`SOURCE_DATE_EPOCH` is not a number of seconds";
        OutputUnwritable = "output-unwritable", "standard output can't be written to";
        EngineUnavailable = "engine-unavailable",
            "the WebAssembly engine can't be made, for instance for lack of address space";
        BrokerUnavailable = "broker-unavailable", "the compile broker can't be started";
        ExecBrokerUnavailable = "exec-broker-unavailable", "the broker that runs programs can't be started";
        AddressUnusable = "address-unusable",
            "`serve --http` can't listen there: it is not an address of this machine, or its port is taken";
        ListenerUnusable = "listener-unusable",
            "`LISTEN_FDS` did not hand over exactly one TCP socket that listens where `serve --http` says";
        ProgramUnknown = "program-unknown", "`mcp config` can't find out where this program is";
        BuildUnconfirmed = "build-unconfirmed",
            "a directory is to be built for the first time, which starts programs on its sources, and this was not confirmed";
        InstallUnconfirmed = "toolchain-unconfirmed",
            "`doctor --install` would fetch tools, and this was not confirmed on a terminal";
        EntryMissing = "entry-missing", "a new tools.json needs an entry, and nobody described one";
        ImportTooMany = "import-too-many", "a bundle can't be made of so many definitions";
        ImportSpecFailed = "import-spec-failed", "a tool of Amplifier gave no description of itself";
        LedgerMissing = "ledger-missing", "there is no ledger where one was to be looked at";
        DeletionUnconfirmed = "deletion-unconfirmed",
            "`ledger prune` or `erase` without `--yes`, and without confirmation on a terminal";
        RerunUnconfirmed = "rerun-unconfirmed",
            "`ledger replay --rerun` of many calls, or of one that may change something, was not confirmed";
        NothingToTest = "nothing-to-test", "no contract with examples has a driver here";
    }
}
