//! The error of this crate: a stable code, what happened, and the next step.

mod code;

use std::fmt::{self, Display};
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolward_bundle::content::ContentError;
use toolward_contract::diagnostic::Diagnostic;
use toolward_host::HostError;
use toolward_host::confine::ConfineError;
use toolward_report::Coded;
use toolward_signing::Refusal;

pub use code::Code;

/// The kind of a failure; the command's exit code follows from it. Ordered by
/// severity, so that the worst of several failures is their maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A person or the policy denied it.
    Denied,
    /// The request, or a file of the operator, is invalid.
    Usage,
    /// The operation failed.
    Failed,
    /// Verification failed.
    Refused,
}

/// The field of the JSON form that has fewer lines than `lines`.
const NARROWER: &str = "narrower_lines";

/// An error with a stable code and hints.
///
/// ```
/// use toolward_operator::{Code, Error, Kind};
///
/// let error = Error::usage(Code::SettingInvalid, "--days 0").hint("give a number from 1 to 90");
/// assert_eq!((error.kind, error.to_string().as_str()), (Kind::Usage, "--days 0"));
/// assert_eq!(error.to_json()["error"]["hint"], "give a number from 1 to 90");
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Error {
    /// The kind of failure.
    pub kind: Kind,
    /// The stable code; the book lists them all.
    pub code: String,
    /// What happened. May contain untrusted text: sanitise it before showing it.
    pub message: String,
    /// The next steps, the likeliest first.
    pub hints: Vec<String>,
    /// Lines for a file of the user, shown as they are.
    pub lines: Option<String>,
    /// The cause, as JSON text.
    pub cause: Option<String>,
    /// Further fields of the JSON form, such as the place of a refusal.
    pub details: Map<String, Value>,
    /// The problems with their positions, if there are several or one has a position.
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
    /// A failure with a code from this crate's [table](Code) or another crate's.
    pub fn new(kind: Kind, code: impl toolward_report::Kind, message: impl Display) -> Self {
        Self::with_code(kind, code.row().code, message)
    }

    /// A failure with a code that is known only as text.
    pub fn with_code(kind: Kind, code: &str, message: impl Display) -> Self {
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

    /// A failure with the message, code and hint of another layer's error.
    pub fn of(kind: Kind, error: impl Coded + std::error::Error + Send + Sync + 'static) -> Self {
        Self::with_code(kind, error.code(), &error)
            .maybe_hint(error.hint())
            .caused_by(error)
    }

    /// A failure of [`Kind::Failed`].
    pub fn failed(code: impl toolward_report::Kind, message: impl Display) -> Self {
        Self::new(Kind::Failed, code, message)
    }

    /// A failure of [`Kind::Usage`].
    pub fn usage(code: impl toolward_report::Kind, message: impl Display) -> Self {
        Self::new(Kind::Usage, code, message)
    }

    /// Adds a next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Adds the lines that a policy file lacks. Of lines that are all comments, which say why no line helps, it
    /// adds what they say.
    #[must_use]
    pub fn lines_for(mut self, file: &Path, lines: String) -> Self {
        let says = |line: &str| !line.is_empty() && !line.starts_with('#');
        if !lines.lines().any(says) {
            let reasons = lines
                .lines()
                .map(|line| line.trim_start_matches(['#', ' ']));
            let reasons: Vec<&str> = reasons.filter(|reason| !reason.is_empty()).collect();
            if !reasons.is_empty() {
                self.hints
                    .push(format!("{}: {}", file.display(), reasons.join(" ")));
            }
        } else {
            self.hints.push(format!(
                "as far as you agree with them, add these lines to {}",
                file.display()
            ));
            self.lines = Some(lines);
        }
        self
    }

    /// Adds fewer lines, which give less than those of [`Error::lines_for`]; none if they are empty.
    #[must_use]
    pub fn or_only(mut self, lines: String) -> Self {
        if !lines.is_empty() && self.lines.is_some() {
            self.details.insert(NARROWER.to_owned(), json!(lines));
        }
        self
    }

    /// The lines of [`Error::or_only`].
    pub fn narrower(&self) -> Option<&str> {
        self.details.get(NARROWER)?.as_str()
    }

    /// Adds a next step, if there is one.
    #[must_use]
    pub fn maybe_hint(mut self, hint: Option<impl Into<String>>) -> Self {
        self.hints.extend(hint.map(Into::into));
        self
    }

    /// The same failure with another kind.
    #[must_use]
    pub fn of_kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// The same failure with another message.
    #[must_use]
    pub fn saying(self, message: String) -> Self {
        Self { message, ..self }
    }

    /// The same failure, with the path of a file before its message.
    #[must_use]
    pub fn in_file(self, path: &Path) -> Self {
        let message = format!("{}: {}", path.display(), self.message);
        self.saying(message)
    }

    /// The same failure, with the error of the layer below as its source.
    #[must_use]
    pub fn caused_by(self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        let source = Some(source.into().into());
        Self { source, ..self }
    }

    /// Adds problems with their positions.
    #[must_use]
    pub fn with_diagnostics(self, diagnostics: Vec<Diagnostic>) -> Self {
        Self {
            diagnostics,
            ..self
        }
    }

    /// A file of the user can't be read.
    pub fn unreadable(
        path: &Path,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        let error = error.into();
        Self::usage(Code::FileUnreadable, &error)
            .in_file(path)
            .hint("name a file that is there and that you may read")
            .caused_by(error)
    }

    /// A file of the user can't be written.
    pub fn unwritable(
        path: &Path,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        let error = error.into();
        Self::failed(Code::WriteFailed, &error)
            .in_file(path)
            .hint("name a place in a directory that is there and that you may write to")
            .caused_by(error)
    }

    /// The async runtime or a thread can't be started.
    pub fn runtime(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::failed(Code::RuntimeUnavailable, &error).caused_by(error)
    }

    /// A refusal by verification.
    pub fn refused(refusal: Refusal) -> Self {
        let details = serde_json::to_value(&refusal);
        let mut failure = Self::of(Kind::Refused, refusal);
        if let Ok(Value::Object(details)) = details {
            failure.details = details;
        }
        failure
    }

    /// The JSON value that `--json` prints.
    pub fn to_json(&self) -> Value {
        let mut error = self.details.clone();
        error.insert("code".to_owned(), json!(self.code));
        error.insert("message".to_owned(), json!(self.message));
        if !self.hints.is_empty() {
            error.insert("hint".to_owned(), json!(self.hints.join("\n")));
        }
        if let Some(lines) = &self.lines {
            error.insert("lines".to_owned(), json!(lines));
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
            // The policy is invalid.
            HostError::Workspace { .. } => Kind::Usage,
            _ => Kind::Failed,
        };
        Self::of(kind, error)
    }
}

impl From<ConfineError> for Error {
    fn from(error: ConfineError) -> Self {
        Self::of(Kind::Failed, error)
    }
}

impl From<toolward_store::Error> for Error {
    fn from(error: toolward_store::Error) -> Self {
        use toolward_store::Error as Store;
        let kind = match error {
            Store::Refused(refusal) => return Self::refused(refusal),
            Store::Content(error) => return content_error(*error, Kind::Refused),
            Store::Duplicate { .. }
            | Store::SurfaceMismatch { .. }
            | Store::ObjectMissing { .. }
            | Store::ObjectChanged { .. }
            | Store::PublisherChanged { .. }
            | Store::ActionsChanged { .. } => Kind::Refused,
            _ => Kind::Failed,
        };
        Self::of(kind, error)
    }
}

impl From<toolward_ledger::Error> for Error {
    fn from(error: toolward_ledger::Error) -> Self {
        Self::of(Kind::Failed, error)
    }
}

impl From<toolward_registry::Failure> for Error {
    fn from(failure: toolward_registry::Failure) -> Self {
        let source = std::error::Error::source(&failure);
        match source.and_then(|source| source.downcast_ref::<Refusal>()) {
            Some(refusal) => Self::refused(refusal.clone()),
            None => Self::of(Kind::Failed, failure),
        }
    }
}

/// The error for an invalid bundle. A verified bundle is [refused](Kind::Refused); a
/// directory under work [fails](Kind::Failed) its check.
///
/// ```
/// use toolward_bundle::content::Content;
/// use toolward_operator::{Kind, content_error};
///
/// let error = Content::from_dev("nowhere".as_ref()).unwrap_err();
/// assert_eq!(content_error(error, Kind::Failed).kind, Kind::Failed);
/// ```
pub fn content_error(error: ContentError, kind: Kind) -> Error {
    let diagnostics = error.diagnostics().to_vec();
    Error::of(kind, error).with_diagnostics(diagnostics)
}
