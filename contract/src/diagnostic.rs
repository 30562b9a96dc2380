//! Findings about a file: code, place, message and hint. Other crates print them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

pub use toolward_schema::diagnostic::{
    Code, Diagnostic, Excerpt, Parsed, Position, Severity, attach,
};

/// The tables of all findings about documents.
pub const TABLES: &[&[Code]] = &[crate::codes::CODES, toolward_schema::codes::CODES];

/// The codes of all findings about documents.
pub fn codes() -> impl Iterator<Item = &'static Code> {
    TABLES.iter().copied().flatten()
}

/// Collects the findings about one file.
pub(crate) struct FileReport<'f> {
    file: &'f str,
    diagnostics: RefCell<Vec<Diagnostic>>,
    follows: Cell<bool>,
    /// The names of absent fields for which a misspelt key was found.
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

    /// Adds a finding about this file that was made elsewhere.
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

    /// Drops the warnings that have another code.
    pub(crate) fn warn_only_of(&self, code: &Code) {
        let kept = |found: &Diagnostic| found.is_error() || found.code == code.code;
        self.diagnostics.borrow_mut().retain(kept);
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.diagnostics.borrow().iter().any(Diagnostic::is_error)
    }

    /// The result of `read`; `None` if `read` reports an error, since a partly read value must not
    /// be checked further.
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

    /// Notes that a reported key is a misspelling of this field. The field's absence is then not
    /// reported.
    pub(crate) fn misspelt(&self, field: String) {
        self.misspelt.borrow_mut().insert(field);
    }

    /// Returns `value` only if no error was reported for this file or, with
    /// [`FileReport::follows`], for another. If `value` is missing, an error must have been
    /// reported.
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

/// The findings that an absent field causes, besides the finding that it is missing.
const FOLLOWING: [(&str, &Code); 4] = [
    ("network", &crate::codes::HTTP_EGRESS),
    ("base_url", &crate::codes::HTTP_EGRESS),
    ("base_url", &crate::codes::HTTP_FORMAT_OLD),
    ("default_headers", &crate::codes::HTTP_SECRET_UNUSED),
];

/// Drops the findings that only follow from the absence of these fields.
fn drop_following(found: &mut Vec<Diagnostic>, absent: &BTreeSet<String>) {
    let missing: BTreeSet<String> = absent.iter().map(|name| missing(name)).collect();
    let follows = |one: &Diagnostic| {
        let mut following = FOLLOWING.iter();
        one.code == crate::codes::MISSING_FIELD.code && missing.contains(&one.message)
            || following.any(|(name, code)| code.code == one.code && absent.contains(*name))
    };
    found.retain(|one| !follows(one));
}

/// The message of a finding about an absent field.
pub(crate) fn missing(name: &str) -> String {
    format!("expected the field `{name}`, found none")
}
