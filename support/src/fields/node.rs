//! Values with the place of each of their parts, and the line and column of an offset in a text.
//! This module makes nodes from TOML and from plain values; readers of other formats make their
//! own.

use std::fmt;
use std::ops::Range;

use serde::Serialize;
use serde_json::{Map, Number, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

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

    /// The place of a byte offset in `text`. An offset beyond the end means the end.
    pub fn of_offset(text: impl AsRef<[u8]>, offset: usize) -> Position {
        let text = text.as_ref();
        let before = text.get(..offset).unwrap_or(text);
        let feed = before.iter().rposition(|byte| *byte == b'\n');
        let (lines, line) = before.split_at(feed.map_or(0, |feed| feed + 1));
        let after = |count: usize| u32::try_from(count).unwrap_or(u32::MAX).saturating_add(1);
        Position {
            line: after(lines.iter().filter(|byte| **byte == b'\n').count()),
            // UTF-8 continuation bytes start no character.
            column: after(line.iter().filter(|byte| **byte & 0xc0 != 0x80).count()),
        }
    }

    /// The place after a character at this place.
    pub fn after(self, character: char) -> Position {
        let (line, column) = match character {
            '\n' => (self.line.saturating_add(1), 1),
            _ => (self.line, self.column.saturating_add(1)),
        };
        Position { line, column }
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

/// A document's text without the byte order mark, which some editors write before UTF-8. The mark
/// has no meaning, so readers of documents that people write drop it. Readers of signed text do
/// not.
///
/// ```
/// assert_eq!(toolward_support::fields::without_mark("\u{feff}---\n"), "---\n");
/// ```
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// As [`without_mark`], for bytes that need not be UTF-8.
pub fn without_mark_bytes(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}

/// A value and its place. `P` is the format's type for places.
#[derive(Clone, Debug)]
pub struct Node<P> {
    /// The value.
    pub content: Content<P>,
    /// The place where it starts.
    pub at: P,
}

/// A value of a document.
#[derive(Clone, Debug)]
pub enum Content<P> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number that JSON can represent.
    Number(Number),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node<P>>),
    /// A mapping, in the order of the document; each key once.
    Mapping(Vec<MappingEntry<P>>),
    /// A value that JSON can't represent, as text, such as a date or a number beyond 64 bits.
    Other(Kind, String),
}

/// A key of a mapping with its value.
#[derive(Clone, Debug)]
pub struct MappingEntry<P> {
    /// The key.
    pub key: String,
    /// The place of the key.
    pub key_at: P,
    /// The value.
    pub value: Node<P>,
}

/// The kind of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// An integer.
    Integer,
    /// Any other number.
    Float,
    /// Text.
    Text,
    /// A date, a time, or both.
    Date,
    /// A list.
    List,
    /// A mapping.
    Mapping,
}

/// The name in YAML and JSON, with an article.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.names().0)
    }
}

impl Kind {
    /// The name in TOML, with an article.
    pub fn in_toml(self) -> &'static str {
        self.names().1
    }

    /// The names in YAML and JSON, and in TOML.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Kind::Null => ("null", "nothing"),
            Kind::Bool => ("a boolean", "true or false"),
            Kind::Integer => ("a number", "a whole number"),
            Kind::Float => ("a number", "a number"),
            Kind::Text => ("text", "a text"),
            Kind::Date => ("a date", "a date or time"),
            Kind::List => ("a list", "a list"),
            Kind::Mapping => ("a mapping", "a table"),
        }
    }
}

impl<P> Node<P> {
    /// The kind of the value.
    pub fn kind(&self) -> Kind {
        match &self.content {
            Content::Null => Kind::Null,
            Content::Bool(_) => Kind::Bool,
            Content::Number(number) if number.is_f64() => Kind::Float,
            Content::Number(_) => Kind::Integer,
            Content::Text(_) => Kind::Text,
            Content::List(_) => Kind::List,
            Content::Mapping(_) => Kind::Mapping,
            Content::Other(kind, _) => *kind,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self.content, Content::Null)
    }

    /// The value of a key; `None` if the key is missing, or this is not a mapping.
    pub fn get(&self, key: &str) -> Option<&Node<P>> {
        match &self.content {
            Content::Mapping(entries) => {
                let entry = entries.iter().find(|entry| entry.key == key)?;
                Some(&entry.value)
            }
            _ => None,
        }
    }

