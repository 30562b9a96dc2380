//! Errors while a bundle is made.

use std::path::{Path, PathBuf};

use toolward_bundle::ReadError;
use toolward_bundle::files::FilesError;
use toolward_contract::diagnostic::Diagnostic;
use toolward_signing::Refusal;
use toolward_support::report::codes;

codes! {
    /// Why a bundle can't be packed, signed or written.
    #[derive(Debug)]
    pub enum AuthorError: Error {
        /// The directory under work can't be read.
        Read(inner: ReadError);
        /// The bundle in `path`, a directory or an archive, breaks a rule of the signed formats.
        Refused(path: PathBuf, source: Refusal) -> source, ("{}: {source}", path.display());
        Write(path: PathBuf, source: std::io::Error) = "write-failed", ("{}: {source}", path.display())
            => "name a place in a directory that is there and that you may write to";
        Exists(path: PathBuf) = "output-exists", ("{}: this exists already", path.display())
            => "name another place, or remove it first";
    }
}

/// Fails if there are problems.
pub(crate) fn none(problems: Vec<Diagnostic>) -> Result<(), ReadError> {
    match problems.is_empty() {
        true => Ok(()),
        false => Err(ReadError::Invalid(problems)),
    }
}

impl AuthorError {
    /// Returns a function that converts the system's error to the error that `path` can't be
    /// written.
    pub(crate) fn write(path: &Path) -> impl Fn(std::io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Write(path.clone(), source)
    }

    /// Returns all problems of the documents, if they are the reason.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Self::Read(error) => error.diagnostics(),
            _ => &[],
        }
    }

    /// Returns the broken rule of the signed formats, if that is the reason.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(_, source) | Self::Read(ReadError::Refused { source, .. }) => {
                Some(source)
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
