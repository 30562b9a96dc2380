//! Errors of reading a bundle from verified bytes or from a working directory.

use std::path::{Path, PathBuf};

use toolward_contract::action;
use toolward_contract::diagnostic::Diagnostic;
use toolward_signing::Refusal;
use toolward_support::report::codes;

/// How deep folders may be nested.
pub(crate) const MAX_DEPTH: usize = 8;

codes! {
    /// Why the content of a verified bundle or of a working directory is not valid.
    #[derive(Debug)]
    pub enum ContentError: Error {
        /// A document or component breaks a rule.
        Invalid(findings: Vec<Diagnostic>) -> (first_code(findings)), ("{}", first(findings)) => first_hint(findings);
        /// `kind` is `bundle`, `contract`, `contract alias`, `driver`, `action` or `prompt`;
        /// `publisher` is the name in the trust store.
        PrefixNotGranted { path: String, kind: &'static str, id: String, publisher: String } = "prefix-not-granted" ["3"],
            "a contract, driver or action has an id that its publisher may not publish",
            ("{path}: the {kind} id {id:?} lies outside what the publisher {publisher} may publish")
            => format!(
                "if {publisher} is meant to publish it: `toolward trust update {publisher} --prefix PREFIX`, or a prefix in its [[publisher]] of toolward.toml"
            );
        RoleMismatch { path: String, found: String, expected: String } = "role-mismatch" ["3"],
            "the manifest gives a file another role than its name does",
            ("manifest.toml: {path} has the role {found}, its name makes it a {expected}")
            => "pack the bundle again: `toolward pack`";
        /// The working directory can't be read.
        Read(inner: ReadError);
    }
}

/// The first error in one line, and the number of further errors.
fn first(diagnostics: &[Diagnostic]) -> String {
    let mut errors = diagnostics.iter().filter(|found| found.is_error());
    match errors.next() {
        None => "the bundle is invalid".to_owned(),
        Some(error) => {
            let more = match errors.count() {
                0 => String::new(),
                more => format!(" (and {more} more)"),
            };
            format!(
                "{}:{}:{}: {}{more}",
                error.file, error.line, error.column, error.message
            )
        }
    }
}

/// The hint of the first error, or a general hint.
fn first_hint(diagnostics: &[Diagnostic]) -> String {
    let hint = first_error(diagnostics).and_then(|error| error.hint.as_deref());
    let general = "correct it and pack the bundle again; `toolward check` shows every finding";
    hint.unwrap_or(general).to_owned()
}

impl ContentError {
    /// All findings about the documents, if they are the reason.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Invalid(diagnostics) => diagnostics,
            Self::Read(error) => error.diagnostics(),
            _ => &[],
        }
    }

    /// Whether the reason is a contract that implements an action that is neither in its bundle nor
    /// in a known library.
    pub fn lacks_action(&self) -> bool {
        let mut findings = self.diagnostics().iter();
        findings.any(|finding| finding.code == action::UNRESOLVED)
    }
}

codes! {
    /// Why a working directory can't be read, or a bundle whose signatures are not verified.
    #[derive(Debug)]
    pub enum ReadError: Error {
        NoBundleToml { directory: PathBuf } = "bundle-toml-missing", ("{}: bundle.toml is missing", directory.display())
            => "name the directory that holds bundle.toml; `toolward new` makes one";
        /// The documents break a rule.
        Invalid(findings: Vec<Diagnostic>) -> (first_code(findings)), ("{}", first(findings)) => first_hint(findings);
        NoTime = "created-missing", "neither `bundle.toml` nor `SOURCE_DATE_EPOCH` gives the time of the bundle",
            ("bundle.toml has no `created`, and no time was given")
            => "write `created = \"2026-11-21T08:00:00Z\"`, or set SOURCE_DATE_EPOCH";
        /// A file can't be read, or may not be in a bundle.
        Files(inner: FilesError);
        /// A rule of the signed formats is broken. `path` is the directory or archive.
        Refused { path: PathBuf, source: Refusal } -> source, ("{}: {source}", path.display());
    }
}

impl ReadError {
    /// All findings about the documents, if they are the reason.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Invalid(diagnostics) => diagnostics,
            _ => &[],
        }
    }
}

/// The code of the first error.
fn first_code(diagnostics: &[Diagnostic]) -> &'static str {
    first_error(diagnostics).map_or("bundle-invalid", |error| error.code)
}

fn first_error(diagnostics: &[Diagnostic]) -> Option<&Diagnostic> {
    diagnostics.iter().find(|found| found.is_error())
}

/// The name of a symbolic link in messages.
pub(crate) const SYMBOLIC_LINK: &str = "a symbolic link";

codes! {
    /// Why an authoring directory can't be read.
    #[derive(Debug)]
    pub enum FilesError: Error {
        Io { path: PathBuf, source: std::io::Error } = "file-unreadable" ["1 or 2"], ("{}: {source}", path.display());
        NotRegular { path: PathBuf, kind: &'static str } = "file-not-regular",
            ("{}: this is {kind}; a bundle holds regular files only", path.display())
            => match *kind {
                SYMBOLIC_LINK => "put the file itself there instead of a link to it",
                _ => "remove it, or move it out of the bundle's folders",
            };
        /// `path` is the folder with the dot, `without` the name of the folder without it.
        Twice { path: PathBuf, without: &'static str } = "folder-twice",
            ("{}: there is {without}/, too, and both are the same folder of the bundle", path.display())
            => "move the files of one into the other";
        TooDeep { path: PathBuf } = "file-name", ("{}: folders lie at most {MAX_DEPTH} levels deep", path.display())
            => "move its files up";
        Name { path: PathBuf } = "file-name", ("{}: the name is not UTF-8", path.display())
            => "use ASCII letters, digits, '.', '_' and '-' in names";
        /// A file is larger than its format allows, so it was not read. Sizes are in bytes.
        TooLarge { path: PathBuf, limit: u64, found: u64 } = "document-too-large",
            ("{}: expected at most {limit} bytes, found {found}", path.display())
            => "split it, or remove what it does not need";
        /// The files together exceed a limit of bundles; `what` is the unit of `limit`.
        TooMuch { path: PathBuf, limit: u64, what: &'static str } = "bundle-too-large",
            ("{}: more than {limit} {what}", path.display())
            => "move what is not part of the bundle out of its folders";
    }
}

impl FilesError {
    /// Returns a function that makes the error for `path` from a system error.
    pub fn io(path: &Path) -> impl Fn(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Io {
            path: path.clone(),
            source,
        }
    }

    /// The file or directory.
    pub fn path(&self) -> &Path {
        match self {
            Self::Io { path, .. }
            | Self::NotRegular { path, .. }
            | Self::Twice { path, .. }
            | Self::TooDeep { path }
            | Self::Name { path }
            | Self::TooLarge { path, .. }
            | Self::TooMuch { path, .. } => path,
        }
    }
}
