//! How a command fails: an exit code, a stable error code, what happened, and the next step.

use std::path::Path;
use std::process::ExitCode;

use toolward_author::AuthorError;
use toolward_mcp::http::HttpError;
use toolward_signing::{ErrorKind, Refusal};
use toolward_support::report::Coded;

pub(crate) use toolward_operator::{Code as OperatorCode, Error as Failure, Kind};

/// The result of a command, or of a part of one.
pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// The exit codes, as `--help` documents them. The order is from best to worst, for commands with
/// several results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    Fine,
    Denied,
    Usage,
    Failed,
    Refused,
}

impl From<Kind> for Exit {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Denied => Self::Denied,
            Kind::Usage => Self::Usage,
            Kind::Failed => Self::Failed,
            Kind::Refused => Self::Refused,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Fine => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Refused => 3,
            Exit::Denied => 4,
        })
    }
}

/// The failure for a packed bundle. A bundle that differs from its manifest is refused, as by
/// `verify`.
pub(crate) fn packed(error: impl Into<AuthorError>) -> Failure {
    let error = error.into();
    match error.refusal() {
        // Nothing was read that could be refused.
        Some(refusal) if refusal.kind() == ErrorKind::Io => {
            Failure::refused(refusal.clone()).of_kind(Kind::Usage)
        }
        Some(refusal) => Failure::refused(refusal.clone()),
        None => authored(error),
    }
}

/// The failure for an author's invalid input. It counts as failed and not as refused, since nothing
/// was to be verified.
pub(crate) fn invalid(refusal: Refusal) -> Failure {
    Failure::refused(refusal).of_kind(Kind::Failed)
}

/// The failure for an author's invalid file.
pub(crate) fn invalid_file(path: &Path, refusal: Refusal) -> Failure {
    invalid(refusal).in_file(path)
}

pub(crate) fn authored(error: impl Into<AuthorError>) -> Failure {
    let error = error.into();
    let diagnostics = error.diagnostics().to_vec();
    failed(error).with_diagnostics(diagnostics)
}

/// The failure with the message, code and hint of a library's error.
pub(crate) fn failed(error: impl Coded + std::error::Error + Send + Sync + 'static) -> Failure {
    Failure::of(Kind::Failed, error)
}

pub(crate) fn http(error: HttpError) -> Failure {
    let kind = match &error {
        HttpError::Listener(_) | HttpError::Random(_) => Kind::Failed,
        _ => Kind::Usage,
    };
    Failure::of(kind, error)
}
