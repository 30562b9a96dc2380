//! Makes untrusted text safe to show to a person: control, bidirectional, tag and escape characters
//! become visible, and the length is limited. The results are not for programs to read, except for
//! [`visible_json`], which keeps the value of JSON.

use unicode_width::UnicodeWidthChar as _;

/// How many combining marks a character may have. Living scripts need up to five; thousands would
/// cover the lines above.
const MAX_MARKS: usize = 8;

/// Whether a character may mislead a person who reads the text: it is invisible, or changes the
/// look of its neighbours. Signed text may not contain such characters, except line feeds.
pub fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            // soft hyphen, combining grapheme joiner, Arabic letter mark
            '\u{ad}' | '\u{34f}' | '\u{61c}'
            // Hangul and Khmer fillers, Mongolian variation selectors
            | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            // zero-width characters and bidirectional marks
            | '\u{200b}'..='\u{200f}'
            // braille blank
            | '\u{2800}'
            // line and paragraph separator, bidirectional embeddings
            | '\u{2028}'..='\u{202e}'
            // word joiner, invisible operators, bidirectional isolates
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            // private use, whose look is undefined
            | '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}'
            // musical and shorthand format controls
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            // tags and the supplementary variation selectors
            | '\u{e0000}'..='\u{e0fff}')
}

/// Shows `text` in several lines, at most `limit` characters. Line feeds and tabs stay; all other
/// characters that [`visible_line`] replaces are replaced.
///
/// ```
/// use toolward_support::text::{is_hidden, is_plain, visible, visible_json, visible_line};
///
/// let text = "two\nlines \u{202e}turned";
/// assert_eq!(visible(text, 100), "two\nlines \\u{202e}turned");
/// assert_eq!(visible_line(text, 5), "two\\nl… (12 more characters)");
/// assert_eq!(visible_json("\"\u{202e}\""), "\"\\u202e\"");
/// assert!(is_hidden('\u{202e}') && !is_plain(text, 100));
/// ```
pub fn visible(text: &str, limit: usize) -> String {
    show(text, limit, true)
}

/// Shows `text` in one line, at most `limit` characters.
///
/// All characters that move the cursor, hide text or change how it reads are replaced by `\u{…}`
/// (or `\n`, `\r`, `\t`, `\e`): control characters, line and paragraph separators, bidirectional
/// and other formatting characters, tag characters, variation selectors (except one for text or
/// emoji style after a symbol), combining marks from the ninth on one character, and private-use
/// characters.
pub fn visible_line(text: &str, limit: usize) -> String {
    show(text, limit, false)
}

/// Converts JSON text to a form of the same value that is safe to show: the characters that
/// [`visible_line`] replaces become `\uXXXX`, except line feeds. `json` must have no tabs or
/// carriage returns between its tokens. All other such characters can only be in JSON strings, in
/// which the escape means the same character.
pub fn visible_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut units = [0u16; 2];
    let mut cluster = Cluster::default();
    for character in json.chars() {
        if character != '\n' && cluster.hides(character) {
            for unit in character.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(character);
        }
    }
    out
}

/// Shows `text` in one line between quotation marks, at most `limit` characters, as
/// [`visible_line`] does. Quotation marks and backslashes are escaped, so that the text can't fake
/// its end.
pub fn quoted(text: &str, limit: usize) -> String {
    let mut out = String::from("\"");
    let mut cluster = Cluster::default();
    let mut characters = text.chars();
    for character in characters.by_ref().take(limit) {
        let hidden = cluster.hides(character);
        if matches!(character, '"' | '\\') {
            out.push('\\');
        }
        push(&mut out, character, hidden);
    }
    if characters.next().is_some() {
        out.push('…');
    }
    out.push('"');
    out
}

/// Whether [`visible`] and [`visible_line`] certainly return the text unchanged, as for nearly all
/// texts. Avoids a copy for callers that own the text.
pub fn is_plain(text: &str, limit: usize) -> bool {
    // Without an early exit, the compiler can compare many bytes at a time.
    let plain = |all, byte| all & matches!(byte, b' '..=b'~');
    text.len() <= limit && text.bytes().fold(true, plain)
}

fn show(text: &str, limit: usize, lines: bool) -> String {
    if is_plain(text, limit) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len().min(limit));
    let mut cluster = Cluster::default();
    let mut characters = text.chars();
    for character in characters.by_ref().take(limit) {
        let hidden = cluster.hides(character);
        match character {
            '\n' | '\t' if lines => out.push(character),
            _ => push(&mut out, character, hidden),
        }
    }
    let left = characters.count();
    if left > 0 {
        out.push_str(&format!("… ({left} more characters)"));
    }
    out
}

