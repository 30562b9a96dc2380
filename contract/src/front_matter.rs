//! Front matter of documents that are not this crate's, by the rules of its own. Knows no field.

use toolward_fields::Node;

use crate::diagnostic::{Parsed, Position, Report};
use crate::source::{Keys, split_with};

pub use crate::source::MAX_BYTES;

/// The fields of a Markdown file with YAML front matter, each with its place. Other than in the documents of a bundle a
/// key may be an integer; it is read as the text that stands there.
///
/// ```
/// use toolward_contract::front_matter;
///
/// let source = "---\nerror_codes:\n  404: { meaning: Not found }\n---\n";
/// let fields = front_matter::read("lookup.tool.md", source).into_result().unwrap();
/// let codes = fields.get("error_codes").unwrap();
/// assert_eq!(codes.get("404").unwrap().at.to_string(), "3:8");
/// ```
#[must_use]
pub fn read(file: &str, source: &str) -> Parsed<Node<Position>> {
    let mut report = Report::new(file);
    let matter = split_with(source, Keys::Integers, &mut report);
    report.finish(matter.map(|matter| matter.fields))
}
