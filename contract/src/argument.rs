//! Arguments of prompts and of resource templates. (The arguments of tools have schemas.)
//!
//! A text has `{{name}}` where the value of an argument goes. Placeholders are found and filled
//! once; values are never searched for placeholders.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::codes;
use crate::diagnostic::{FileReport, Position};
use crate::shared::{check_characters, prose};
use crate::source::{FieldReader, nearest};

/// How many arguments a document may have. One form asks a person for all of them.
const MAX_ARGUMENTS: usize = 32;

/// How many values an argument may suggest.
const MAX_VALUES: usize = 256;

/// How many unknown names are reported.
const MAX_SHOWN: usize = 20;

/// One argument.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Argument {
    /// Its name: a letter, then up to 63 letters, digits and `_`.
    pub name: String,
    /// Its name for people.
    pub title: Option<String>,
    /// Its description.
    pub description: Option<String>,
    /// Whether a value must be given.
    pub required: bool,
    /// Suggestions for completion, in the author's order.
    pub values: Vec<String>,
    /// Its place in the document.
    pub(crate) at: Position,
}

/// `arguments`: a list.
pub(crate) fn arguments(field: &FieldReader<'_>) -> Vec<Argument> {
    let items = field.items();
    if items.len() > MAX_ARGUMENTS {
        let count = items.len();
        let message = format!("expected at most {MAX_ARGUMENTS} arguments, found {count}");
        field.note(&codes::WRONG_VALUE, message);
        return Vec::new();
    }
    let mut names = BTreeSet::new();
    let read = items.iter().filter_map(|item| {
        let argument = argument(item)?;
        if !names.insert(argument.name.clone()) {
            let message = format!(
                "expected each argument once, found `{}` again",
                argument.name
            );
            return item.refuse(&codes::ARGUMENT_NAME, message);
        }
        Some(argument)
    });
    read.collect()
}

fn argument(item: &FieldReader<'_>) -> Option<Argument> {
    let name = |field: &FieldReader<'_>| {
        let found = field.text()?;
        if !is_name(found) {
            let message = format!(
                "expected `{}` to be a letter and up to 63 letters, digits and `_`, found {:?}",
                field.name,
                found.chars().take(80).collect::<String>()
            );
            return field.refuse(&codes::ARGUMENT_NAME, message);
        }
        if asks_for_credential(found) {
            let message = format!("expected no name of a credential, found `{found}`");
            return field.refuse(&codes::ARGUMENT_CREDENTIAL, message);
        }
        Some(found.to_owned())
    };
    item.whole(|fields| {
        Some(Argument {
            title: fields.read("title", |field| prose(field, 1..=80, false)),
            description: fields.read("description", |field| prose(field, 1..=2000, true)),
            required: fields.boolean("required").unwrap_or_default(),
            values: fields.or_default("values", values),
            name: fields.require("name", name)?,
            at: item.at,
        })
    })
}

fn values(field: &FieldReader<'_>) -> Vec<String> {
    let mut values = field.texts();
    if values.len() > MAX_VALUES {
        let count = values.len();
        let message = format!("expected at most {MAX_VALUES} values, found {count}");
        field.note(&codes::WRONG_VALUE, message);
        values.truncate(MAX_VALUES);
    }
    values.retain(|(value, item)| {
        let length = value.len();
        if !(1..=256).contains(&length) {
            let name = &field.name;
            let message = format!("expected values in `{name}` of 1 to 256 bytes, found {length}");
            item.note(&codes::WRONG_VALUE, message);
            return false;
        }
        check_characters(value, item, false)
    });
    let values = values.into_iter();
    values.map(|(value, _)| value.to_owned()).collect()
}

