//! Line and column, counted here alone, and the byte order mark before a text.

use std::fmt;

use serde::Serialize;

/// A place in a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl Position {
    /// The first character of a file.
    pub const START: Position = Position { line: 1, column: 1 };

    /// The place of a byte offset in `text`. An offset beyond the end is the end.
    #[must_use]
    pub fn of_offset(text: impl AsRef<[u8]>, offset: usize) -> Position {
        let text = text.as_ref();
        let before = text.get(..offset).unwrap_or(text);
        let feed = before.iter().rposition(|byte| *byte == b'\n');
        let (lines, line) = before.split_at(feed.map_or(0, |feed| feed + 1));
        let after = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).saturating_add(1);
        Position {
            line: after(lines.iter().filter(|byte| **byte == b'\n').count()),
            // UTF-8 continuation bytes start no character.
            column: after(line.iter().filter(|byte| **byte & 0xc0 != 0x80).count()),
        }
    }

    /// The place after a character at this place.
    #[must_use]
    pub fn after(self, character: char) -> Position {
        let (line, column) = match character {
            '\n' => (self.line.saturating_add(1), 1),
            _ => (self.line, self.column.saturating_add(1)),
        };
        Position { line, column }
    }
}

impl Default for Position {
    fn default() -> Self {
        Position::START
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A document's text without the byte order mark, which some editors write before UTF-8. It has no meaning: every reader
/// of documents that people write drops it here. Signed text, and text from machines, has none.
///
/// ```
/// assert_eq!(toolward_support::fields::without_mark("\u{feff}---\n"), "---\n");
/// ```
#[must_use]
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// [`without_mark`], of bytes that need not be UTF-8.
#[must_use]
pub fn without_mark_bytes(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let place = |offset| {
            let at = Position::of_offset("é=1\nab", offset);
            (at.line, at.column)
        };
        assert_eq!(place(0), (1, 1));
        assert_eq!(place(2), (1, 2));
        assert_eq!(place(6), (2, 2));
        assert_eq!(place(999), (2, 3));
    }
}
