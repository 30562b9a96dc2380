//! Findings about a file: code, place, message and hint. Not how they are printed.

mod excerpt;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

pub use toolward_support::fields::Position;
pub use toolward_support::report::{Code, Severity};

use crate::codes;

pub use crate::codes::CODES;
pub use excerpt::{Excerpt, attach};

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
    /// [scope](crate::Scope) that has errors.
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
    /// All diagnostics, warnings included, if the value is missing.
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

/// Collects the findings about one file.
pub(crate) struct FileReport<'f> {
    file: &'f str,
    diagnostics: RefCell<Vec<Diagnostic>>,
    follows: Cell<bool>,
    /// The names of absent fields that a misspelt key stands for.
    misspelt: RefCell<BTreeSet<String>>,
}

impl<'f> FileReport<'f> {
    pub(crate) fn new(file: &'f str) -> Self {
        FileReport {
            file,
            diagnostics: RefCell::default(),
            follows: Cell::new(false),
            misspelt: RefCell::default(),
        }
    }

    /// The file, as the caller named it.
    pub(crate) fn file(&self) -> &'f str {
        self.file
    }

    pub(crate) fn add(&self, code: &Code, at: Position, message: impl Into<String>) {
        self.push(Diagnostic::new(code, self.file, at, message));
    }

    /// A finding about this file that was made elsewhere.
    pub(crate) fn push(&self, found: Diagnostic) {
        self.diagnostics.borrow_mut().push(found);
    }

    pub(crate) fn add_with_hint(
        &self,
        code: &Code,
        at: Position,
        message: impl Into<String>,
        hint: impl Into<Option<String>>,
    ) {
        let found = Diagnostic::new(code, self.file, at, message);
        let hint = hint.into();
        self.push(Diagnostic { hint, ..found });
    }

    /// Drops the warnings with other codes than this one.
    pub(crate) fn warn_only_of(&self, code: &Code) {
        let kept = |found: &Diagnostic| found.is_error() || found.code == code.code;
        self.diagnostics.borrow_mut().retain(kept);
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.diagnostics.borrow().iter().any(Diagnostic::is_error)
    }

    /// What `read` gives, if it reports no error: a value that is read in part is not judged.
    pub(crate) fn unbroken<T>(&self, read: impl FnOnce() -> T) -> Option<T> {
        let before = self.diagnostics.borrow().len();
        let value = read();
        let diagnostics = self.diagnostics.borrow();
        let mut since = diagnostics.iter().skip(before);
        (!since.any(Diagnostic::is_error)).then_some(value)
    }

    /// Refuses the document for an error in another file, which is reported there.
    pub(crate) fn follows(&self) {
        self.follows.set(true);
    }

    /// A key that has been reported stands for this field, whose absence is therefore not reported.
    pub(crate) fn misspelt(&self, field: String) {
        self.misspelt.borrow_mut().insert(field);
    }

    /// `value` counts only if no error was reported; a missing value needs an error.
    pub(crate) fn finish<T>(self, value: Option<T>) -> Parsed<T> {
        let refused = self.follows.get() || self.has_errors();
        debug_assert!(refused || value.is_some(), "a refusal needs a diagnostic");
        let mut diagnostics = self.diagnostics.into_inner();
        drop_following(&mut diagnostics, &self.misspelt.into_inner());
        diagnostics.sort_by_key(Diagnostic::position);
        Parsed {
            value: value.filter(|_| !refused),
            diagnostics,
        }
    }
}

/// What an absent field leads to, besides the finding that it is missing.
const FOLLOWING: [(&str, &Code); 4] = [
    ("network", &codes::HTTP_EGRESS),
    ("base_url", &codes::HTTP_EGRESS),
    ("base_url", &codes::HTTP_FORMAT_OLD),
    ("default_headers", &codes::HTTP_SECRET_UNUSED),
];

/// Drops the findings that only follow from the absence of these fields.
fn drop_following(found: &mut Vec<Diagnostic>, absent: &BTreeSet<String>) {
    let missing: BTreeSet<String> = absent.iter().map(|name| missing(name)).collect();
    let follows = |one: &Diagnostic| {
        let mut following = FOLLOWING.iter();
        one.code == codes::MISSING_FIELD.code && missing.contains(&one.message)
            || following.any(|(name, code)| code.code == one.code && absent.contains(*name))
    };
    found.retain(|one| !follows(one));
}

/// The message of a finding about an absent field.
pub(crate) fn missing(name: &str) -> String {
    format!("expected the field `{name}`, found none")
}
