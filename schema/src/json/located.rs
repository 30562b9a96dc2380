//! Positions in a JSON text that the strict parser has accepted. This module checks nothing itself.

use serde_json::Value;

use toolward_support::fields::{Content, MappingEntry, Position};

type Node = toolward_support::fields::Node<Position>;
type Entry = MappingEntry<Position>;

/// The value of a JSON text, with positions. The strict parser must have accepted the text;
/// otherwise the result may be `None`.
pub fn located(text: &str) -> Option<Node> {
    let mut reader = JsonReader {
        rest: text,
        at: Position::START,
    };
    reader.value()
}

struct JsonReader<'t> {
    rest: &'t str,
    at: Position,
}

impl<'t> JsonReader<'t> {
    fn advance(&mut self, bytes: usize) -> Option<&'t str> {
        let (token, rest) = self.rest.split_at_checked(bytes)?;
        self.at = token.chars().fold(self.at, Position::after);
        self.rest = rest;
        Some(token)
    }

    fn skip_space(&mut self) -> Option<char> {
        let trimmed = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.advance(self.rest.len() - trimmed.len())?;
        self.rest.chars().next()
    }

    /// Reads the next scalar.
    fn scalar(&mut self) -> Option<Value> {
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter();
        let value = values.next()?.ok()?;
        let length = values.byte_offset();
        self.advance(length)?;
        Some(value)
    }

    /// Reads the next value. Recursion is safe, since the strict parser has limited the depth.
    fn value(&mut self) -> Option<Node> {
        let first = self.skip_space()?;
        let at = self.at;
        let content = match first {
            '[' => Content::List(self.items(']', Self::value)?),
            '{' => Content::Mapping(self.items('}', Self::entry)?),
            _ => match self.scalar()? {
                Value::Null => Content::Null,
                Value::Bool(value) => Content::Bool(value),
                Value::Number(number) => Content::Number(number),
                Value::String(text) => Content::Text(text),
                _ => return None,
            },
        };
        Some(Node { content, at })
    }

    fn entry(&mut self) -> Option<Entry> {
        self.skip_space()?;
        let key_at = self.at;
        let Value::String(key) = self.scalar()? else {
            return None;
        };
        self.skip_space()?;
        self.advance(1)?;
        let value = self.value()?;
        Some(Entry { key, key_at, value })
    }

    fn items<T>(&mut self, close: char, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        self.advance(1)?;
        let mut items = Vec::new();
        if self.skip_space()? == close {
            self.advance(1)?;
            return Some(items);
        }
        loop {
            items.push(read(self)?);
            let next = self.skip_space()?;
            self.advance(1)?;
            if next == close {
                return Some(items);
            }
        }
    }
}
