//! What can go wrong while a bundle is packed or signed.

use std::path::PathBuf;

use toolward_contract::diagnostic::{Diagnostic, Severity};
use toolward_signing::Refusal;

use crate::files::FilesError;

/// Why a bundle can't be packed or signed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorError {
    /// The directory has no `bundle.toml`.
    #[error("{path}: there is no bundle.toml", path = directory.display())]
    NoBundleToml {
        /// The directory.
        directory: PathBuf,
    },
    /// The documents break a rule.
    #[error("{}", crate::content::first(.0))]
    Invalid(Vec<Diagnostic>),
    /// Neither `bundle.toml` nor the caller says when the bundle was made.
    #[error("bundle.toml has no `created`, and no time was given")]
    NoTime,
    /// A file can't be read, or may not be in a bundle.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// What was made, or was to be signed, breaks a rule of the signed formats.
    #[error("{path}: {refusal}", path = path.display())]
    Refused {
        /// The directory or archive.
        path: PathBuf,
        /// Which rule.
        refusal: Refusal,
    },
    /// The operating system refused to write.
    #[error("{path}: {source}", path = path.display())]
    Write {
        /// What was to be written.
        path: PathBuf,
        /// Its answer.
        source: std::io::Error,
    },
    /// The place to write to is taken.
    #[error("{path}: this exists already", path = path.display())]
    Exists {
        /// The place.
        path: PathBuf,
    },
}

impl AuthorError {
    /// The stable name of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoBundleToml { .. } => "bundle-toml-missing",
            Self::Invalid(diagnostics) => diagnostics
                .iter()
                .find(|diagnostic| diagnostic.severity == Severity::Error)
                .map_or("bundle-invalid", |diagnostic| diagnostic.code),
            Self::NoTime => "created-missing",
            Self::Files(error) => error.code(),
            Self::Refused { refusal, .. } => refusal.code(),
            Self::Write { .. } => "write-failed",
            Self::Exists { .. } => "output-exists",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoBundleToml { .. } => Some(
                "name the directory that holds bundle.toml; `toolward new` makes one".to_owned(),
            ),
            Self::Invalid(diagnostics) => Some(crate::content::first_hint(diagnostics)),
            Self::NoTime => Some(
                "write `created = \"2026-11-21T08:00:00Z\"`, or set SOURCE_DATE_EPOCH".to_owned(),
            ),
            Self::Files(error) => error.hint(),
            Self::Refused { refusal, .. } => refusal.hint().map(str::to_owned),
            Self::Write { .. } => Some(
                "name a place in a directory that is there and that you may write to".to_owned(),
            ),
            Self::Exists { .. } => Some("name another place, or remove it first".to_owned()),
        }
    }

    /// Everything that is wrong with the documents, where that is the reason.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Invalid(diagnostics) => diagnostics,
            _ => &[],
        }
    }
}
