//! Findings about a file: code, place, message and hint. Other crates print them.

use std::fmt;

use serde::Serialize;

pub use toolward_support::fields::Position;
pub use toolward_support::report::{Code, Severity};

/// One finding in one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Stable kebab-case code.
    pub code: &'static str,
    /// Its severity.
    pub severity: Severity,
    /// The expected and the found value, in one sentence.
    pub message: String,
    /// The file, as the caller named it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What to do about it, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The text of the line, if the reader of the file [attached it](attach). It is for people;
    /// programs have the file.
    #[serde(skip)]
    pub excerpt: Option<Excerpt>,
}

impl Diagnostic {
    /// A finding with the code's own severity.
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

    /// The position of the finding.
    pub fn position(&self) -> Position {
        Position {
            line: self.line,
            column: self.column,
        }
    }

    /// Whether the file is refused because of the finding.
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

/// The result of reading a document.
#[derive(Clone, Debug)]
pub struct Parsed<T> {
    /// The validated value; `None` if `diagnostics` contains an error, or if the document depends
    /// on a file of its bundle that has errors.
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

    /// Converts the value and keeps the diagnostics.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Parsed<U> {
        Parsed {
            value: self.value.map(change),
            diagnostics: self.diagnostics,
        }
    }
}

/// How many characters of a line an excerpt has before the column, and how many from the column on.
const REACH: usize = 120;

/// The largest file that gives excerpts. No accepted document is larger.
const MAX_FILE_BYTES: usize = 1 << 20;

/// How many excerpts are made. A line may be as long as the file, and a file may have thousands of
/// findings.
const MAX_EXCERPTS: usize = 200;

/// A line of a file, or the part of it around a column.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Excerpt {
    /// The text, without the line's end.
    pub text: String,
    /// How many characters of `text` are before the column.
    pub before: usize,
    /// Whether the line starts before `text`.
    pub starts_earlier: bool,
    /// Whether the line continues after `text`.
    pub goes_on: bool,
}

/// Attaches to each finding the text of its line, for at most 200 findings. `text_of` returns the
/// bytes of a file that was read.
///
/// A finding about a whole file, at its first character, gets no line, and neither does a finding
/// in a file that is not text or is larger than 1 MiB.
pub fn attach<'t>(diagnostics: &mut [Diagnostic], text_of: impl Fn(&str) -> Option<&'t [u8]>) {
    let pointing = diagnostics
        .iter_mut()
        .filter(|found| found.excerpt.is_none() && found.position() != Position::START);
    for found in pointing.take(MAX_EXCERPTS) {
        let bytes = text_of(&found.file).filter(|bytes| bytes.len() <= MAX_FILE_BYTES);
        let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
        found.excerpt = text.and_then(|text| excerpt(text, found.position()));
    }
}

fn excerpt(text: &str, at: Position) -> Option<Excerpt> {
    let line = text
        .split('\n')
        .nth(usize::try_from(at.line).ok()?.checked_sub(1)?)?;
    let line = line.strip_suffix('\r').unwrap_or(line);
    let column = usize::try_from(at.column).ok()?.checked_sub(1)?;
    let cut = column.saturating_sub(REACH);
    let mut rest = line.chars().skip(cut);
    let text: String = rest.by_ref().take(column - cut + REACH).collect();
    let before = (column - cut).min(text.chars().count());
    Some(Excerpt {
        before,
        starts_earlier: cut > 0,
        goes_on: rest.next().is_some(),
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes;

    fn excerpt(text: &str, line: u32, column: u32) -> Option<Excerpt> {
        let at = Position { line, column };
        let mut found = [Diagnostic::new(&codes::JSON_SYNTAX, "a", at, "")];
        attach(&mut found, |name| (name == "a").then_some(text.as_bytes()));
        let [found] = found;
        found.excerpt
    }

    #[test]
    fn an_excerpt_is_the_line_that_was_read() {
        let found = excerpt("---\r\nid: é\r\n---\n", 2, 5).unwrap();
        assert_eq!((found.text.as_str(), found.before), ("id: é", 4));
        assert!(!found.starts_earlier && !found.goes_on);
        let past = excerpt("a\nbc", 2, 9).unwrap();
        assert_eq!((past.text.as_str(), past.before), ("bc", 2));
        assert_eq!(excerpt("a\n", 3, 1), None);
    }

    #[test]
    fn of_a_long_line_only_the_part_around_the_column_is_kept() {
        let line = format!("{}x{}", "a".repeat(5000), "b".repeat(5000));
        let found = excerpt(&line, 1, 5001).unwrap();
        assert!(found.starts_earlier && found.goes_on);
        assert_eq!(found.text.chars().nth(found.before), Some('x'));
        assert!(found.text.len() < 300);
    }

    #[test]
    fn a_finding_about_a_whole_file_or_one_that_is_no_text_has_no_excerpt() {
        assert_eq!(excerpt("---\n", 1, 1), None);
        let mut found = [Diagnostic::new(
            &codes::JSON_SYNTAX,
            "a.wasm",
            Position { line: 1, column: 9 },
            "",
        )];
        attach(&mut found, |_| Some(b"\0asm\xff\xff"));
        assert_eq!(found[0].excerpt, None);
    }
}
