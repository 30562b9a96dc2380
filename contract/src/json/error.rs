//! Why a text is not accepted as JSON.

use crate::diagnostic::{Diagnostic, Position};

/// Which rule a text broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum JsonErrorKind {
    /// Not JSON (RFC 8259), or not UTF-8.
    Syntax,
    /// Something follows the value.
    TrailingData,
    /// A key occurs twice in one object.
    DuplicateKey,
    /// More levels than [`super::Limits::depth`].
    TooDeep,
    /// More bytes than [`super::Limits::bytes`].
    TooLarge,
    /// More values than [`super::Limits::values`].
    TooMany,
    /// Values that take more memory than [`super::parse_within`] may take.
    TooMuchMemory,
    /// An integer outside ±(2^53 − 1).
    IntegerRange,
    /// A key that serde_json reads as an instruction to itself.
    ReservedKey,
}

/// Why a text is not accepted as JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (line {line}, column {column})")]
pub struct JsonError {
    /// Which rule was broken.
    pub kind: JsonErrorKind,
    /// What was expected and what was found, without the place.
    pub message: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in bytes, from 1. For values that never were text, line and column are 1.
    pub column: u32,
}

impl JsonError {
    /// Stable kebab-case code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.info().code
    }

    /// The finding in the file that the text comes from. Its column counts characters.
    #[must_use]
    pub fn diagnostic(&self, file: &str, text: &[u8]) -> Diagnostic {
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        let before = lines.take(usize::try_from(self.line - 1).unwrap_or(usize::MAX));
        let start: usize = before.map(<[u8]>::len).sum();
        let column = usize::try_from(self.column - 1).unwrap_or(usize::MAX);
        let at = Position::of_offset(text, start.saturating_add(column));
        Diagnostic::new(self.info(), file, at, self.message.clone())
    }

    pub(crate) fn info(&self) -> &'static crate::Code {
        use crate::codes as c;
        match self.kind {
            JsonErrorKind::Syntax => &c::JSON_SYNTAX,
            JsonErrorKind::TrailingData => &c::JSON_TRAILING_DATA,
            JsonErrorKind::DuplicateKey => &c::JSON_DUPLICATE_KEY,
            JsonErrorKind::TooDeep => &c::JSON_TOO_DEEP,
            JsonErrorKind::TooLarge => &c::JSON_TOO_LARGE,
            JsonErrorKind::TooMany | JsonErrorKind::TooMuchMemory => &c::JSON_TOO_MANY,
            JsonErrorKind::IntegerRange => &c::JSON_INTEGER_RANGE,
            JsonErrorKind::ReservedKey => &c::JSON_RESERVED_KEY,
        }
    }

    pub(super) fn new(
        kind: JsonErrorKind,
        message: impl Into<String>,
        (line, column): (usize, usize),
    ) -> Self {
        let place = |n: usize| u32::try_from(n.max(1)).unwrap_or(u32::MAX);
        JsonError {
            kind,
            message: message.into(),
            line: place(line),
            column: place(column),
        }
    }
}
