//! Why a bundle can't be read, from verified bytes or from a directory under work.

use std::path::{Path, PathBuf};

use toolward_contract::action;
use toolward_contract::diagnostic::{Diagnostic, Severity};
use toolward_signing::Refusal;
use toolward_support::report::codes;

/// How deep folders may be nested (at most 8 segments).
pub(crate) const MAX_DEPTH: usize = 8;

/// Why the content of a verified bundle is not valid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// A document or component breaks a rule.
    #[error("{}", first(.0))]
    Invalid(Vec<Diagnostic>),
    /// An id is outside the prefixes that the trust store grants.
    #[error("{path}: the {kind} id {id:?} lies outside what the publisher {publisher} may publish")]
    PrefixNotGranted {
        /// The file with the id.
        path: String,
        /// `bundle`, `contract`, `contract alias`, `driver`, `action` or `prompt`.
        kind: &'static str,
        /// The id.
        id: String,
        /// The publisher's name in the trust store.
        publisher: String,
    },
    /// A file's role in the manifest isn't the role of its name.
    #[error("manifest.toml: {path} has the role {found}, its name makes it a {expected}")]
    RoleMismatch {
        /// The file.
        path: String,
        /// The role in the manifest.
        found: String,
        /// The role of the name.
        expected: String,
    },
    /// The directory under work can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The first error in one line, and the number of further ones.
fn first(diagnostics: &[Diagnostic]) -> String {
    let mut errors = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error);
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

/// The hint of the first error, or a general one.
fn first_hint(diagnostics: &[Diagnostic]) -> String {
    diagnostics
        .iter()
        .find(|diagnostic| diagnostic.severity == Severity::Error)
        .and_then(|diagnostic| diagnostic.hint.clone())
        .unwrap_or_else(|| {
            "correct it and pack the bundle again; `toolward check` shows every finding".to_owned()
        })
}

codes! {
    for ContentError {
        Self::Invalid(diagnostics) = (first_code(diagnostics)), first_hint(diagnostics);
        Self::PrefixNotGranted { publisher, .. } = "prefix-not-granted", format!(
            "if {publisher} is meant to publish it: `toolward trust update {publisher} --prefix PREFIX`, or a prefix in its [[publisher]] of toolward.toml"
        );
        Self::RoleMismatch { .. } = "role-mismatch", "pack the bundle again: `toolward pack`";
        Self::Read(error) = error;
    }
}

impl ContentError {
    /// All findings about the documents, if they are the reason.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Invalid(diagnostics) => diagnostics,
            Self::Read(error) => error.diagnostics(),
            _ => &[],
        }
    }

    /// Whether a contract implements an action that is neither in its bundle nor in a library at hand.
    #[must_use]
    pub fn lacks_action(&self) -> bool {
        let mut findings = self.diagnostics().iter();
        findings.any(|finding| finding.code == action::UNRESOLVED)
    }
}

/// Why a directory under work, or a bundle without verifying its signatures, can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The directory has no `bundle.toml`.
    #[error("{path}: bundle.toml is missing", path = directory.display())]
    NoBundleToml {
        /// The directory.
        directory: PathBuf,
    },
    /// The documents break a rule.
    #[error("{}", first(.0))]
    Invalid(Vec<Diagnostic>),
    /// Neither `bundle.toml` nor the caller gives the time of the bundle.
    #[error("bundle.toml has no `created`, and no time was given")]
    NoTime,
    /// A file can't be read, or may not be in a bundle.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// A rule of the signed formats is broken.
    #[error("{path}: {refusal}", path = path.display())]
    Refused {
        /// The directory or archive.
        path: PathBuf,
        /// The broken rule.
        #[source]
        refusal: Refusal,
    },
}

codes! {
    for ReadError {
        Self::NoBundleToml { .. } = "bundle-toml-missing",
            "name the directory that holds bundle.toml; `toolward new` makes one";
        Self::Invalid(diagnostics) = (first_code(diagnostics)), first_hint(diagnostics);
        Self::NoTime = "created-missing",
            "write `created = \"2026-11-21T08:00:00Z\"`, or set SOURCE_DATE_EPOCH";
        Self::Files(error) = error;
        Self::Refused { refusal, .. } = refusal;
    }
}

impl ReadError {
    /// All findings about the documents, if they are the reason.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Invalid(diagnostics) => diagnostics,
            _ => &[],
        }
    }
}

/// The code of the first error.
fn first_code(diagnostics: &[Diagnostic]) -> &'static str {
    diagnostics
        .iter()
        .find(|diagnostic| diagnostic.severity == Severity::Error)
        .map_or("bundle-invalid", |diagnostic| diagnostic.code)
}

/// The name of a symbolic link in messages.
pub(crate) const SYMBOLIC_LINK: &str = "a symbolic link";

/// Why an authoring directory can't be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilesError {
    /// The operating system refused.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The error.
        source: std::io::Error,
    },
    /// A symbolic link, a device, a socket or a pipe.
    #[error("{path}: this is {kind}; a bundle holds regular files only", path = path.display())]
    NotRegular {
        /// Its path.
        path: PathBuf,
        /// Its kind.
        kind: &'static str,
    },
    /// A folder with and without a dot before its name.
    #[error("{path}: there is {without}/, too, and both are the same folder of the bundle", path = path.display())]
    Twice {
        /// The folder with the dot.
        path: PathBuf,
        /// The name of the other folder.
        without: &'static str,
    },
    /// A folder below too many others.
    #[error("{path}: folders lie at most {MAX_DEPTH} levels deep", path = path.display())]
    TooDeep {
        /// Its path.
        path: PathBuf,
    },
    /// A name that isn't UTF-8.
    #[error("{path}: the name is not UTF-8", path = path.display())]
    Name {
        /// Its path.
        path: PathBuf,
    },
    /// A file that its reader would refuse for its size. It was not read.
    #[error("{path}: expected at most {limit} bytes, found {found}", path = path.display())]
    TooLarge {
        /// Its path.
        path: PathBuf,
        /// The limit, in bytes.
        limit: u64,
        /// Its size, in bytes.
        found: u64,
    },
    /// More than a bundle may hold.
    #[error("{path}: more than {limit} {what}", path = path.display())]
    TooMuch {
        /// Where the limit was exceeded.
        path: PathBuf,
        /// The limit.
        limit: u64,
        /// Its unit.
        what: &'static str,
    },
}

codes! {
    for FilesError {
        Self::Io { .. } = "file-unreadable";
        Self::NotRegular { kind, .. } = "file-not-regular", match *kind {
            SYMBOLIC_LINK => "put the file itself there instead of a link to it",
            _ => "remove it, or move it out of the bundle's folders",
        };
        Self::Twice { .. } = "folder-twice", "move the files of one into the other";
        Self::TooDeep { .. } = "file-name", "move its files up";
        Self::Name { .. } = "file-name", "use ASCII letters, digits, '.', '_' and '-' in names";
        Self::TooLarge { .. } = "document-too-large", "split it, or remove what it does not need";
        Self::TooMuch { .. } = "bundle-too-large",
            "move what is not part of the bundle out of its folders";
    }
}

impl FilesError {
    /// The file or directory.
    #[must_use]
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
