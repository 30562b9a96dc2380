//! How reading, trusting or setting up fails: a stable code, what happened, and the
//! next step.

use std::fmt::{self, Display};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolward_bundle::content::ContentError;
use toolward_contract::diagnostic::Diagnostic;
use toolward_host::HostError;
use toolward_host::confine::ConfineError;
use toolward_signing::Refusal;

/// The kind of a failure; the command's exit code follows from it. Ordered by
/// severity, so that the worst of several failures is their maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A person or the policy said no.
    Denied,
    /// What was asked for, or a file of the operator's, is wrong.
    Usage,
    /// It could not be done.
    Failed,
    /// Something was not verified.
    Refused,
}

/// Why work was not done.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Error {
    /// What kind of failure it is.
    pub kind: Kind,
    /// The stable code; the book lists them all.
    pub code: String,
    /// What happened. May hold other people's text: shown through the sanitiser.
    pub message: String,
    /// The next steps, the likeliest first.
    pub hints: Vec<String>,
    /// Lines for a file of the user's, shown to people as they are.
    pub lines: Option<String>,
    /// What lies behind it, as JSON text.
    pub cause: Option<String>,
    /// What else a machine wants to know, such as the place of a refusal.
    pub details: Map<String, Value>,
    /// Problems with their places, where there are several or one has a place.
    pub diagnostics: Vec<Diagnostic>,
    /// The error of the layer below.
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.source.as_deref()?;
        Some(source)
    }
}

impl Error {
    /// A failure with this code and message.
    pub fn new(kind: Kind, code: &str, message: impl Display) -> Self {
        Self {
            kind,
            code: code.to_owned(),
            message: message.to_string(),
            hints: Vec::new(),
            lines: None,
            cause: None,
            details: Map::new(),
            diagnostics: Vec::new(),
            source: None,
        }
    }

    /// What is asked for, or a file of the operator's, is wrong.
    pub fn usage(code: &str, message: impl Display) -> Self {
        Self::new(Kind::Usage, code, message)
    }

    /// Adds a next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Shows the lines that a policy's file lacks. Lines that only say why there
    /// are none are no lines.
    #[must_use]
    pub fn lines_for(mut self, file: &Path, lines: String) -> Self {
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

    /// Adds a next step, if there is one.
    #[must_use]
    pub fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.hints.extend(hint);
        self
    }

    /// The same failure of another kind.
    #[must_use]
    pub fn of_kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// The same failure in other words.
    #[must_use]
    pub fn saying(self, message: String) -> Self {
        Self { message, ..self }
    }

    /// The same failure, with the error of the layer below.
    #[must_use]
    pub fn caused_by(self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        let source: Arc<dyn std::error::Error + Send + Sync> = Arc::new(source);
        Self {
            source: Some(source),
            ..self
        }
    }

    /// Adds problems with their places.
    #[must_use]
    pub fn with_diagnostics(mut self, diagnostics: &[Diagnostic]) -> Self {
        self.diagnostics = diagnostics.to_vec();
        self
    }

    /// A file of the user's that can't be read.
    pub fn unreadable(path: &Path, error: impl Display) -> Self {
        Self::usage("file-unreadable", format!("{}: {error}", path.display()))
            .hint("name a file that is there and that you may read")
    }

    /// A file of the user's that can't be written.
    pub fn unwritable(path: &Path, error: impl Display) -> Self {
        Self::new(
            Kind::Failed,
            "write-failed",
            format!("{}: {error}", path.display()),
        )
        .hint("name a place in a directory that is there and that you may write to")
    }

    /// A refusal while something was verified.
    pub fn refused(refusal: &Refusal) -> Self {
        let mut failure = Self::new(Kind::Refused, refusal.code(), refusal)
            .maybe_hint(refusal.hint().map(str::to_owned));
        if let Ok(Value::Object(details)) = serde_json::to_value(refusal) {
            failure.details = details;
        }
        failure
    }

    /// The failure as the value that `--json` prints.
    pub fn to_json(&self) -> Value {
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

impl From<HostError> for Error {
    fn from(error: HostError) -> Self {
        let kind = match error {
            // It is the policy that is wrong.
            HostError::Workspace { .. } => Kind::Usage,
            _ => Kind::Failed,
        };
        Self::new(kind, error.code(), &error)
            .maybe_hint(error.hint())
            .caused_by(error)
    }
}

impl From<ConfineError> for Error {
    fn from(error: ConfineError) -> Self {
        Self::new(Kind::Failed, error.code(), &error)
            .maybe_hint(error.hint().map(|hint| hint.to_string()))
            .caused_by(error)
    }
}

impl From<toolward_store::Error> for Error {
    fn from(error: toolward_store::Error) -> Self {
        use toolward_store::Error as Store;
        let kind = match &error {
            Store::Refused(refusal) => return Self::refused(refusal),
            Store::Content(error) => return content_error(error, Kind::Refused),
            Store::Duplicate { .. }
            | Store::SurfaceMismatch { .. }
            | Store::ObjectMissing { .. }
            | Store::ObjectChanged { .. }
            | Store::PublisherChanged { .. } => Kind::Refused,
            _ => Kind::Failed,
        };
        Self::new(kind, error.code(), &error)
            .maybe_hint(error.hint().map(|hint| hint.to_string()))
            .caused_by(error)
    }
}

impl From<toolward_registry::Failure> for Error {
    fn from(failure: toolward_registry::Failure) -> Self {
        if let Some(refusal) = failure.refusal() {
            return Self::refused(refusal);
        }
        Self::new(Kind::Failed, failure.code(), &failure)
            .maybe_hint(failure.hint().map(|hint| hint.to_string()))
            .caused_by(failure)
    }
}

/// A bundle that is not what it should be. One that was verified is
/// [refused](Kind::Refused); a directory under work has [failed](Kind::Failed) its
/// check.
pub fn content_error(error: &ContentError, kind: Kind) -> Error {
    Error::new(kind, error.code(), error)
        .maybe_hint(error.hint())
        .with_diagnostics(error.diagnostics())
}
