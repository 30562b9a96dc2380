//! The error of this crate: a stable code, what happened, and the next step.

use std::fmt::{self, Display};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolward_bundle::content::ContentError;
use toolward_contract::diagnostic::Diagnostic;
use toolward_signing::Refusal;
use toolward_support::report::{Coded, codes};

/// The kind of a failure, which determines the command's exit code. Kinds are ordered by severity,
/// so the worst of several failures is their maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A person or the policy denied the operation.
    Denied,
    /// The request, or a file of the operator, is invalid.
    Usage,
    /// The operation failed.
    Failed,
    /// Verification failed.
    Refused,
}

/// The field of the JSON form for policy lines that grant less than [`Error::lines`].
const NARROWER: &str = "narrower_lines";

/// An error with a stable code and hints.
///
/// ```
/// use toolward_operator::{Code, Error, Kind};
///
/// let error = Error::usage(Code::SettingInvalid, "--days 0").hint("give a number from 1 to 90");
/// assert_eq!((error.kind, error.to_string().as_str()), (Kind::Usage, "--days 0"));
/// assert_eq!(error.to_json()["error"]["hint"], "give a number from 1 to 90");
/// ```
#[derive(Debug, Clone)]
pub struct Error {
    /// The kind of failure.
    pub kind: Kind,
    /// The stable code; the book lists them all.
    pub code: String,
    /// What happened. May contain untrusted text: sanitise it before showing it.
    pub message: String,
    /// The next steps, the likeliest first.
    pub hints: Vec<String>,
    /// Lines to add to a file of the user, shown unchanged.
    pub lines: Option<String>,
    /// The cause, as JSON text.
    pub cause: Option<String>,
    /// Further fields of the JSON form, such as the place of a refusal.
    pub details: Map<String, Value>,
    /// The problems with their positions, if there are several problems or one of them has a
    /// position.
    pub diagnostics: Vec<Diagnostic>,
    /// The error of the layer below.
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The result of an operation of this crate.
pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.source.as_deref()?;
        Some(source)
    }
}

impl Error {
    /// A failure with a code from this crate's [table](Code) or another crate's.
    pub fn new(
        kind: Kind,
        code: impl toolward_support::report::Kind,
        message: impl Display,
    ) -> Self {
        Self::with_code(kind, code.row().code, message)
    }

    /// A failure with a code that is known only as text.
    pub fn with_code(kind: Kind, code: &str, message: impl Display) -> Self {
        Self {
            kind,
            code: code.to_owned(),
            message: message.to_string(),
            hints: Vec::new(),
            lines: None,
            cause: None,
            details: Map::new(),
            diagnostics: Vec::new(),
            source: None,
        }
    }

    /// A failure with the message, code and hint of another layer's error.
    pub fn of(kind: Kind, error: impl Coded + std::error::Error + Send + Sync + 'static) -> Self {
        Self::with_code(kind, error.code(), &error)
            .maybe_hint(error.hint())
            .caused_by(error)
    }

    /// A failure of [`Kind::Failed`].
    pub fn failed(code: impl toolward_support::report::Kind, message: impl Display) -> Self {
        Self::new(Kind::Failed, code, message)
    }

    /// A failure of [`Kind::Usage`].
    pub fn usage(code: impl toolward_support::report::Kind, message: impl Display) -> Self {
        Self::new(Kind::Usage, code, message)
    }

    /// A failure of [`Kind::Denied`].
    pub fn denied(code: impl toolward_support::report::Kind, message: impl Display) -> Self {
        Self::new(Kind::Denied, code, message)
    }

    /// Adds a next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds `lines`, which a policy file lacks, and the `narrower` lines, which grant less. If all
    /// of `lines` are comments, they explain why no line helps, and their text becomes a hint.
    #[must_use]
    pub fn lines_for(mut self, file: &Path, lines: String, narrower: Option<String>) -> Self {
        let file = file.display();
        let is_comment = |line: &str| line.is_empty() || line.starts_with('#');
        if !lines.lines().all(is_comment) {
            self.lines = Some(lines);
            if let Some(narrower) = narrower.filter(|lines| !lines.is_empty()) {
                self.details.insert(NARROWER.to_owned(), json!(narrower));
            }
            return self.hint(format!(
                "as far as you agree with them, add these lines to {file}"
            ));
        }
        let reasons = lines
            .lines()
            .map(|line| line.trim_start_matches(['#', ' ']));
        let reasons: Vec<&str> = reasons.filter(|reason| !reason.is_empty()).collect();
        match reasons.as_slice() {
            [] => self,
            some => self.hint(format!("{file}: {}", some.join(" "))),
        }
    }

    /// The narrower lines of [`Error::lines_for`].
    pub fn narrower(&self) -> Option<&str> {
        self.details.get(NARROWER)?.as_str()
    }

    /// Adds a next step, if there is one.
    #[must_use]
    pub fn maybe_hint(mut self, hint: Option<impl Into<String>>) -> Self {
        self.hints.extend(hint.map(Into::into));
        self
    }

