//! Characters that no signed text may hold, and quoting of hostile text for messages.

use std::fmt::Write as _;

use crate::error::{ErrorKind, Refusal};

/// The longest piece of hostile text that a message repeats, in characters: enough to recognise it, too
/// little to flood a terminal.
const MAX_QUOTED_CHARS: usize = 80;

/// Whether a character may mislead a person who reads the text: it shows nothing of its own, or changes how
/// its neighbours show. No signed text may hold one, but for line feeds.
#[must_use]
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            // soft hyphen, combining grapheme joiner, Arabic letter mark
            '\u{ad}' | '\u{34f}' | '\u{61c}'
            // Hangul and Khmer fillers, Mongolian variation selectors
            | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            // zero-width characters and bidirectional marks
            | '\u{200b}'..='\u{200f}'
            // line and paragraph separator, bidirectional embeddings
            | '\u{2028}'..='\u{202e}'
            // word joiner, invisible operators, bidirectional isolates
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            // private use, whose look is anybody's guess
            | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}'
            // musical and shorthand format controls
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            // tags and the supplementary variation selectors
            | '\u{e0000}'..='\u{e0fff}')
}

/// Hostile text between quotation marks, shortened, with misleading characters escaped.
pub(crate) fn quoted(text: &str) -> String {
    shown(text, MAX_QUOTED_CHARS, "\"")
}

/// A parser's message, which may repeat hostile text, on one line of bounded length.
pub(crate) fn visible(message: &str) -> String {
    shown(message.trim_end(), MAX_QUOTED_CHARS * 4, "")
}

fn shown(text: &str, max: usize, mark: &str) -> String {
    let mut out = String::from(mark);
    for (position, c) in text.chars().enumerate() {
        if position == max {
            out.push('…');
            break;
        }
        if is_hidden(c) || (!mark.is_empty() && matches!(c, '"' | '\\')) {
            // Writing to a String can't fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out.push_str(mark);
    out
}

/// [`quoted`] for bytes that may not be UTF-8.
pub(crate) fn quoted_bytes(bytes: &[u8]) -> String {
    quoted(&String::from_utf8_lossy(
        bytes.get(..MAX_QUOTED_CHARS * 4).unwrap_or(bytes),
    ))
}

/// A count of bytes, for messages.
pub(crate) fn bytes(count: u64) -> String {
    format!("{count} bytes")
}

/// The rules of text that is signed: each is there so that what a person sees is what is signed. `name` is
/// what the text is called in messages.
pub(crate) fn plain<'a>(
    bytes: &'a [u8],
    max_bytes: usize,
    reason: ErrorKind,
    name: &str,
) -> Result<&'a str, Refusal> {
    let refusal = || Refusal::new(reason);
    if bytes.len() > max_bytes {
        return Err(refusal()
            .at(name)
            .expected(format!("at most {max_bytes} bytes"))
            .found(self::bytes(bytes.len() as u64)));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        refusal()
            .at(place(name, bytes, error.valid_up_to()))
            .expected("UTF-8")
            .found("bytes that are not")
    })?;
    if let Some((offset, c)) = text
        .char_indices()
        .find(|(_, c)| is_hidden(*c) && *c != '\n')
    {
        let found = match c {
            '\r' => "a carriage return".to_owned(),
            '\t' => "a tab".to_owned(),
            '\u{feff}' => "a byte order mark".to_owned(),
            c => format!("the character U+{:04X}", u32::from(c)),
        };
        return Err(refusal()
            .at(place(name, bytes, offset))
            .expected("lines that end in LF, without control or bidirectional characters")
            .found(found));
    }
    Ok(text)
}

/// `name:line:column` of a byte offset in `bytes`.
pub(crate) fn place(name: &str, bytes: &[u8], offset: usize) -> String {
    let (line, column) = position(bytes, offset);
    format!("{name}:{line}:{column}")
}

/// Line and column, both from 1, the column in characters, of a byte offset in `text`.
pub(crate) fn position(text: &[u8], offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let start = before
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |newline| newline + 1);
    let column = before
        .get(start..)
        .unwrap_or_default()
        .iter()
        // UTF-8 continuation bytes begin no character.
        .filter(|byte| **byte & 0xc0 != 0x80)
        .count()
        + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_shows_what_would_mislead_and_stays_short() {
        assert_eq!(quoted("a\u{202e}b\n"), "\"a\\u{202e}b\\u{a}\"");
        assert!(quoted(&"x".repeat(10_000)).chars().count() < 100);
    }

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let text = "é=1\nab".as_bytes();
        assert_eq!(position(text, 0), (1, 1));
        assert_eq!(position(text, 2), (1, 2));
        assert_eq!(position(text, 6), (2, 2));
        assert_eq!(position(text, 99), (2, 3));
    }
}
