//! How a command fails: an exit code, a stable error code, what happened, and
//! the next step.

use std::fmt::Display;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Map, Value, json};
use toolward_bundle::author::AuthorError;
use toolward_bundle::build::BuildError;
use toolward_bundle::content::ContentError;
use toolward_bundle::scaffold::ScaffoldError;
use toolward_contract::diagnostic::Diagnostic;
use toolward_host::HostError;
use toolward_signing::{Reason, Refusal};

/// The exit codes, as `--help` documents them. The worst of several comes last:
/// what waits for a person is less than what failed, and a refusal is more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    Fine,
    Denied,
    Usage,
    Failed,
    Refused,
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

/// Why a command ends without having done its work.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) code: String,
    /// May hold other people's text: shown through the sanitiser.
    pub(crate) message: String,
    pub(crate) hints: Vec<String>,
    /// Lines for a file of the user's, shown to people as they are.
    pub(crate) lines: Option<String>,
    /// What lies behind it, as JSON text.
    pub(crate) cause: Option<String>,
    /// What else a machine wants to know, such as the place of a refusal.
    pub(crate) details: Map<String, Value>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, code: &str, message: impl Display) -> Self {
        Self {
            exit,
            code: code.to_owned(),
            message: message.to_string(),
            hints: Vec::new(),
            lines: None,
            cause: None,
            details: Map::new(),
            diagnostics: Vec::new(),
        }
    }

    pub(crate) fn usage(code: &str, message: impl Display) -> Self {
        Self::new(Exit::Usage, code, message)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Shows the lines that a policy's file lacks. Lines that only say why there
    /// are none are no lines.
    pub(crate) fn lines_for(mut self, file: &Path, lines: String) -> Self {
        let says = |line: &str| !line.is_empty() && !line.starts_with('#');
        if lines.lines().any(says) {
            self.hints.push(format!(
                "as far as you agree with them, add these lines to {}",
                file.display()
            ));
            self.lines = Some(lines);
        }
        self
    }

    fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.hints.extend(hint);
        self
    }

    pub(crate) fn with_diagnostics(mut self, diagnostics: &[Diagnostic]) -> Self {
        self.diagnostics = diagnostics.to_vec();
        self
    }

    /// A file of the user's that can't be read.
    pub(crate) fn unreadable(path: &Path, error: impl Display) -> Self {
        Self::usage("file-unreadable", format!("{}: {error}", path.display()))
            .hint("name a file that is there and that you may read")
    }

    /// A file of the user's that can't be written.
    pub(crate) fn unwritable(path: &Path, error: impl Display) -> Self {
        Self::new(
            Exit::Failed,
            "write-failed",
            format!("{}: {error}", path.display()),
        )
        .hint("name a place in a directory that is there and that you may write to")
    }

    /// A refusal while something was verified.
    pub(crate) fn refused(refusal: &Refusal) -> Self {
        let mut failure = Self::new(Exit::Refused, refusal.code(), refusal)
            .maybe_hint(refusal.hint().map(str::to_owned));
        if let Ok(Value::Object(details)) = serde_json::to_value(refusal) {
            failure.details = details;
        }
        failure
    }

    /// The failure as the value that `--json` prints.
    pub(crate) fn to_json(&self) -> Value {
        let mut error = self.details.clone();
        error.insert("code".to_owned(), json!(self.code));
        error.insert("message".to_owned(), json!(self.message));
        if !self.hints.is_empty() {
            error.insert("hint".to_owned(), json!(self.hints.join("\n")));
        }
        if !self.diagnostics.is_empty() {
            error.insert("diagnostics".to_owned(), json!(self.diagnostics));
        }
        json!({ "ok": false, "error": error })
    }
}

/// A bundle that is not what its manifest says is refused, as by `verify`.
pub(crate) fn packed(error: AuthorError) -> Failure {
    match error {
        // Nothing was looked at that could be refused.
        AuthorError::Refused { refusal, .. } if refusal.reason() == Reason::Io => Failure {
            exit: Exit::Usage,
            ..Failure::refused(&refusal)
        },
        AuthorError::Refused { refusal, .. } => Failure::refused(&refusal),
        other => Failure::from(other),
    }
}

impl From<AuthorError> for Failure {
    fn from(error: AuthorError) -> Self {
        Self::new(Exit::Failed, error.code(), &error)
            .maybe_hint(error.hint())
            .with_diagnostics(error.diagnostics())
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        Self::new(Exit::Failed, error.code(), &error).maybe_hint(error.hint())
    }
}

impl From<ScaffoldError> for Failure {
    fn from(error: ScaffoldError) -> Self {
        Self::new(Exit::Failed, error.code(), &error).maybe_hint(error.hint())
    }
}

impl From<HostError> for Failure {
    fn from(error: HostError) -> Self {
        let exit = match error {
            // It is the policy that is wrong.
            HostError::Workspace { .. } => Exit::Usage,
            _ => Exit::Failed,
        };
        Self::new(exit, error.code(), &error).maybe_hint(error.hint())
    }
}

/// A bundle that is not what it should be. One that was verified is refused; a
/// directory under work has failed its check.
pub(crate) fn content(error: &ContentError, exit: Exit) -> Failure {
    Failure::new(exit, error.code(), error)
        .maybe_hint(error.hint())
        .with_diagnostics(error.diagnostics())
}
