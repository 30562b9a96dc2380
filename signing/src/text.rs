//! Characters and syntax that no signed text may have, and quoting of hostile text for messages.

use std::fmt::Write as _;

use toml_parser::Source;
use toml_parser::lexer::TokenKind;
use toolward_support::fields::Position;

use crate::error::{ErrorKind, Refusal};

/// How much hostile text a message repeats, in characters: enough to recognise it, too little to
/// flood a terminal.
const MAX_QUOTED_CHARS: usize = 80;

pub use toolward_support::text::is_hidden;

/// Hostile text between quotation marks, shortened, with misleading characters escaped.
pub(crate) fn quoted(text: &str) -> String {
    toolward_support::text::quoted(text, MAX_QUOTED_CHARS)
}

/// A parser's message, which may repeat hostile text, on one line of bounded length.
pub(crate) fn visible(message: &str) -> String {
    toolward_support::text::visible_line(message.trim_end(), MAX_QUOTED_CHARS * 4)
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

/// Checks the rules of signed text, which ensure that a person sees exactly the signed content.
/// `name` is the name of the text in messages.
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
    format!("{name}:{}", Position::of_offset(bytes, offset))
}

/// A basic string of TOML 1.0.
pub(crate) fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if is_hidden(c) => {
                // Writing to a String can't fail.
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Returns the offset in bytes and the name of the first syntax in `text` that TOML 1.0 lacks: a
/// `\e` or `\x` escape; a line feed, comment or trailing comma in an inline table; or a time
/// without seconds. The `toml` crate, which parses the text afterwards with the same lexer, accepts
/// TOML 1.1.
pub(crate) fn first_newer(text: &str) -> Option<(usize, &'static str)> {
    let mut open = Vec::new();
    // Whether only white space followed the last comma.
    let mut after_comma = false;
    for token in Source::new(text).lex() {
        let (kind, start) = (token.kind(), token.span().start());
        let raw = text.get(start..token.span().end()).unwrap_or_default();
        let in_inline_table = open.last() == Some(&TokenKind::LeftCurlyBracket);
        let (within, what) = match kind {
            TokenKind::Newline | TokenKind::Comment if in_inline_table => {
                (Some(0), "a line feed or comment in an inline table")
            }
            TokenKind::RightCurlyBracket if in_inline_table && after_comma => {
                (Some(0), "a trailing comma in an inline table")
            }
            TokenKind::BasicString | TokenKind::MlBasicString => {
                (newer_escape(raw), "a `\\e` or `\\x` escape")
            }
            TokenKind::Atom => (short_time(raw), "a time without seconds"),
            _ => (None, ""),
        };
        if let Some(within) = within {
            return Some((start + within, what));
        }
        match kind {
            TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket => open.push(kind),
            TokenKind::RightSquareBracket | TokenKind::RightCurlyBracket => {
                open.pop();
            }
            _ => {}
        }
        after_comma = match kind {
            TokenKind::Comma => true,
            TokenKind::Whitespace | TokenKind::Newline | TokenKind::Comment => after_comma,
            _ => false,
        };
    }
    None
}

/// The first backslash of an escape that TOML 1.0 lacks.
fn newer_escape(string: &str) -> Option<usize> {
    let mut bytes = string.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        if byte == b'\\' && matches!(bytes.next(), Some((_, b'e' | b'x'))) {
            return Some(at);
        }
    }
    None
}

/// The position of the first colon of a time without seconds: TOML 1.0 requires `HH:MM:SS`. Outside
/// strings, a colon occurs only in a time and in its offset (`+01:00`).
fn short_time(atom: &str) -> Option<usize> {
    let colon = atom.find(':')?;
    let (before, after) = atom.split_at(colon);
    let is_offset = matches!(before.bytes().rev().nth(2), Some(b'+' | b'-'));
    let digits = |at: usize| {
        let pair = after.get(at..at + 2);
        pair.is_some_and(|pair| pair.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let has_seconds = after.as_bytes().get(3) == Some(&b':') && digits(4);
    (!is_offset && digits(1) && !has_seconds).then_some(colon)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_shows_what_would_mislead_and_stays_short() {
        assert_eq!(quoted("a\u{202e}b\n"), "\"a\\u{202e}b\\n\"");
        assert!(quoted(&"x".repeat(10_000)).chars().count() < 100);
    }

    #[test]
    fn what_toml_1_1_added_is_found() {
        for (text, offset) in [
            ("a = \"\\e\"", 5),
            ("a = \"\\x41\"", 5),
            ("a = \"\"\"\n\\x41\"\"\"", 8),
            ("a = { b = 1,\n c = 2 }", 12),
            ("a = {\n}", 5),
            ("a = { b = 1, }", 13),
            ("a = [{ b = [1], }]", 16),
            ("a = { b = 1 # c", 12),
            ("a = 07:32", 6),
            ("a = 1979-05-27T07:32Z", 17),
            ("a = 1979-05-27 07:32", 17),
            ("a = 1979-05-27T07:32+01:00", 17),
            ("a = [07:32, 1]", 7),
        ] {
            let found = first_newer(text).map(|(offset, _)| offset);
            assert_eq!(found, Some(offset), "{text:?}");
        }
    }

    #[test]
    fn toml_1_0_passes() {
        for text in [
            "",
            "a = \"\\\\e \\\\x \\\" \\u0065\"",
            "a = '\\e \\x'",
            "a = '''\n\\e ' '' '''",
            "a = \"\"\"\n\\\"\"\" \"\" x\"\"\"\"\"\nb = { c = \"}\" }",
            "# { \\e\na = [\n1, # one\n2,\n]",
            "a = { b = 1, c = [ 1, ] }",
            "a = {}",
            "a = { b = \"x,\" }",
            "a = 07:32:00\nb = 1979-05-27T07:32:00.5+01:00\nc = 1979-05-27T07:32:00-07:00",
            "\"a:12\" = 1 # 12:34",
        ] {
            assert_eq!(first_newer(text), None, "{text:?}");
        }
    }

    #[test]
    fn unfinished_text_ends_the_search() {
        for text in ["\"", "\"\"\"", "'", "\"\\", "{", "[", "#", "12:", "]}"] {
            let _ = first_newer(text);
        }
    }
}
