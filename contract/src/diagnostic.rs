//! Findings about a file: code, place, message and hint. Not how they are printed.

mod excerpt;
mod following;

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

pub use toolward_fields::Position;
pub use toolward_report::{Code, Severity};

pub use crate::codes::CODES;
pub use excerpt::{Excerpt, attach};
pub(crate) use following::missing;

/// One finding in one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Stable kebab-case code, one of [`CODES`].
    pub code: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What was expected and what was found, in one sentence.
    pub message: String,
    /// The file, as the caller named it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What to do about it, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The line that it points at, where whoever read the file [gave it](attach). For people: programs have
    /// the file.
    #[serde(skip)]
    pub excerpt: Option<Excerpt>,
}

impl Diagnostic {
    /// A finding with the code's own severity.
    #[must_use]
    pub fn new(code: &Code, file: &str, at: Position, message: impl Into<String>) -> Self {
        Diagnostic {
            code: code.code,
            severity: code.severity,
            message: message.into(),
            file: file.to_owned(),
            line: at.line,
            column: at.column,
            hint: None,
            excerpt: None,
        }
    }

    /// The same finding with a hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Where it points.
    #[must_use]
    pub fn position(&self) -> Position {
        Position {
            line: self.line,
            column: self.column,
        }
    }

    /// Whether the file is refused because of it.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}:{}: {}[{}]: {}",
            self.file, self.line, self.column, self.severity, self.code, self.message
        )?;
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

/// What came of reading a document.
#[derive(Clone, Debug)]
pub struct Parsed<T> {
    /// The validated value; `None` when `diagnostics` holds an error, or when the document depends on a file of its
    /// [scope](crate::Scope) that has errors of its own.
    pub value: Option<T>,
    /// Everything found, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

impl<T> Parsed<T> {
    /// Whether the document was refused.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.value.is_none()
    }

    /// The value, or the diagnostics that refused it.
    ///
    /// # Errors
    /// All diagnostics, warnings included, when there is no value.
    pub fn into_result(self) -> Result<T, Vec<Diagnostic>> {
        self.value.ok_or(self.diagnostics)
    }

    /// The same diagnostics around another value.
    #[must_use]
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Parsed<U> {
        Parsed {
            value: self.value.map(change),
            diagnostics: self.diagnostics,
        }
    }
}

/// Collects the diagnostics of one file.
pub(crate) struct Report<'f> {
    file: &'f str,
    diagnostics: Vec<Diagnostic>,
    follows: bool,
    /// The names of absent fields that a misspelt key stands for.
    misspelt: BTreeSet<String>,
}

impl<'f> Report<'f> {
    pub(crate) fn new(file: &'f str) -> Self {
        Report {
            file,
            diagnostics: Vec::new(),
            follows: false,
            misspelt: BTreeSet::new(),
        }
    }

    /// The file, as the caller named it.
    pub(crate) fn file(&self) -> &'f str {
        self.file
    }

    pub(crate) fn add(&mut self, code: &Code, at: Position, message: impl Into<String>) {
        self.diagnostics
            .push(Diagnostic::new(code, self.file, at, message));
    }

    /// A finding about this file that was made elsewhere.
    pub(crate) fn push(&mut self, found: Diagnostic) {
        self.diagnostics.push(found);
    }

    pub(crate) fn add_with_hint(
        &mut self,
        code: &Code,
        at: Position,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.diagnostics
            .push(Diagnostic::new(code, self.file, at, message).with_hint(hint));
    }

    /// Drops the warnings with other codes than this one.
    pub(crate) fn warn_only_of(&mut self, code: &Code) {
        let kept = |found: &Diagnostic| found.is_error() || found.code == code.code;
        self.diagnostics.retain(kept);
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// What `read` gives, if it reports no error: what is read in part is not judged.
    pub(crate) fn unbroken<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> Option<T> {
        let before = self.diagnostics.len();
        let value = read(self);
        let mut since = self.diagnostics.iter().skip(before);
        (!since.any(Diagnostic::is_error)).then_some(value)
    }

    /// Refuses the document for what is wrong with another file, which has errors of its own.
    pub(crate) fn follows(&mut self) {
        self.follows = true;
    }

    /// A key that has been reported stands for this field: that the field is absent is not reported as well.
    pub(crate) fn misspelt(&mut self, field: String) {
        self.misspelt.insert(field);
    }

    /// `value` counts only when no error was reported; a missing value without an error can't be.
    pub(crate) fn finish<T>(mut self, value: Option<T>) -> Parsed<T> {
        following::drop_following(&mut self.diagnostics, &self.misspelt);
        self.diagnostics.sort_by_key(Diagnostic::position);
        let refused = self.follows || self.has_errors();
        debug_assert!(refused || value.is_some(), "a refusal needs a diagnostic");
        Parsed {
            value: if refused { None } else { value },
            diagnostics: self.diagnostics,
        }
    }
}
