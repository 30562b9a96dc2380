//! Front matter of Markdown files: splits it from the body, and reads it with positions. The fields
//! are defined elsewhere.

use serde_json::Value;
use toolward_support::fields::without_mark;

use crate::codes;
use crate::diagnostic::{FileReport, Parsed, Position};
use crate::source::{Content, FieldReader, KeyForm, Node, parse_yaml};

/// The largest document with front matter, in bytes.
pub const MAX_BYTES: usize = 1024 * 1024;

const MAX_FRONT_MATTER_BYTES: usize = 64 * 1024;

pub(crate) struct FrontMatter<'s> {
    pub(crate) fields: Node,
    pub(crate) body: &'s str,
}

impl FrontMatter<'_> {
    pub(crate) fn root<'n>(&'n self, report: &'n FileReport<'n>) -> FieldReader<'n> {
        FieldReader::new("", &self.fields, report)
    }
}

/// Splits a document into front matter and body; reports a diagnostic if it returns `None`.
pub(crate) fn split<'s>(source: &'s str, report: &FileReport<'_>) -> Option<FrontMatter<'s>> {
    split_with(source, KeyForm::Text, report)
}

/// As [`split`], with the given form of keys.
pub(crate) fn split_with<'s>(
    source: &'s str,
    keys: KeyForm,
    report: &FileReport<'_>,
) -> Option<FrontMatter<'s>> {
    if source.len() > MAX_BYTES {
        let message = format!(
            "expected at most {} KiB, found {} bytes",
            MAX_BYTES / 1024,
            source.len()
        );
        report.add(&codes::FILE_TOO_LARGE, Position::START, message);
        return None;
    }
    let source = without_mark(source);
    let mut lines = source.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if !is_fence(first) {
        let hint = "put `---` on the first line".to_owned();
        let message = "expected YAML front matter between two `---` lines, found none";
        let (code, at) = (&codes::FRONT_MATTER_MISSING, Position::START);
        report.add_with_hint(code, at, message, hint);
        return None;
    }
    let mut length = 0;
    let closed = lines.find(|line| {
        let fence = is_fence(line);
        length += if fence { 0 } else { line.len() };
        fence
    });
    let Some(fence) = closed else {
        let message = "expected a second `---` line after the fields, found the end of the file";
        report.add(&codes::FRONT_MATTER_UNCLOSED, Position::START, message);
        return None;
    };
    if length > MAX_FRONT_MATTER_BYTES {
        let message = format!(
            "expected at most {} KiB of front matter, found {length} bytes",
            MAX_FRONT_MATTER_BYTES / 1024
        );
        report.add(&codes::FRONT_MATTER_TOO_LARGE, Position::START, message);
        return None;
    }
    let start = first.len();
    let text = source.get(start..start + length)?;
    let body = source.get(start + length + fence.len()..)?;
    let fields = parse_yaml(text, 2, keys, report)?;
    Some(FrontMatter { fields, body })
}

fn is_fence(line: &str) -> bool {
    line.trim_end() == "---"
}

/// Reads the fields of a Markdown file with YAML front matter, each with its position. Unlike in
/// most documents of a bundle, a key may be an integer, which is read as its text.
///
/// ```
/// use toolward_contract::front_matter;
///
/// let source = "---\nerror_codes:\n  404: { meaning: Not found }\n---\n";
/// let fields = front_matter::read("lookup.tool.md", source).into_result().unwrap();
/// let codes = fields.get("error_codes").unwrap();
/// assert_eq!(codes.get("404").unwrap().at.to_string(), "3:8");
/// ```
pub fn read(file: &str, source: &str) -> Parsed<toolward_support::fields::Node<Position>> {
    let report = FileReport::new(file);
    let matter = split_with(source, KeyForm::Integers, &report);
    report.finish(matter.map(|matter| matter.fields))
}

/// The front matter of a document that may be invalid.
#[derive(Clone, Debug)]
pub struct Outline {
    fields: Node,
}

impl Outline {
    /// Reads the outline of a TOOL.md, DRIVER.md, ACTION.md, prompt or description of a resource;
    /// `None` if the front matter can't be split off or is not YAML.
    pub fn read(source: &str) -> Option<Outline> {
        let parts = split(source, &FileReport::new(""))?;
        Some(Outline {
            fields: parts.fields,
        })
    }

    /// The text under `id`.
    pub fn id(&self) -> Option<&str> {
        match &self.fields.get("id")?.content {
            Content::Text(id) => Some(id),
            _ => None,
        }
    }

    /// The value under a field of the document, as written.
    pub fn value(&self, field: &str) -> Option<Value> {
        Some(self.fields.get(field)?.to_value())
    }

    /// The position of the part at a JSON pointer: of a field's key or of a list's item. If the
    /// part does not exist, the position of its nearest existing parent.
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
