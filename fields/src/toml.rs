//! TOML as nodes.

use std::ops::Range;

use serde_json::Number;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use crate::mark::without_mark;
use crate::node::{Content, Entry, Kind, Node};

/// Nested tables and lists that are read. No field is deeper.
const MAX_DEPTH: usize = 64;

/// The bytes of a value in a TOML text: lines are counted only for those that are wrong.
pub type Span = Range<usize>;

/// The value of a TOML text, with places; `null` for what is nested deeper than any field.
///
/// # Errors
/// What the parser refuses.
pub fn parse(text: &str) -> Result<Node<Span>, Error> {
    // A byte order mark is dropped. Blanks of its length keep the places.
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
    let entry = |(key, value): (&Spanned<_>, &_)| Entry {
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
    fn a_byte_order_mark_is_dropped_and_places_are_those_of_the_text() {
        let text = "\u{feff}name = \"notes\"\n";
        let document = parse(text).unwrap();
        let at = document.get("name").unwrap().at.clone();
        assert_eq!(text.get(at), Some("\"notes\""));
    }

    #[test]
    fn what_is_nested_deeper_than_any_field_is_not_read() {
        let document = parse(&format!("{}z = 1", "a.".repeat(70))).unwrap();
        let mut node = &document;
        let mut depth = 0;
        while let Some(inner) = node.get("a") {
            (node, depth) = (inner, depth + 1);
        }
        assert!(node.is_null());
        assert_eq!(depth, MAX_DEPTH + 1);
    }
}
