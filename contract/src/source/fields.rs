//! Takes fields out of a mapping, each once, with messages on what is wrong. Knows no format.

use std::ops::RangeInclusive;

use super::node::{Content, Entry, Node};
use crate::codes;
use crate::diagnostic::{Position, Report};

/// How field names are written in the document at hand, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// `risk_level`, as in files.
    Snake,
    /// `riskLevel`, as in `defineTool`.
    Camel,
}

impl Spelling {
    pub(crate) fn of(self, name: &str) -> String {
        match self {
            Spelling::Snake => name.to_owned(),
            Spelling::Camel => {
                let mut parts = name.split('_');
                let mut camel = parts.next().unwrap_or_default().to_owned();
                for part in parts {
                    let mut letters = part.chars();
                    camel.extend(letters.next().map(|c| c.to_ascii_uppercase()));
                    camel.push_str(letters.as_str());
                }
                camel
            }
        }
    }
}

/// The fields of one mapping. Those never taken are unknown.
pub(crate) struct Fields<'n> {
    entries: Vec<Option<&'n Entry>>,
    /// Where to point when a field is missing.
    pub(crate) at: Position,
    /// The dotted path of the mapping, empty at the top.
    path: String,
    spelling: Spelling,
    asked: Vec<&'static str>,
}

impl<'n> Fields<'n> {
    /// The fields of `node`; a diagnostic if it is not a mapping.
    pub(crate) fn of(node: &'n Node, path: &str, report: &mut Report<'_>) -> Option<Fields<'n>> {
        Self::spelled(node, path, Spelling::Snake, report)
    }

    pub(crate) fn spelled(
        node: &'n Node,
        path: &str,
        spelling: Spelling,
        report: &mut Report<'_>,
    ) -> Option<Fields<'n>> {
        let Content::Mapping(entries) = &node.content else {
            let what = if path.is_empty() {
                "the document".to_owned()
            } else {
                format!("`{path}`")
            };
            report.add(
                &codes::WRONG_TYPE,
                node.at,
                format!("expected {what} to be a mapping, found {}", node.kind()),
            );
            return None;
        };
        Some(Fields {
            entries: entries.iter().map(Some).collect(),
            at: node.at,
            path: path.to_owned(),
            spelling,
            asked: Vec::new(),
        })
    }

    /// The dotted name of a field for messages.
    pub(crate) fn name(&self, key: &str) -> String {
        let key = self.spelling.of(key);
        if self.path.is_empty() {
            key
        } else {
            format!("{}.{key}", self.path)
        }
    }

    pub(crate) fn spelling(&self) -> Spelling {
        self.spelling
    }

    /// The field with its key, if it is there.
    pub(crate) fn entry(&mut self, key: &'static str) -> Option<&'n Entry> {
        self.asked.push(key);
        let spelled = self.spelling.of(key);
        let found = self
            .entries
            .iter_mut()
            .find(|entry| entry.is_some_and(|entry| entry.key == spelled));
        found.and_then(Option::take)
    }

    pub(crate) fn take(&mut self, key: &'static str) -> Option<&'n Node> {
        self.entry(key).map(|entry| &entry.value)
    }

    /// The field; a diagnostic if it is not there.
    pub(crate) fn required(
        &mut self,
        key: &'static str,
        report: &mut Report<'_>,
    ) -> Option<&'n Node> {
        let found = self.take(key);
        if found.is_none() {
            report.add(
                &codes::MISSING_FIELD,
                self.at,
                format!("expected the field `{}`, found none", self.name(key)),
            );
        }
        found
    }

    /// Names of the fields not taken yet.
    pub(crate) fn left(&self) -> impl Iterator<Item = &'n Entry> {
        self.entries.clone().into_iter().flatten()
    }

    /// Reports every field not taken.
    pub(crate) fn finish(self, report: &mut Report<'_>) {
        let known: Vec<String> = self.asked.iter().map(|key| self.spelling.of(key)).collect();
        for entry in self.left() {
            let name = if self.path.is_empty() {
                entry.key.clone()
            } else {
                format!("{}.{}", self.path, entry.key)
            };
            let message = format!("expected a field of the format, found `{name}`");
            match suggestion(&entry.key, known.iter().map(String::as_str)) {
                Some(near) => {
                    report.add_with_hint(
                        &codes::UNKNOWN_FIELD,
                        entry.key_at,
                        message,
                        format!("did you mean `{near}`?"),
                    );
                }
                None => report.add(&codes::UNKNOWN_FIELD, entry.key_at, message),
            }
        }
    }
}

