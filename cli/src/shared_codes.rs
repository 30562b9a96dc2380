//! The codes of other libraries' errors that the command prints, and what they mean. Their errors have fields and
//! words of their own, so that their tables have no meanings. `check --explain` and the book's page on the errors of
//! the command are made of this.

use toolward_support::report::Severity;

/// Codes with one meaning.
pub(crate) struct Shared {
    /// The codes.
    pub(crate) codes: &'static [&'static str],
    /// The command's exit codes, in words where they differ by command.
    pub(crate) exit: &'static str,
    /// The severity of what has one of the codes.
    pub(crate) severity: Severity,
    /// What is wrong, in Markdown.
    pub(crate) meaning: &'static str,
}

/// Each code once, by subject.
pub(crate) const SHARED: &[Shared] = &[
    Shared {
        codes: &["workspace-refused"],
        exit: "2",
        severity: Severity::Error,
        meaning: "a workspace's directory lies in a protected place, or in another workspace",
    },
    Shared {
        codes: &[
            "workspace-missing",
            "workspace-not-a-directory",
            "workspace-unreadable",
            "workspace-unmapped",
            "workspace-ambiguous",
        ],
        exit: "4",
        severity: Severity::Error,
        meaning: "why a tool that needs this workspace is blocked: its directory is missing, not a directory, unreadable, not in the policy, or there twice",
    },
    Shared {
        codes: &["recorder-failed"],
        exit: "1",
        severity: Severity::Error,
        meaning: "the process that records calls has ended, or can't use the ledger; `serve` ends then",
    },
    Shared {
        codes: &["input-not-object"],
        exit: "2",
        severity: Severity::Error,
        meaning: "`--set` was used on an input that is not an object",
    },
    Shared {
        codes: &["cache-unusable"],
        exit: "1",
        severity: Severity::Error,
        meaning: "the cache directory can't be used safely",
    },
    Shared {
        codes: &["store-corrupt", "store-version", "store-io"],
        exit: "1",
        severity: Severity::Error,
        meaning: "the store of bundles is damaged, another version's, or can't be read or written",
    },
    Shared {
        codes: &["store-busy"],
        exit: "1",
        severity: Severity::Error,
        meaning: "other processes held the store of bundles for too long",
    },
    Shared {
        codes: &["store-read-only"],
        exit: "1",
        severity: Severity::Error,
        meaning: "the store's disk or directory is read-only",
    },
    Shared {
        codes: &["store-log-unreadable"],
        exit: "1",
        severity: Severity::Error,
        meaning: "the store's latest changes, revocations among them, are in a log that can't be read on a full or read-only disk",
    },
    Shared {
        codes: &["disk-full"],
        exit: "1",
        severity: Severity::Error,
        meaning: "no room for a bundle; the old release stays",
    },
    Shared {
        codes: &["not-installed"],
        exit: "1",
        severity: Severity::Error,
        meaning: "no bundle of this id is installed",
    },
    Shared {
        codes: &["not-held"],
        exit: "1",
        severity: Severity::Error,
        meaning: "no update of this bundle waits to be accepted",
    },
    Shared {
        codes: &["surface-mismatch"],
        exit: "3",
        severity: Severity::Error,
        meaning: "the held update has another surface than the one accepted",
    },
    Shared {
        codes: &["object-missing", "object-changed"],
        exit: "3",
        severity: Severity::Error,
        meaning: "the file of an installed bundle is gone, or holds another bundle",
    },
    Shared {
        codes: &["actions-changed"],
        exit: "3",
        severity: Severity::Error,
        meaning: "an action that an installed bundle takes from a library demands something else than when the bundle was accepted",
    },
    Shared {
        codes: &["publisher-changed"],
        exit: "3",
        severity: Severity::Error,
        meaning: "the keys of an installed bundle belong to another publisher now",
    },
    Shared {
        codes: &[
            "exec-unopened",
            "exec-unsafe",
            "exec-digest",
            "exec-interpreter",
            "exec-workspace",
            "exec-secret",
            "exec-unconfined",
            "exec-unstarted",
        ],
        exit: "4",
        severity: Severity::Error,
        meaning: "why the program of a tool was not run, as `rule` of the error: its file can't be opened without links, others may \
             write to it, it has another digest, another interpreter, no directory, a secret has no value, this kernel can't \
             confine it, or it could not be started; `doctor` says more",
    },
    Shared {
        codes: &["exec-broker-missing", "exec-line-new"],
        exit: "4",
        severity: Severity::Error,
        meaning: "the host has no broker that runs programs, or was started before the `[[exec]]` was written",
    },
    Shared {
        codes: &["confine-threads", "confine-path", "confine-refused"],
        exit: "1",
        severity: Severity::Error,
        meaning: "the process can't be confined; `--no-confine` runs drivers without",
    },
    Shared {
        codes: &["mcp-name-taken"],
        exit: "–",
        severity: Severity::Warning,
        meaning: "every name that a tool could have over MCP is taken, and it is left out",
    },
    Shared {
        codes: &["mcp-name-outside"],
        exit: "–",
        severity: Severity::Warning,
        meaning: "the name that a tool asks for over MCP lies outside its publisher's prefixes, and it is shown by its id",
    },
    Shared {
        codes: &["denials-unusable", "denials-unsafe"],
        exit: "–",
        severity: Severity::Warning,
        meaning: "denials can't be kept in the state directory, or others could read them there; they are forgotten when the server ends",
    },
    Shared {
        codes: &["document-clash"],
        exit: "2",
        severity: Severity::Error,
        meaning: "two prompts or resources would have one name or URI",
    },
    Shared {
        codes: &["stdio-unusable", "stdio-opening", "stdio-failed"],
        exit: "1",
        severity: Severity::Error,
        meaning: "standard input or output can't be used; the client's first message does not initialize; the connection failed",
    },
    Shared {
        codes: &["http-listener"],
        exit: "1",
        severity: Severity::Error,
        meaning: "the listening socket can't be used",
    },
    Shared {
        codes: &["http-open-address"],
        exit: "2",
        severity: Severity::Error,
        meaning: "`--no-token` on an address that other machines reach",
    },
    Shared {
        codes: &["http-open-origin"],
        exit: "2",
        severity: Severity::Error,
        meaning: "an `--allow-origin` that can be any page, with `--no-token`",
    },
    Shared {
        codes: &["http-no-hosts"],
        exit: "2",
        severity: Severity::Error,
        meaning: "clients can't name this address, and no `--allow-host` was given",
    },
    Shared {
        codes: &["http-name-invalid"],
        exit: "2",
        severity: Severity::Error,
        meaning: "an `--allow-host` or `--allow-origin` is invalid",
    },
    Shared {
        codes: &[
            "token-file-unusable",
            "token-file-unsafe",
            "token-file-invalid",
        ],
        exit: "2",
        severity: Severity::Error,
        meaning: "the file of tokens can't be read or written, others may read or change it, or it is invalid",
    },
    Shared {
        codes: &["token-invalid"],
        exit: "2",
        severity: Severity::Error,
        meaning: "`mcp token` got an invalid name or tool",
    },
    Shared {
        codes: &["token-known"],
        exit: "2",
        severity: Severity::Error,
        meaning: "the file of tokens has an entry of this name already",
    },
    Shared {
        codes: &["random-unavailable"],
        exit: "1",
        severity: Severity::Error,
        meaning: "the system gives no random bytes for a token",
    },
    Shared {
        codes: &["confine-incomplete"],
        exit: "1",
        severity: Severity::Error,
        meaning: "the kernel supports only a part of the confinement, and an embedder requires all",
    },
    Shared {
        codes: &["nothing-to-build"],
        exit: "1",
        severity: Severity::Error,
        meaning: "`bundle.toml` has no `[[build]]`",
    },
    Shared {
        codes: &["crate-missing"],
        exit: "1",
        severity: Severity::Error,
        meaning: "a `[[build]]` names a directory without Cargo.toml",
    },
    Shared {
        codes: &["toolchain-unplaced"],
        exit: "1",
        severity: Severity::Error,
        meaning: "`doctor --install` has no directory to install into: none was named, and this user has no data directory",
    },
    Shared {
        codes: &["toolchain-busy"],
        exit: "1",
        severity: Severity::Error,
        meaning: "another process installs into the toolchain directory",
    },
    Shared {
        codes: &["toolchain-install-failed"],
        exit: "1",
        severity: Severity::Error,
        meaning: "npm or pip failed to fetch a tool, or its digest is not the expected one",
    },
    Shared {
        codes: &["cargo-unusable"],
        exit: "1",
        severity: Severity::Error,
        meaning: "the guest toolchain's Cargo can't be started",
    },
    Shared {
        codes: &["guest-std-needed"],
        exit: "1",
        severity: Severity::Error,
        meaning: "the driver or one of its dependencies uses `std`, and `toolward-guest` was built without its feature `std`",
    },
    Shared {
        codes: &["guest-target-missing"],
        exit: "1",
        severity: Severity::Error,
        meaning: "its compiler lacks the target `wasm32-wasip2`",
    },
    Shared {
        codes: &["build-failed"],
        exit: "1",
        severity: Severity::Error,
        meaning: "a driver doesn't compile",
    },
    Shared {
        codes: &["build-confine-refused"],
        exit: "1",
        severity: Severity::Error,
        meaning: "the kernel refuses to confine a build",
    },
    Shared {
        codes: &["source-missing"],
        exit: "1",
        severity: Severity::Error,
        meaning: "the `source` of a `[[build]]` is not there, or a link leads to it",
    },
    Shared {
        codes: &["build-tool-missing"],
        exit: "1",
        severity: Severity::Error,
        meaning: "a tool of the driver's language is not installed",
    },
    Shared {
        codes: &["build-tool-unusable"],
        exit: "1",
        severity: Severity::Error,
        meaning: "a tool of the driver's language can't be started",
    },
    Shared {
        codes: &["snapshot-failed"],
        exit: "1",
        severity: Severity::Error,
        meaning: "a driver's start can't run when it is built",
    },
    Shared {
        codes: &["component-wrap-failed"],
        exit: "1",
        severity: Severity::Error,
        meaning: "no component can be made of a core module",
    },
    Shared {
        codes: &["component-features"],
        exit: "1",
        severity: Severity::Error,
        meaning: "a component uses proposals of WebAssembly that this host does not run",
    },
    Shared {
        codes: &["component-async"],
        exit: "1 or 3",
        severity: Severity::Error,
        meaning: "a component has async functions, streams or futures, which this version does not run yet",
    },
    Shared {
        codes: &["import-network-unused", "import-database-undeclared"],
        exit: "none: it is in `remarks` of `import`",
        severity: Severity::Note,
        meaning: "a component imports HTTP and no host was named, so that each request is refused; or it imports buckets, \
                  and is refused until a contract declares one",
    },
    Shared {
        codes: &["import-toolchain-function"],
        exit: "none: it is in `left_out` of `import`",
        severity: Severity::Note,
        meaning: "no tool is made of a function that a toolchain exports for itself",
    },
    Shared {
        codes: &["component-missing"],
        exit: "1",
        severity: Severity::Error,
        meaning: "a build made no component, or a driver's component is missing",
    },
    Shared {
        codes: &["component-world"],
        exit: "1 or 3",
        severity: Severity::Error,
        meaning: "a component exports no known world",
    },
    Shared {
        codes: &["component-too-large", "component-too-complex"],
        exit: "1 or 3",
        severity: Severity::Error,
        meaning: "a component is larger or more deeply nested, or makes more instances, than allowed",
    },
    Shared {
        codes: &["component-type-unsupported", "component-type-too-large"],
        exit: "1 or 3",
        severity: Severity::Error,
        meaning: "a function of a component is to be called that has a type no call can pass, or too large a type",
    },
    Shared {
        codes: &["import-nothing-offered"],
        exit: "1",
        severity: Severity::Error,
        meaning: "what is to be imported has no function or entry that can be called",
    },
    Shared {
        codes: &["import-name-taken", "import-name-unusable"],
        exit: "none: it is in `left_out` of `import`",
        severity: Severity::Warning,
        meaning: "no tool is made of a function: another one has its id, or its name makes none",
    },
    Shared {
        codes: &["import-invalid"],
        exit: "1",
        severity: Severity::Error,
        meaning: "what was made of a component or definition is not valid: a flag declares what can't be, or a schema is too costly",
    },
    Shared {
        codes: &["scaffold-entry-invalid"],
        exit: "1",
        severity: Severity::Error,
        meaning: "an entry of a new tools.json is not valid, or would be denied when the bundle is loaded",
    },
    Shared {
        codes: &["runloop-caps-invalid", "runloop-text-hidden"],
        exit: "1",
        severity: Severity::Error,
        meaning: "a policy.caps that can't be read, or a tools.json or schema with invisible characters",
    },
    Shared {
        codes: &["import-definition-invalid"],
        exit: "1",
        severity: Severity::Error,
        meaning: "a definition to be imported breaks rules of its own format; the findings come first",
    },
    Shared {
        codes: &["aml-draft", "aml-disabled", "aml-spec-version-refused"],
        exit: "1 where no tool is made; else none: it is in `left_out` of `import`",
        severity: Severity::Error,
        meaning: "a definition of AML that is not in use, or of a version that is not approved",
    },
    Shared {
        codes: &[
            "aml-url-insecure",
            "aml-request-unusable",
            "aml-text-hidden",
        ],
        exit: "1 where no tool is made; else none: it is in `left_out` of `import`",
        severity: Severity::Error,
        meaning: "a definition of AML whose request can't be made safely (not https, a place that is not said, a placeholder \
             that is none), or whose schema has invisible characters",
    },
    Shared {
        codes: &[
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
        exit: "none: it is in `remarks` of `import`",
        severity: Severity::Note,
        meaning: "a definition of AML became a contract only: this host has nothing that carries it out",
    },
    Shared {
        codes: &[
            "aml-deprecated",
            "aml-human-asked-here",
            "aml-reads-by-change",
            "aml-one-attempt",
            "aml-inputs-in-query",
            "aml-header-assumed",
            "aml-status-ignored",
            "aml-description-cut",
        ],
        exit: "none: it is in `remarks` of `import`",
        severity: Severity::Note,
        meaning: "what a tool takes over from its definition of AML in another way, or not",
    },
    Shared {
        codes: &["component-is-module"],
        exit: "1 or 3",
        severity: Severity::Error,
        meaning: "a core WebAssembly module stands where a component should",
    },
    Shared {
        codes: &["component-malformed"],
        exit: "1 or 3",
        severity: Severity::Error,
        meaning: "a file is not WebAssembly",
    },
    Shared {
        codes: &["bundle-toml-missing"],
        exit: "1",
        severity: Severity::Error,
        meaning: "the directory has no `bundle.toml`",
    },
    Shared {
        codes: &["created-missing"],
        exit: "1",
        severity: Severity::Error,
        meaning: "neither `bundle.toml` nor `SOURCE_DATE_EPOCH` says when the bundle was made",
    },
    Shared {
        codes: &["file-not-regular"],
        exit: "1",
        severity: Severity::Error,
        meaning: "a link, device or pipe lies among a bundle's files",
    },
    Shared {
        codes: &["file-name"],
        exit: "1",
        severity: Severity::Error,
        meaning: "a file's name can't be in a bundle",
    },
    Shared {
        codes: &["folder-twice"],
        exit: "1",
        severity: Severity::Error,
        meaning: "a directory has a folder with and without a dot, such as `tools` and `.tools`",
    },
    Shared {
        codes: &["document-too-large"],
        exit: "1",
        severity: Severity::Error,
        meaning: "a document of a bundle is larger than its reader takes",
    },
    Shared {
        codes: &["bundle-too-large"],
        exit: "1",
        severity: Severity::Error,
        meaning: "a directory holds more than a bundle may",
    },
    Shared {
        codes: &["not-a-bundle"],
        exit: "3",
        severity: Severity::Error,
        meaning: "what was named is not a bundle",
    },
    Shared {
        codes: &["prefix-not-granted"],
        exit: "3",
        severity: Severity::Error,
        meaning: "a contract, driver or action has an id that its publisher may not publish",
    },
    Shared {
        codes: &["role-mismatch"],
        exit: "3",
        severity: Severity::Error,
        meaning: "the manifest gives a file another role than its name does",
    },
];

/// Codes of a call whose driver is a component of another world: `importing.md` lists them.
pub(crate) const OTHER_WORLDS: &[Shared] = &[
    Shared {
        codes: &["wit:error"],
        exit: "1",
        severity: Severity::Error,
        meaning: "the function of a component returned `err`; a text is the message, anything else the cause",
    },
    Shared {
        codes: &["component:input"],
        exit: "1",
        severity: Severity::Error,
        meaning: "the contract let an input through that is no value of the parameter's type",
    },
    Shared {
        codes: &["component:not-utf8"],
        exit: "1",
        severity: Severity::Error,
        meaning: "with `bytes: utf8`, the result has bytes that are not UTF-8",
    },
    Shared {
        codes: &["component:result"],
        exit: "1",
        severity: Severity::Error,
        meaning: "what the component returned is no result of Amplifier",
    },
    Shared {
        codes: &["amplifier:failed", "amplifier:error"],
        exit: "1",
        severity: Severity::Error,
        meaning: "the tool returned `success: false` without a type, or its `execute` returned an error",
    },
];
