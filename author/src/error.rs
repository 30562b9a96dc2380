//! What can go wrong while a bundle is made.

use std::path::PathBuf;

use toolward_bundle::ReadError;
use toolward_bundle::files::FilesError;
use toolward_contract::diagnostic::Diagnostic;
use toolward_signing::Refusal;

/// Why a bundle can't be packed, signed or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorError {
    /// The directory under work can't be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// What was made, or was to be signed, breaks a rule of the signed formats.
    #[error("{path}: {refusal}", path = path.display())]
    Refused {
        /// The directory or archive.
        path: PathBuf,
        /// Which rule.
        #[source]
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
            Self::Read(error) => error.code(),
            Self::Refused { refusal, .. } => refusal.code(),
            Self::Write { .. } => "write-failed",
            Self::Exists { .. } => "output-exists",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Read(error) => error.hint(),
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
            Self::Read(error) => error.diagnostics(),
            _ => &[],
        }
    }

    /// The rule of the signed formats that is broken, where that is the reason.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused { refusal, .. } | Self::Read(ReadError::Refused { refusal, .. }) => {
                Some(refusal)
            }
            _ => None,
        }
    }
}

impl From<FilesError> for AuthorError {
    fn from(error: FilesError) -> Self {
        Self::Read(error.into())
    }
}
