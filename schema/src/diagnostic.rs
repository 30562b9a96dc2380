//! Findings about a file: code, place, message and hint. Not how they are printed.

mod excerpt;

use std::fmt;

use serde::Serialize;

pub use toolward_support::fields::Position;
pub use toolward_support::report::{Code, Severity};

pub use excerpt::{Excerpt, attach};

/// One finding in one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Stable kebab-case code.
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
    /// The line that it points at, if the reader of the file [attached it](attach). For people: programs have
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
    pub fn position(&self) -> Position {
        Position {
            line: self.line,
            column: self.column,
        }
    }

    /// Whether the file is refused because of it.
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
    /// bundle that has errors.
    pub value: Option<T>,
    /// Everything found, in the order of the file.
    pub diagnostics: Vec<Diagnostic>,
}

impl<T> Parsed<T> {
    /// Whether the document was refused.
    pub fn is_refused(&self) -> bool {
        self.value.is_none()
    }

    /// The value, or the diagnostics that refused it.
    ///
    /// # Errors
    /// All diagnostics, warnings included, if the value is missing.
    pub fn into_result(self) -> Result<T, Vec<Diagnostic>> {
        self.value.ok_or(self.diagnostics)
    }

    /// The same diagnostics around another value.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Parsed<U> {
        Parsed {
            value: self.value.map(change),
            diagnostics: self.diagnostics,
        }
    }
}
