//! The error codes of this crate. The book's page on the command's errors takes their
//! meanings from this table.

use toolward_report::codes;

codes! {
    /// The code of an [`Error`](super::Error) of this crate.
    pub enum Code {
        NobodyTrusted = "nobody-trusted",
            "no publisher is trusted: no `--trust-key`, no `toolward.toml`, nothing from `toolward trust add`";
        PublisherKnown = "publisher-known",
            "`trust add` of a publisher or a key that is trusted already; `trust update` takes a publisher's next document";
        PublisherUnknown = "publisher-unknown", "no publisher of this name is trusted by `toolward trust`";
        PublisherBare = "publisher-bare",
            "`trust update` of a publisher that is trusted by a bare key, which has no documents and no revocations";
        KeyMisplaced = "key-misplaced",
            "`trust add` of a bare key that lies in or beside a bundle, or that would be fetched";
        PrefixTaken = "prefix-taken",
            "`trust add` of a bare key for a prefix that is inside, equal to or around another publisher's, without `--takes-from`; or `--takes-from` names another one";
        TrustInvalid = "trust-invalid", "a folder below `trust/` was changed by hand and is no longer valid";
        TrustUnusable = "trust-unusable",
            "something below `trust/` belongs to another user, or others may write to it";
        TrustBusy = "trust-busy", "another process held `trust/` for too long";
        ChannelUnknown = "channel-unknown", "no `[[channel]]` of this name is in `toolward.toml`";
        ChannelAmbiguous = "channel-ambiguous",
            "several channels are configured, and none was named for a bundle from elsewhere";
        ReleaseMissing = "release-missing",
            "no tag of the repository that a bundle came from leads to a release of it";
        SourceMoves = "source-moves",
            "`install` of a bundle that is installed from somewhere else, without `--move-source`";
        SourceInvalid = "source-invalid", "a source is not a file, `https://…` or `oci://…`";
        CaFileInvalid = "ca-file-invalid", "the policy's `ca_file` holds no certificates in PEM";
        ConfineSettingInvalid = "confine-setting-invalid",
            "[`[confine]`](confinement.md#system-calls) of `toolward.toml` has an unknown value, or stands in a file of `--policy`";
        ClientSettingInvalid = "client-setting-invalid",
            "[`[clients]`](serve.md#questions-and-approvals) of `toolward.toml` has an unknown key or value, or stands in a file of `--policy`";
        LedgerSettingInvalid = "ledger-setting-invalid",
            "[`[ledger]`](policy.md#ledger) of `toolward.toml` has an unknown key or value, or stands in a file of `--policy`";
        RegistrySettingInvalid = "registry-setting-invalid",
            "[`[[registry]]`](registries.md) of `toolward.toml` has an unknown key or value, or stands in a file of `--policy`";
        RegistryPasswordMissing = "registry-password-missing",
            "the variable or file that `password` of [`[[registry]]`](registries.md) names can't be read";
        LedgerPlaceless = "ledger-placeless",
            "there is no place for the record of calls: no `directory` in `[ledger]`, and no home directory";
        CassettePrincipals = "cassette-unnamed",
            "the principals of a cassette have no names in this installation's ledger, or the local user is not one of them";
        RecorderUnavailable = "recorder-unavailable", "the process that records calls can't be started";
        SettingInvalid = "setting-invalid",
            "a `--set` is not `KEY=VALUE`, or its value does not match the contract; another flag's value is wrong";
        BundleMissing = "bundle-missing", "no bundle was named, and none is installed";
        ToolMissing = "tool-missing", "no bundle, named or installed, has this tool";
        DriverUnknown = "driver-unknown",
            "`policy suggest --driver` names a driver that implements none of the tools";
        DuplicateId = "duplicate-id",
            "two bundles bring the same tool or driver; 3 where one of them was to be installed";
        DevClash = "dev-clash",
            "a directory under work has an id of a bundle that is named beside it, or one that only that bundle's publisher may publish";
        FileUnreadable = "file-unreadable", "a file can't be read";
        WriteFailed = "write-failed", "a file can't be written";
        OutputExists = "output-exists",
            "the output exists already; an archive replaces only a bundle of its id";
        GrantRefused = "grant-refused",
            "`call --grant` is not `network:HOST` or `workspace:/PATH=DIRECTORY`, or has a `*` or an address";
        GrantImpossible = "grant-impossible",
            "`policy grant`: no line of a policy lets the tool run, or run without asking a person";
        ChoiceOpen = "choice-open",
            "`policy grant`: a line needs a directory, the source of a secret, or a host that nothing chose";
        FileUnfit = "file-unfit",
            "a file of the user is not changed: it is a link, not a regular file, has several names, or others may change it";
        FileChanged = "file-changed", "a file was changed by another program while its difference was shown";
        ClientFileInvalid = "client-file-invalid",
            "`mcp config --write` can't add the entry to a client's file with the rest of it as it is; it prints the entry";
        EntryForeign = "entry-foreign",
            "a client's file has an entry of this name that `mcp config --write` did not write";
        UnwritableValue = "unwritable-value", "a name can't be written into a TOML file";
        StoreUnusable = "store-unusable",
            "the key-value store or [the store of bundles](store.md) can't be used safely (owner, mode, or not a regular file), or has no place";
        RuntimeUnavailable = "runtime-unavailable", "the async runtime can't be started";
        ReloadWider = "reload-wider",
            "at SIGHUP: the new policy may grant more than the current one, which stays";
        ReloadTrust = "reload-trust",
            "at SIGHUP: more than the policy has changed; the current configuration stays";
        DemoExists = "demo-exists", "`demo` finds the directory of an earlier demo";
        DemoUnknown = "demo-unknown",
            "`demo --remove` finds no list of what the demo made, or one that the demo did not write";
        WatchEnded = "watch-ended",
            "an internal fault stopped the scan for changes and revocations; nothing is served without it";
    }
}
