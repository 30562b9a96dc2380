//! Line and column. The one place that counts them.

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
            // UTF-8 continuation bytes begin no character.
            column: after(line.iter().filter(|byte| **byte & 0xc0 != 0x80).count()),
        }
    }

    /// The place behind a character that stands here.
    #[must_use]
    pub fn after(self, character: char) -> Position {
        if character == '\n' {
            Position {
                line: self.line.saturating_add(1),
                column: 1,
            }
        } else {
            Position {
                line: self.line,
                column: self.column.saturating_add(1),
            }
        }
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
