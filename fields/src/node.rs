//! A value that knows where each of its parts stands. Made from YAML, JSON text, TOML, or a bare value.

use std::fmt;

use serde_json::{Map, Number, Value};

/// A value and its place: a `P` of the format that it comes from.
#[derive(Clone, Debug)]
pub struct Node<P> {
    /// The value.
    pub content: Content<P>,
    /// Where it begins.
    pub at: P,
}

/// A value of a document.
#[derive(Clone, Debug)]
pub enum Content<P> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number that JSON can say.
    Number(Number),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Node<P>>),
    /// A mapping, in the order of the document; each key once.
    Mapping(Vec<Entry<P>>),
    /// What JSON can't say, as text: a date, a number beyond 64 bits.
    Other(Kind, String),
}

/// A key of a mapping with its value.
#[derive(Clone, Debug)]
pub struct Entry<P> {
    /// The key.
    pub key: String,
    /// Where the key begins.
    pub key_at: P,
    /// The value.
    pub value: Node<P>,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number without a fraction.
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

/// In YAML's and JSON's words, with an article.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Null => "null",
            Kind::Bool => "a boolean",
            Kind::Integer | Kind::Float => "a number",
            Kind::Text => "text",
            Kind::Date => "a date",
            Kind::List => "a list",
            Kind::Mapping => "a mapping",
        })
    }
}

impl Kind {
    /// In TOML's words, with an article.
    #[must_use]
    pub fn in_toml(self) -> &'static str {
        match self {
            Kind::Null => "nothing",
            Kind::Bool => "true or false",
            Kind::Integer => "a whole number",
            Kind::Float => "a number",
            Kind::Text => "a text",
            Kind::Date => "a date or time",
            Kind::List => "a list",
            Kind::Mapping => "a table",
        }
    }
}

impl<P> Node<P> {
    /// What the value is.
    #[must_use]
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
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self.content, Content::Null)
    }

    /// The value of a key; `None` if there is none, or this is not a mapping.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node<P>> {
        match &self.content {
            Content::Mapping(entries) => entries
                .iter()
                .find(|entry| entry.key == key)
                .map(|entry| &entry.value),
            _ => None,
        }
    }

    /// The value without its places; what JSON can't say is text. The parser that made the node bounds the depth.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(value) => Value::Bool(*value),
            Content::Number(number) => Value::Number(number.clone()),
            Content::Text(text) | Content::Other(_, text) => Value::String(text.clone()),
            Content::List(items) => Value::Array(items.iter().map(Node::to_value).collect()),
            Content::Mapping(entries) => {
                let members = entries
                    .iter()
                    .map(|entry| (entry.key.clone(), entry.value.to_value()));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }
}

impl<P: Copy + Default> Node<P> {
    /// A node for a value that never was text: every part stands at the start.
    #[must_use]
    pub fn from_value(value: &Value) -> Node<P> {
        let at = P::default();
        let content = match value {
            Value::Null => Content::Null,
            Value::Bool(value) => Content::Bool(*value),
            Value::Number(number) => Content::Number(number.clone()),
            Value::String(text) => Content::Text(text.clone()),
            Value::Array(items) => Content::List(items.iter().map(Node::from_value).collect()),
            Value::Object(members) => Content::Mapping(
                members
                    .iter()
                    .map(|(key, value)| Entry {
                        key: key.clone(),
                        key_at: at,
                        value: Node::from_value(value),
                    })
                    .collect(),
            ),
        };
        Node { content, at }
    }

    /// Where a JSON pointer leads: the key of a member, the item of a list; the nearest part that
    /// exists if the last does not.
    #[must_use]
    pub fn place(&self, pointer: &str) -> P {
        let mut node = self;
        let mut at = self.at;
        for token in pointer.split('/').skip(1) {
            let token = token.replace("~1", "/").replace("~0", "~");
            match &node.content {
                Content::Mapping(entries) => {
                    match entries.iter().find(|entry| entry.key == token) {
                        Some(entry) => (node, at) = (&entry.value, entry.key_at),
                        None => break,
                    }
                }
                Content::List(items) => {
                    match token.parse().ok().and_then(|index: usize| items.get(index)) {
                        Some(item) => (node, at) = (item, item.at),
                        None => break,
                    }
                }
                _ => break,
            }
        }
        at
    }
}
