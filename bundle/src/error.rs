//! Why a bundle can't be read, from verified bytes or from a directory under work.

use std::path::PathBuf;

use toolward_contract::action;
use toolward_contract::diagnostic::{Diagnostic, Severity};
use toolward_report::codes;
use toolward_signing::Refusal;

use crate::files::FilesError;

/// Why the content of a verified bundle is not valid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// A document or component breaks a rule.
    #[error("{}", first(.0))]
    Invalid(Vec<Diagnostic>),
    /// An id lies outside the prefixes that the trust store grants.
    #[error("{path}: the {kind} id {id:?} lies outside what the publisher {publisher} may publish")]
    PrefixNotGranted {
        /// The file that brings the id.
        path: String,
        /// `bundle`, `contract`, `contract alias`, `driver`, `action` or `prompt`.
        kind: &'static str,
        /// The id.
        id: String,
        /// The publisher's name in the trust store.
        publisher: String,
    },
    /// A file's role in the manifest isn't the one that its name gives it.
    #[error("manifest.toml: {path} has the role {found}, its name makes it a {expected}")]
    RoleMismatch {
        /// The file.
        path: String,
        /// The role in the manifest.
        found: String,
        /// The role that the name gives.
        expected: String,
    },
    /// The directory under work can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// The first error in one line, and how many more there are.
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

/// What to do about the first error. Not every rule has advice of its own.
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
    /// Everything that is wrong with the documents, where that is the reason.
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

/// Why a directory under work, or a bundle whose signatures don't matter, can't
/// be read.
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
    /// Neither `bundle.toml` nor the caller says when the bundle was made.
    #[error("bundle.toml has no `created`, and no time was given")]
    NoTime,
    /// A file can't be read, or may not be in a bundle.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// What was read or made breaks a rule of the signed formats.
    #[error("{path}: {refusal}", path = path.display())]
    Refused {
        /// The directory or archive.
        path: PathBuf,
        /// Which rule.
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
    /// Everything that is wrong with the documents, where that is the reason.
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
