//! A golden screen as lines of styled text, broken where the terminal breaks them.

use crate::Outcome;

/// Stands in a golden file for the escape character.
const ESCAPE: char = '\u{241b}';

/// How text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) bold: bool,
    pub(super) underlined: bool,
    pub(super) colour: Option<Colour>,
}

/// The colours that Toolward writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Colour {
    Red,
    Green,
    Yellow,
    Cyan,
}

/// Text of one style.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) style: Style,
    pub(super) text: String,
}

/// The lines of a screen, each of at most so many columns.
pub(super) fn lines(text: &str, columns: usize) -> Outcome<Vec<Vec<Span>>> {
    let mut style = Style::default();
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut spans: Vec<Span> = Vec::new();
        let mut used = 0;
        let mut rest = line.chars();
        while let Some(character) = rest.next() {
            if character == ESCAPE {
                let (codes, after) = sequence(rest.as_str())?;
                for code in codes.split(';') {
                    style.apply(code)?;
                }
                rest = after.chars();
                continue;
            }
            if character.is_control() {
                return Err(format!("{character:?} in {line:?}"));
            }
            if used == columns {
                lines.push(std::mem::take(&mut spans));
                used = 0;
            }
            used += 1;
            match spans.last_mut() {
                Some(span) if span.style == style => span.text.push(character),
                _ => spans.push(Span {
                    style,
                    text: character.into(),
                }),
            }
        }
        lines.push(spans);
    }
    Ok(lines)
}

/// A line without its styles.
pub(super) fn plain(line: &str) -> String {
    let mut parts = line.split(ESCAPE);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |out, part| match sequence(part) {
        Ok((_, after)) => out + after,
        Err(_) => out + part,
    })
}

/// The codes of a sequence that sets a style, and what follows it.
fn sequence(text: &str) -> Outcome<(&str, &str)> {
    text.strip_prefix('[')
        .and_then(|text| text.split_once('m'))
        .filter(|(codes, _)| codes.chars().all(|c| c.is_ascii_digit() || c == ';'))
        .ok_or_else(|| format!("an escape sequence that sets no style, before {text:?}"))
}

impl Style {
    fn apply(&mut self, code: &str) -> Outcome {
        match code {
            "" | "0" => *self = Self::default(),
            "1" => self.bold = true,
            "4" => self.underlined = true,
            "31" => self.colour = Some(Colour::Red),
            "32" => self.colour = Some(Colour::Green),
            "33" => self.colour = Some(Colour::Yellow),
            "36" => self.colour = Some(Colour::Cyan),
            other => return Err(format!("the style {other} is not known")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, columns: usize) -> Vec<Vec<(String, Style)>> {
        let lines = lines(text, columns).unwrap().into_iter();
        let spans = lines.map(|line| line.into_iter().map(|span| (span.text, span.style)));
        spans.map(Iterator::collect).collect()
    }

    #[test]
    fn styles_hold_until_they_end_and_take_no_columns() {
        let red = Style {
            bold: true,
            colour: Some(Colour::Red),
            ..Style::default()
        };
        let none = Style::default();
        let text = "\u{241b}[1;31merror:\u{241b}[0m no\n";
        let expected = vec![vec![("error:".to_owned(), red), (" no".to_owned(), none)]];
        assert_eq!(shown(text, 9), expected);
        assert_eq!(plain(text), "error: no\n");
    }

    #[test]
    fn a_long_line_goes_on_below() {
        let lines: Vec<String> = shown("abcdefg\n\nh\n", 3)
            .into_iter()
            .map(|line| line.into_iter().map(|(text, _)| text).collect())
            .collect();
        assert_eq!(lines, ["abc", "def", "g", "", "h"]);
    }

    #[test]
    fn what_can_not_be_drawn_is_an_error() {
        for text in ["\u{241b}[2J", "\u{241b}[7mx", "a\rb", "\u{241b}"] {
            lines(text, 80).unwrap_err();
        }
    }
}