    /// The value without its places. A value that JSON can't represent becomes text. The parser
    /// that made the node limits the depth.
    pub fn to_value(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(value) => Value::Bool(*value),
            Content::Number(number) => Value::Number(number.clone()),
            Content::Text(text) | Content::Other(_, text) => Value::String(text.clone()),
            Content::List(items) => Value::Array(items.iter().map(Node::to_value).collect()),
            Content::Mapping(entries) => {
                let members = entries.iter();
                let members = members.map(|entry| (entry.key.clone(), entry.value.to_value()));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }
}

impl<P: Copy + Default> Node<P> {
    /// A node for a value that was not parsed from text: every part has the default place.
    pub fn from_value(value: &Value) -> Node<P> {
        let at = P::default();
        let content = match value {
            Value::Null => Content::Null,
            Value::Bool(value) => Content::Bool(*value),
            Value::Number(number) => Content::Number(number.clone()),
            Value::String(text) => Content::Text(text.clone()),
            Value::Array(items) => Content::List(items.iter().map(Node::from_value).collect()),
            Value::Object(members) => {
                let entry = |(key, value): (&String, &Value)| MappingEntry {
                    key: key.clone(),
                    key_at: at,
                    value: Node::from_value(value),
                };
                Content::Mapping(members.iter().map(entry).collect())
            }
        };
        Node { content, at }
    }

    /// The place of the part at a JSON pointer: of a member's key or of a list's item. If the part
    /// does not exist, the place of its nearest existing parent.
    pub fn place(&self, pointer: &str) -> P {
        let mut node = self;
        let mut at = self.at;
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            let part = match &node.content {
                Content::Mapping(entries) => {
                    let entry = entries.iter().find(|entry| entry.key == token);
                    entry.map(|entry| (&entry.value, entry.key_at))
                }
                Content::List(items) => {
                    let item = token.parse().ok().and_then(|index: usize| items.get(index));
                    item.map(|item| (item, item.at))
                }
                _ => None,
            };
            let Some(part) = part else { break };
            (node, at) = part;
        }
        at
    }
}

/// How deep tables and lists may be nested. No field of any document is deeper.
const MAX_DEPTH: usize = 64;

/// The byte range of a value in a TOML text. Line numbers are computed only for messages.
pub type Span = Range<usize>;

/// Parses a TOML text to a value with places. Tables and lists that are nested deeper than 64
/// levels become `null`.
///
/// # Errors
/// The error of the TOML parser.
pub fn parse_toml(text: &str) -> Result<Node<Span>, Error> {
    // A byte order mark is replaced by blanks of the same length, which keeps the places.
    let blanks = without_mark(text);
    let blanks = (blanks.len() < text.len()).then(|| format!("   {blanks}"));
    let document = DeTable::parse(blanks.as_deref().unwrap_or(text))?;
    Ok(Node {
        content: table(document.get_ref(), MAX_DEPTH),
        at: 0..0,
    })
}

fn node(value: &Spanned<DeValue<'_>>, depth: usize) -> Node<Span> {
    let content = match value.get_ref() {
        DeValue::String(text) => Content::Text(text.as_ref().to_owned()),
        DeValue::Boolean(value) => Content::Bool(*value),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .map(|value| Content::Number(value.into()))
            .unwrap_or_else(|_| Content::Other(Kind::Integer, integer.to_string())),
        DeValue::Float(float) => {
            let value = float.as_str().parse().ok().and_then(Number::from_f64);
            value.map_or_else(
                || Content::Other(Kind::Float, float.to_string()),
                Content::Number,
            )
        }
        DeValue::Datetime(date) => Content::Other(Kind::Date, date.to_string()),
        DeValue::Array(_) | DeValue::Table(_) if depth == 0 => Content::Null,
        DeValue::Array(items) => {
            Content::List(items.iter().map(|item| node(item, depth - 1)).collect())
        }
        DeValue::Table(entries) => table(entries, depth - 1),
    };
    Node {
        content,
        at: value.span(),
    }
}

fn table(entries: &DeTable<'_>, depth: usize) -> Content<Span> {
    let entry = |(key, value): (&Spanned<_>, &_)| MappingEntry {
        key: AsRef::<str>::as_ref(key.get_ref()).to_owned(),
        key_at: key.span(),
        value: node(value, depth),
    };
    Content::Mapping(entries.iter().map(entry).collect())
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

    #[test]
    fn a_byte_order_mark_is_dropped_and_places_are_those_of_the_text() {
        let text = "\u{feff}name = \"notes\"\n";
        let document = parse_toml(text).unwrap();
        let at = document.get("name").unwrap().at.clone();
        assert_eq!(text.get(at), Some("\"notes\""));
    }

    #[test]
    fn what_is_nested_deeper_than_any_field_is_not_read() {
        let document = parse_toml(&format!("{}z = 1", "a.".repeat(70))).unwrap();
        let mut node = &document;
        let mut depth = 0;
        while let Some(inner) = node.get("a") {
            (node, depth) = (inner, depth + 1);
        }
        assert!(node.is_null());
        assert_eq!(depth, MAX_DEPTH + 1);
    }
}