/// The last visible character, with the marks on it.
#[derive(Default)]
struct Cluster {
    base: Option<char>,
    /// How many zero-width characters follow the base.
    marks: usize,
}

impl Cluster {
    /// Whether the next character must be escaped: it is hidden, has too many marks, or is an
    /// unusual variation selector.
    fn hides(&mut self, character: char) -> bool {
        if is_hidden(character) {
            return true;
        }
        if character.width() != Some(0) {
            *self = Self {
                base: Some(character),
                marks: 0,
            };
            return false;
        }
        self.marks = self.marks.saturating_add(1);
        let selects = matches!(character, '\u{fe00}'..='\u{fe0f}');
        self.marks > MAX_MARKS || selects && !(self.marks == 1 && self.has_variants(character))
    }

    /// Whether this variation selector may follow the base: only the selectors for text and emoji
    /// style are allowed, and only after symbols.
    fn has_variants(&self, selector: char) -> bool {
        let symbol = self.base.is_some_and(|base| {
            matches!(base, '#' | '*' | '0'..='9' | '\u{a9}' | '\u{ae}')
                || base >= '\u{203c}' && !base.is_alphanumeric()
        });
        symbol && matches!(selector, '\u{fe0e}' | '\u{fe0f}')
    }
}

/// Adds a character in the form for one line.
fn push(out: &mut String, character: char, hidden: bool) {
    match character {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{1b}' => out.push_str("\\e"),
        _ if hidden => out.extend(character.escape_unicode()),
        _ => out.push(character),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_of_any_script_is_left_alone() {
        let text = "naïve – 猫 كتاب 👍🏽 a\u{301} ❤\u{fe0f} 1\u{fe0f}\u{20e3} ที่\u{0e48} שָׁלוֹם";
        assert_eq!(visible_line(text, 100), text);
    }

    #[test]
    fn an_escape_sequence_reaches_no_terminal() {
        let shown = visible("\u{1b}]0;title\u{7}\u{9b}31mred", 100);
        assert_eq!(shown, "\\e]0;title\\u{7}\\u{9b}31mred");
    }

    #[test]
    fn bidirectional_tag_and_zero_width_characters_become_visible() {
        assert_eq!(
            visible_line("a\u{202e}b\u{e0041}c\u{200b}", 100),
            "a\\u{202e}b\\u{e0041}c\\u{200b}"
        );
    }

    #[test]
    fn text_in_characters_without_a_width_becomes_visible() {
        assert_eq!(visible_line("a\u{2800}b", 100), "a\\u{2800}b");
        // Variation selectors could hide one bit each.
        assert_eq!(
            visible_line("a\u{fe0e}b\u{fe01}❤\u{fe0f}\u{fe0e}", 100),
            "a\\u{fe0e}b\\u{fe01}❤\u{fe0f}\\u{fe0e}"
        );
        let pile = "\u{301}".repeat(2000);
        for shown in [visible(&pile, 5000), quoted(&pile, 5000)] {
            assert_eq!(shown.matches('\u{301}').count(), MAX_MARKS, "{shown:.80}");
        }
        let json = visible_json(&format!("\"{pile}\""));
        assert_eq!(json.matches('\u{301}').count(), MAX_MARKS);
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), pile);
    }

    #[test]
    fn a_line_stays_one_line_and_a_block_keeps_its_lines() {
        assert_eq!(visible_line("a\nb\r\u{2028}", 100), "a\\nb\\r\\u{2028}");
        assert_eq!(visible("a\nb\r", 100), "a\nb\\r");
    }

    #[test]
    fn json_shown_to_people_keeps_its_value() {
        let value = "a\u{7f}\u{9b}\u{202e}\u{e0041}";
        let shown = visible_json(&format!("[\n\"{value}\"\n]"));
        assert!(shown.is_ascii(), "{shown}");
        let read: Vec<String> = serde_json::from_str(&shown).unwrap();
        assert_eq!(read, [value]);
    }

    #[test]
    fn long_text_is_cut_and_the_rest_counted() {
        assert_eq!(visible_line("abcdef", 2), "ab… (4 more characters)");
        assert_eq!(visible_line("ab", 2), "ab");
    }

    #[test]
    fn what_is_quoted_can_not_feign_its_end() {
        assert_eq!(
            quoted("a\" is \\\u{202e}b\n", 100),
            r#""a\" is \\\u{202e}b\n""#
        );
        assert_eq!(quoted("abcdef", 2), "\"ab…\"");
        assert_eq!(quoted("ab", 2), "\"ab\"");
    }
}