    /// Returns the same failure with another kind.
    #[must_use]
    pub fn of_kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// Returns the same failure with another message.
    #[must_use]
    pub fn saying(self, message: String) -> Self {
        Self { message, ..self }
    }

    /// Returns the same failure, with the path of a file before its message.
    #[must_use]
    pub fn in_file(self, path: &Path) -> Self {
        let message = format!("{}: {}", path.display(), self.message);
        self.saying(message)
    }

    /// Returns the same failure, with the error of the layer below as its source.
    #[must_use]
    pub fn caused_by(self, source: impl Into<BoxError>) -> Self {
        let source = Some(source.into().into());
        Self { source, ..self }
    }

    /// Adds problems with their positions.
    #[must_use]
    pub fn with_diagnostics(self, diagnostics: Vec<Diagnostic>) -> Self {
        Self {
            diagnostics,
            ..self
        }
    }

    /// A file of the user can't be read.
    pub fn unreadable(path: &Path, error: impl Into<BoxError>) -> Self {
        let error = error.into();
        Self::usage(Code::FileUnreadable, &error)
            .in_file(path)
            .hint("name a file that is there and that you may read")
            .caused_by(error)
    }

    /// A file of the user can't be written.
    pub fn unwritable(path: &Path, error: impl Into<BoxError>) -> Self {
        let error = error.into();
        Self::failed(Code::WriteFailed, &error)
            .in_file(path)
            .hint("name a place in a directory that is there and that you may write to")
            .caused_by(error)
    }

    /// The async runtime or a thread can't be started.
    pub fn runtime(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::failed(Code::RuntimeUnavailable, &error).caused_by(error)
    }

    /// A refusal by verification.
    pub fn refused(refusal: Refusal) -> Self {
        let details = serde_json::to_value(&refusal);
        let mut failure = Self::of(Kind::Refused, refusal);
        if let Ok(Value::Object(details)) = details {
            failure.details = details;
        }
        failure
    }

    /// The JSON value that `--json` prints.
    pub fn to_json(&self) -> Value {
        let mut error = self.details.clone();
        error.insert("code".to_owned(), json!(self.code));
        error.insert("message".to_owned(), json!(self.message));
        if !self.hints.is_empty() {
            error.insert("hint".to_owned(), json!(self.hints.join("\n")));
        }
        if let Some(lines) = &self.lines {
            error.insert("lines".to_owned(), json!(lines));
        }
        if !self.diagnostics.is_empty() {
            error.insert("diagnostics".to_owned(), json!(self.diagnostics));
        }
        json!({ "ok": false, "error": error })
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::refused(refusal)
    }
}

/// Joins the texts of values, for a message.
pub(crate) fn joined<T: ToString>(all: impl IntoIterator<Item = T>, separator: &str) -> String {
    let texts = all.into_iter().map(|one| one.to_string());
    texts.collect::<Vec<_>>().join(separator)
}

/// Converts the error for an invalid bundle. `kind` is [`Kind::Refused`] for a verified bundle, and
/// [`Kind::Failed`] for a directory under work.
///
/// ```
/// use toolward_bundle::content::Content;
/// use toolward_operator::{Kind, content_error};
///
/// let error = Content::from_dev("nowhere".as_ref()).unwrap_err();
/// assert_eq!(content_error(error, Kind::Failed).kind, Kind::Failed);
/// ```
pub fn content_error(error: ContentError, kind: Kind) -> Error {
    let diagnostics = error.diagnostics().to_vec();
    Error::of(kind, error).with_diagnostics(diagnostics)
}

