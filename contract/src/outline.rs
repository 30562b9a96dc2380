//! What can be said of a document without reading it as one: the id that it claims, its values as written, and where
//! they stand. Serves messages only; says nothing about whether the document is valid.

use serde_json::Value;

use crate::diagnostic::{Position, Report};
use crate::source::{Content, Field, Node, split};

/// The front matter of a document that may be invalid.
#[derive(Clone, Debug)]
pub struct Outline {
    fields: Node,
}

impl Outline {
    /// The outline of a TOOL.md, DRIVER.md, ACTION.md, prompt or sidecar; `None` where its front matter can't be told
    /// apart or is not YAML.
    #[must_use]
    pub fn read(source: &str) -> Option<Outline> {
        let parts = split(source, &mut Report::new(""))?;
        Some(Outline {
            fields: parts.fields,
        })
    }

    /// The text under `id`.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        match &self.fields.get("id")?.content {
            Content::Text(id) => Some(id),
            _ => None,
        }
    }

    /// The value under a field of the document, as written.
    #[must_use]
    pub fn value(&self, field: &str) -> Option<Value> {
        let node = self.fields.get(field)?;
        Some(Field::new(field, node).to_value())
    }

    /// Where a JSON pointer leads: the key of a field, the item of a list; the nearest part that is there if the last
    /// is not.
    #[must_use]
    pub fn position(&self, pointer: &str) -> Position {
        self.fields.place(pointer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn of_an_invalid_document_the_id_and_the_places_are_known() {
        let outline = Outline::read("---\nid: a.b\ninputs:\n  type: 7\n---\n").unwrap();
        assert_eq!(outline.id(), Some("a.b"));
        let at = |pointer| outline.position(pointer).to_string();
        assert_eq!(at("/inputs/type"), "4:3");
        assert_eq!(at("/inputs/properties/x"), "3:1");
        assert_eq!(at("/outputs"), "2:1");
        assert_eq!(outline.value("inputs"), Some(json!({ "type": 7 })));
        assert_eq!(outline.value("outputs"), None);
    }

    #[test]
    fn what_is_not_yaml_has_no_outline() {
        assert!(Outline::read("id: a.b\n").is_none());
        assert!(Outline::read("---\nid: [\n---\n").is_none());
        assert_eq!(Outline::read("---\nid: 7\n---\n").unwrap().id(), None);
    }
}
