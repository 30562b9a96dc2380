//! Text with `{{name}}` in it: found once, filled in once. What a value holds is never looked at again.

use std::borrow::Cow;

/// One stretch of a [`Text`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Piece {
    /// Text as the author wrote it.
    Literal(String),
    /// The place of an argument's value.
    Argument {
        /// The argument's name.
        name: String,
        /// The line that it stands on, from 1.
        line: u32,
    },
}

/// Text with places for values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    pieces: Vec<Piece>,
}

impl Text {
    /// Finds the placeholders. Every text is one: braces around anything but a name are text, and
    /// `\{{name}}` gives `{{name}}`.
    #[must_use]
    pub fn parse(source: &str) -> Text {
        let mut text = Text::default();
        for (line, number) in source.split_inclusive('\n').zip(1..) {
            text.extend(line, number);
        }
        text
    }

    /// Adds text of one line.
    pub(crate) fn extend(&mut self, source: &str, line: u32) {
        let mut rest = source;
        while let Some((before, from)) = rest.find("{{").and_then(|at| rest.split_at_checked(at)) {
            let Some((name, length)) = placeholder(from) else {
                // The second brace may start a placeholder: `{{{name}}`.
                let (brace, after) = from.split_at_checked(1).unwrap_or((from, ""));
                self.literal(before);
                self.literal(brace);
                rest = after;
                continue;
            };
            let (whole, after) = from.split_at_checked(length).unwrap_or((from, ""));
            if let Some(before) = before.strip_suffix('\\') {
                self.literal(before);
                self.literal(whole);
            } else {
                self.literal(before);
                self.pieces.push(Piece::Argument {
                    name: name.to_owned(),
                    line,
                });
            }
            rest = after;
        }
        self.literal(rest);
    }

    fn literal(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.pieces.last_mut() {
            Some(Piece::Literal(last)) => last.push_str(text),
            _ => self.pieces.push(Piece::Literal(text.to_owned())),
        }
    }

    /// The stretches, in order; no two literal ones in a row.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The names of the placeholders with their lines, each as often as it occurs.
    pub fn places(&self) -> impl Iterator<Item = (&str, u32)> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Argument { name, line } => Some((name.as_str(), *line)),
            Piece::Literal(_) => None,
        })
    }

    /// The text with values in the place of names; `None` if it has more than `limit` bytes.
    pub fn fill<'v>(
        &'v self,
        limit: usize,
        literal: impl Fn(&'v str) -> Cow<'v, str>,
        value: impl Fn(&str) -> Cow<'v, str>,
    ) -> Option<String> {
        let mut filled = String::new();
        for piece in &self.pieces {
            let part = match piece {
                Piece::Literal(text) => literal(text),
                Piece::Argument { name, .. } => value(name),
            };
            if part.len() > limit.checked_sub(filled.len())? {
                return None;
            }
            filled.push_str(&part);
        }
        Some(filled)
    }
}

/// The name and the length of the placeholder at the start of a text.
pub(crate) fn placeholder(text: &str) -> Option<(&str, usize)> {
    // Looked for no farther than a name goes: a text of braces alone takes no longer than another.
    const MAX_SHOWN_CHARS: usize = 80;
    let inner = text.strip_prefix("{{")?;
    let inner = inner.get(..inner.floor_char_boundary(MAX_SHOWN_CHARS))?;
    let end = inner.find("}}")?;
    let name = inner.get(..end)?.trim_matches(' ');
    is_name(name).then_some((name, end + 4))
}

/// A letter, then letters, digits and `_`, up to 64.
pub(crate) fn is_name(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(source: &str) -> Option<String> {
        let value = |name: &str| Cow::Owned(format!("<{name}>"));
        Text::parse(source).fill(1000, Cow::Borrowed, value)
    }

    #[test]
    fn names_in_double_braces_are_replaced_and_all_else_stays() {
        assert_eq!(filled("a {{b}} {{ c }}!").unwrap(), "a <b> <c>!");
        for plain in [
            "",
            "{{",
            "{{}}",
            "{{#each}}",
            "{{a b}}",
            "{a}",
            "}}{{",
            "{{1a}}",
        ] {
            assert_eq!(filled(plain).unwrap(), plain);
        }
        assert_eq!(filled("{{{a}}}").unwrap(), "{<a>}");
        assert_eq!(filled(r"\{{a}} {{a}}").unwrap(), "{{a}} <a>");
    }

    #[test]
    fn a_value_that_looks_like_a_placeholder_stays_as_it_is() {
        let text = Text::parse("{{a}}");
        let filled = text.fill(100, Cow::Borrowed, |_| Cow::Borrowed("{{a}}"));
        assert_eq!(filled.unwrap(), "{{a}}");
    }

    #[test]
    fn a_text_that_grows_beyond_the_limit_is_none() {
        let text = Text::parse("{{a}}{{a}}");
        let fill = |limit| text.fill(limit, Cow::Borrowed, |_| Cow::Borrowed("xx"));
        assert_eq!(fill(4).unwrap(), "xxxx");
        assert_eq!(fill(3), None);
    }

    #[test]
    fn a_placeholder_knows_its_line() {
        let text = Text::parse("{{a}}\nb\n{{{c}}");
        assert_eq!(text.places().collect::<Vec<_>>(), [("a", 1), ("c", 3)]);
    }

    #[test]
    fn a_text_of_braces_alone_is_read_in_no_time() {
        let braces = "{".repeat(1 << 20);
        assert_eq!(filled(&braces), None);
        assert_eq!(Text::parse(&braces).pieces().len(), 1);
    }
}