/// Checks that each name in `used` is an argument, and that each argument is used. `used` has each
/// name with its line.
pub(crate) fn check(used: &BTreeSet<(&str, u32)>, arguments: &[Argument], report: &FileReport<'_>) {
    let known = |name: &str| arguments.iter().any(|argument| argument.name == name);
    let mut reported = BTreeSet::new();
    for &(name, line) in used {
        if !known(name) && reported.insert(name) {
            let at = Position { line, column: 1 };
            let message = format!("expected the name of an argument, found `{{{{{name}}}}}`");
            let names = arguments.iter().map(|argument| argument.name.as_str());
            let hint = match nearest(name, names) {
                Some(near) => format!("did you mean `{{{{{near}}}}}`?"),
                None => {
                    format!("add it to `arguments`, or write `\\{{{{{name}}}}}` for the braces")
                }
            };
            report.add_with_hint(&codes::PLACEHOLDER_UNKNOWN, at, message, hint);
            if reported.len() == MAX_SHOWN {
                return;
            }
        }
    }
    for argument in arguments {
        if !used.iter().any(|(name, _)| *name == argument.name) {
            let message = format!(
                "expected `{{{{{}}}}}` in the text, found it nowhere",
                argument.name
            );
            report.add(&codes::ARGUMENT_UNUSED, argument.at, message);
        }
    }
}

/// Whether a name asks for a credential, which a person should not type into an untrusted form.
pub fn asks_for_credential(name: &str) -> bool {
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect();
    let parts = "password passwd passphrase passcode secret credential apikey accesskey privatekey signingkey \
                 authtoken accesstoken bearer";
    let whole = ["pin", "otp", "cvv", "cvc", "ssn", "pwd", "auth", "jwt"];
    parts.split(' ').any(|part| plain.contains(part))
        || whole.contains(&plain.as_str())
        || plain.ends_with("token")
}

/// A piece of a [`Text`].
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// Text as the author wrote it.
    Literal(String),
    /// The place of an argument's value.
    Argument {
        /// The argument's name.
        name: String,
        /// The line of the placeholder, from 1.
        line: u32,
    },
}

/// Text with places for values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// The pieces in order; there are never two literals in a row.
    pieces: Vec<Piece>,
}

impl Text {
    /// Finds the placeholders. Every text is valid: braces around anything but a name are text, and
    /// `\{{name}}` gives the text `{{name}}`.
    pub fn parse(source: &str) -> Text {
        let mut text = Text::default();
        for (line, number) in source.split_inclusive('\n').zip(1..) {
            text.extend(line, number);
        }
        text
    }

    /// Adds text from the line `line` of the document.
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

    /// The names of all placeholders with their lines; a name is repeated if it occurs more than
    /// once.
    pub fn places(&self) -> impl Iterator<Item = (&str, u32)> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Argument { name, line } => Some((name.as_str(), *line)),
            Piece::Literal(_) => None,
        })
    }

    /// The text with values in place of the placeholders; `None` if the result has more than
    /// `limit` bytes. `literal` converts the author's text, and `value` gives an argument's value.
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
    // The search for the end is limited to the length of a name, so that a text of many braces
    // takes no longer than others.
    const MAX_SHOWN_CHARS: usize = 80;
    let inner = text.strip_prefix("{{")?;
    let inner = inner.get(..inner.floor_char_boundary(MAX_SHOWN_CHARS))?;
    let end = inner.find("}}")?;
    let name = inner.get(..end)?.trim_matches(' ');
    is_name(name).then_some((name, end + 4))
}

/// Whether a text is a name: a letter, then letters, digits and `_`, at most 64 characters.
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
        assert_eq!(Text::parse(&braces).pieces.len(), 1);
    }

    #[test]
    fn names_of_credentials_are_seen_however_they_are_spelt() {
        for name in [
            "password",
            "userPassword",
            "api_key",
            "API-KEY",
            "token",
            "github_token",
        ] {
            assert!(asks_for_credential(name), "{name}");
        }
        for name in ["topic", "max_tokens", "author", "key", "pinned"] {
            assert!(!asks_for_credential(name), "{name}");
        }
    }
}