codes! {
    /// The code of an [`Error`] of this crate. The book's page on the command's errors takes the
    /// meanings of the codes from here.
    pub enum Code {
        NobodyTrusted = "nobody-trusted" ["2"],
            "no publisher is trusted: no `--trust-key`, no `toolward.toml`, nothing from `toolward trust add`";
        PublisherKnown = "publisher-known" ["2"],
            "`trust add` of a publisher or a key that is trusted already; `trust update` takes a publisher's next document";
        PublisherUnknown = "publisher-unknown" ["2"], "no publisher of this name is trusted by `toolward trust`";
        PublisherBare = "publisher-bare" ["2"],
            "`trust update` of a publisher that is trusted by a bare key, which has no documents and no revocations";
        KeyMisplaced = "key-misplaced" ["3"],
            "`trust add` of a bare key that is in or next to a bundle, or would be fetched";
        PrefixTaken = "prefix-taken" ["4"],
            "`trust add` of a bare key without `--takes-from`, for a prefix that overlaps another publisher's prefix; or `--takes-from` names another publisher";
        TrustInvalid = "trust-invalid" ["2"], "a folder below `trust/` was changed by hand and is no longer valid";
        TrustUnusable = "trust-unusable" ["2"],
            "something below `trust/` belongs to another user, or others may write to it";
        TrustBusy = "trust-busy", "another process held `trust/` for too long";
        ChannelUnknown = "channel-unknown" ["2"], "no `[[channel]]` of this name is in `toolward.toml`";
        ChannelAmbiguous = "channel-ambiguous" ["2"],
            "several channels are configured, and no channel was named for a bundle from another source";
        ReleaseMissing = "release-missing",
            "no tag of a bundle's repository leads to a release of the bundle";
        SourceMoves = "source-moves" ["4"],
            "`install` of a bundle that is installed from another source, without `--move-source`";
        SourceInvalid = "source-invalid" ["2 or 1"], "a source is not a file, `https://…` or `oci://…`";
        CaFileInvalid = "ca-file-invalid" ["2, or 1 of `policy check`"], "the policy's `ca_file` holds no certificates in PEM";
        ConfineSettingInvalid = "confine-setting-invalid" ["2, or 1 of `policy check`"],
            "[`[confine]`](confinement.md#system-calls) of `toolward.toml` has an unknown value, or is in a file of `--policy-file`";
        ClientSettingInvalid = "client-setting-invalid" ["2, or 1 of `policy check`"],
            "[`[clients]`](serve.md#questions-and-approvals) of `toolward.toml` has an unknown key or value, or is in a file of `--policy-file`";
        LedgerSettingInvalid = "ledger-setting-invalid" ["2, or 1 of `policy check`"],
            "[`[ledger]`](policy.md#ledger) of `toolward.toml` has an unknown key or value, or is in a file of `--policy-file`";
        RegistrySettingInvalid = "registry-setting-invalid" ["2, or 1 of `policy check`"],
            "[`[[registry]]`](registries.md) of `toolward.toml` has an unknown key or value, or is in a file of `--policy-file`";
        RegistryPasswordMissing = "registry-password-missing" ["2"],
            "the variable or file that `password` of [`[[registry]]`](registries.md) names can't be read";
        LedgerPlaceless = "ledger-placeless" ["2"],
            "there is no place for the record of calls: no `directory` in `[ledger]`, and no home directory";
        CassettePrincipals = "cassette-unnamed" ["2"],
            "the principals of a cassette have no names in this installation's ledger, or the local user is not one of them";
        RecorderUnavailable = "recorder-unavailable", "the process that records calls can't be started";
        SettingInvalid = "setting-invalid" ["2"],
            "a `--set` is not `KEY=VALUE`, or its value does not match the contract; or the value of another flag or setting is invalid";
        BundleMissing = "bundle-missing" ["2"], "no bundle was named, and none is installed";
        ToolMissing = "tool-missing", "no bundle, named or installed, has this tool";
        DriverUnknown = "driver-unknown",
            "`policy suggest --driver` names a driver that implements none of the tools";
        DuplicateId = "duplicate-id" ["1 or 3"],
            "two bundles have the same tool or driver; the exit code is 3 if one of them was to be installed";
        DevClash = "dev-clash" ["3"],
            "a directory of `--dev` has an id that a bundle of the same command has, or an id under a prefix of that bundle's publisher";
        FileUnreadable = "file-unreadable" ["2 or 1"], "a file can't be read";
        WriteFailed = "write-failed", "a file can't be written";
        OutputExists = "output-exists",
            "the output exists already; an archive replaces only a bundle of its id";
        GrantRefused = "grant-refused" ["2"],
            "`call --grant` is neither `network:HOST` nor `workspace:/PATH=DIRECTORY`, or has a `*` or an address";
        GrantImpossible = "grant-impossible" ["4"],
            "`policy grant`: no line of a policy can let the tool run, or let it run without asking a person";
        ChoiceOpen = "choice-open" ["4"],
            "`policy grant`: a line needs a directory, the source of a secret or a host, and none was chosen";
        FileUnfit = "file-unfit",
            "a file of the user is not changed: it is not a regular file, it has several names, or other users may change it";
        FileChanged = "file-changed", "a file was changed by another program while its difference was shown";
        ClientFileInvalid = "client-file-invalid",
            "`mcp config --write` can't add the entry to a client's file without changing the rest, so it prints the entry";
        EntryForeign = "entry-foreign",
            "a client's file has an entry of this name that `mcp config --write` did not write";
        UnwritableValue = "unwritable-value", "a name can't be written into a TOML file";
        StoreUnusable = "store-unusable" ["1 or 2"],
            "the key-value store or [the store of bundles](store.md) can't be used safely (owner, mode, or not a regular file), or has no place";
        RuntimeUnavailable = "runtime-unavailable", "the async runtime can't be started";
        ReloadWider = "reload-wider" ["–"],
            "at SIGHUP: the new policy may grant more than the current one, which stays";
        ReloadTrust = "reload-trust" ["–"],
            "at SIGHUP: more than the policy has changed; the current configuration stays";
        DemoExists = "demo-exists", "`demo` finds the directory of an earlier demo";
        DemoUnknown = "demo-unknown",
            "`demo --remove` finds no list of what the demo made, or a list that the demo did not write";
        WatchEnded = "watch-ended",
            "an internal fault stopped the scan for changes and revocations; nothing is served without this scan";
    }
}
