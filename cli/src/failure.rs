//! How a command fails: an exit code, a stable error code, what happened, and
//! the next step.

use std::process::ExitCode;

use toolward_author::AuthorError;
use toolward_author::build::BuildError;
use toolward_author::scaffold::ScaffoldError;
use toolward_mcp::ServerFeaturesError;
use toolward_mcp::http::HttpError;
use toolward_mcp::stdio::StdioError;
use toolward_signing::ErrorKind;

pub(crate) use toolward_operator::{Error as Failure, Kind, content_error};

/// The exit codes, as `--help` documents them. The worst of several comes last.
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

/// A bundle that is not what its manifest says is refused, as by `verify`.
pub(crate) fn packed(error: impl Into<AuthorError>) -> Failure {
    let error = error.into();
    match error.refusal() {
        // Nothing was looked at that could be refused.
        Some(refusal) if refusal.kind() == ErrorKind::Io => {
            Failure::refused(refusal).of_kind(Kind::Usage)
        }
        Some(refusal) => Failure::refused(refusal),
        None => authored(error),
    }
}

pub(crate) fn authored(error: impl Into<AuthorError>) -> Failure {
    let error = error.into();
    Failure::new(Kind::Failed, error.code(), &error)
        .maybe_hint(error.hint())
        .with_diagnostics(error.diagnostics())
        .caused_by(error)
}

pub(crate) fn built(error: BuildError) -> Failure {
    Failure::new(Kind::Failed, error.code(), &error)
        .maybe_hint(error.hint())
        .caused_by(error)
}

pub(crate) fn scaffolded(error: ScaffoldError) -> Failure {
    Failure::new(Kind::Failed, error.code(), &error)
        .maybe_hint(error.hint())
        .caused_by(error)
}

pub(crate) fn http(error: HttpError) -> Failure {
    let kind = match &error {
        HttpError::Listener(_) | HttpError::Random(_) => Kind::Failed,
        _ => Kind::Usage,
    };
    let hint = error.hint().map(|hint| hint.to_string());
    Failure::new(kind, error.code(), &error)
        .maybe_hint(hint)
        .caused_by(error)
}

pub(crate) fn stdio(error: StdioError) -> Failure {
    Failure::new(Kind::Failed, error.code(), &error)
        .hint("start it from an MCP client: `toolward mcp config` prints the lines for one")
        .caused_by(error)
}

pub(crate) fn features(error: ServerFeaturesError) -> Failure {
    Failure::usage(error.code(), &error)
        .hint(error.hint())
        .caused_by(error)
}