/// The known word nearest to a misspelt one, if one is near.
pub(crate) fn suggestion<'k>(word: &str, known: impl Iterator<Item = &'k str>) -> Option<&'k str> {
    let word: Vec<char> = word.chars().take(64).collect();
    known
        .map(|candidate| (distance(&word, candidate), candidate))
        .filter(|&(distance, candidate)| distance <= candidate.len() / 3)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Levenshtein's.
fn distance(word: &[char], candidate: &str) -> usize {
    let mut row: Vec<usize> = (0..=word.len()).collect();
    for (index, letter) in candidate.chars().enumerate() {
        let mut next = vec![index + 1];
        for ((&other, pair), left) in word.iter().zip(row.windows(2)).zip(0..) {
            let (&[diagonal, above], Some(&before)) = (pair, next.get::<usize>(left)) else {
                continue;
            };
            let change = diagonal + usize::from(other != letter);
            next.push(change.min(above + 1).min(before + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

fn wrong_type(node: &Node, name: &str, expected: &str, report: &mut Report<'_>) {
    report.add(
        &codes::WRONG_TYPE,
        node.at,
        format!("expected `{name}` to be {expected}, found {}", node.kind()),
    );
}

pub(crate) fn text<'n>(node: &'n Node, name: &str, report: &mut Report<'_>) -> Option<&'n str> {
    match &node.content {
        Content::Text(text) => Some(text),
        Content::Number(number) => {
            let message = format!("expected `{name}` to be text, found a number");
            report.add_with_hint(
                &codes::WRONG_TYPE,
                node.at,
                message,
                format!("quote it: \"{number}\""),
            );
            None
        }
        _ => {
            wrong_type(node, name, "text", report);
            None
        }
    }
}

pub(crate) fn boolean(node: &Node, name: &str, report: &mut Report<'_>) -> Option<bool> {
    if let Content::Bool(value) = node.content {
        return Some(value);
    }
    let message = format!("expected `{name}` to be a boolean, found {}", node.kind());
    report.add_with_hint(&codes::WRONG_TYPE, node.at, message, "write true or false");
    None
}

pub(crate) fn integer(
    node: &Node,
    name: &str,
    range: RangeInclusive<u64>,
    report: &mut Report<'_>,
) -> Option<u64> {
    let Content::Number(number) = &node.content else {
        wrong_type(node, name, "an integer", report);
        return None;
    };
    let found = number.as_u64().filter(|value| range.contains(value));
    if found.is_none() {
        let message = format!(
            "expected `{name}` to be an integer from {} to {}, found {number}",
            range.start(),
            range.end()
        );
        report.add(&codes::WRONG_VALUE, node.at, message);
    }
    found
}

/// A number that is not negative.
pub(crate) fn number(node: &Node, name: &str, report: &mut Report<'_>) -> Option<f64> {
    let Content::Number(number) = &node.content else {
        wrong_type(node, name, "a number", report);
        return None;
    };
    let found = number.as_f64().filter(|value| *value >= 0.0);
    if found.is_none() {
        report.add(
            &codes::WRONG_VALUE,
            node.at,
            format!("expected `{name}` to be zero or more, found {number}"),
        );
    }
    found
}

pub(crate) fn list<'n>(node: &'n Node, name: &str, report: &mut Report<'_>) -> Option<&'n [Node]> {
    let Content::List(items) = &node.content else {
        wrong_type(node, name, "a list", report);
        return None;
    };
    Some(items)
}

/// The texts of a list, each with its place; items that are no text are reported and left out.
pub(crate) fn texts<'n>(
    node: &'n Node,
    name: &str,
    report: &mut Report<'_>,
) -> Vec<(&'n str, Position)> {
    let items = list(node, name, report).unwrap_or_default();
    let read = items.iter().enumerate().filter_map(|(index, item)| {
        text(item, &format!("{name}[{index}]"), report).map(|text| (text, item.at))
    });
    read.collect()
}
