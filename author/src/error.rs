//! What can go wrong while a bundle is made.

use std::path::PathBuf;

use toolward_bundle::ReadError;
use toolward_bundle::files::FilesError;
use toolward_contract::diagnostic::Diagnostic;
use toolward_signing::Refusal;
use toolward_support::report::codes;

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

codes! {
    for AuthorError {
        Self::Read(error) = error;
        Self::Refused { refusal, .. } = refusal;
        Self::Write { .. } = "write-failed",
            "name a place in a directory that is there and that you may write to";
        Self::Exists { .. } = "output-exists", "name another place, or remove it first";
    }
}

impl AuthorError {
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
