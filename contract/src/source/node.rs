//! A value that knows where each of its parts stands. Made from YAML, JSON text, or a bare value.

use serde_json::{Map, Number, Value};

use crate::diagnostic::Position;

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) content: Content,
    pub(crate) at: Position,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Mapping(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_at: Position,
    pub(crate) value: Node,
}

impl Node {
    /// The type for messages, with its article.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.content {
            Content::Null => "null",
            Content::Bool(_) => "a boolean",
            Content::Number(_) => "a number",
            Content::Text(_) => "text",
            Content::List(_) => "a list",
            Content::Mapping(_) => "a mapping",
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.content, Content::Null)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        match &self.content {
            Content::Mapping(entries) => entries
                .iter()
                .find(|entry| entry.key == key)
                .map(|entry| &entry.value),
            _ => None,
        }
    }

    /// The value without its places. The parser that made the node bounds the depth.
    pub(crate) fn to_value(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(value) => Value::Bool(*value),
            Content::Number(number) => Value::Number(number.clone()),
            Content::Text(text) => Value::String(text.clone()),
            Content::List(items) => Value::Array(items.iter().map(Node::to_value).collect()),
            Content::Mapping(entries) => {
                let members = entries
                    .iter()
                    .map(|entry| (entry.key.clone(), entry.value.to_value()));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }

    /// A node for a value that never was text: every part stands at 1:1.
    pub(crate) fn from_value(value: &Value) -> Node {
        let at = Position::START;
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
    pub(crate) fn place(&self, pointer: &str) -> Position {
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
