//! Characters that no signed text may hold, and quoting of hostile text for messages.

use std::fmt::Write as _;

use toolward_support::fields::Position;

use crate::error::{ErrorKind, Refusal};

/// The longest piece of hostile text that a message repeats, in characters: enough to recognise it, too
/// little to flood a terminal.
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

/// The rules of text that is signed: they ensure that a person sees what is signed. `name` is the name of
/// the text in messages.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_shows_what_would_mislead_and_stays_short() {
        assert_eq!(quoted("a\u{202e}b\n"), "\"a\\u{202e}b\\n\"");
        assert!(quoted(&"x".repeat(10_000)).chars().count() < 100);
    }
}
