//! Splits a Markdown file into front matter and body. Knows no field.

use toolward_fields::without_mark;

use super::yaml::{self, Keys};
use super::{Field, Node};
use crate::codes;
use crate::diagnostic::{Position, Report};

/// The largest document with front matter, in bytes.
pub const MAX_BYTES: usize = 1024 * 1024;

const MAX_FRONT_MATTER_BYTES: usize = 64 * 1024;

pub(crate) struct FrontMatter<'s> {
    pub(crate) fields: Node,
    pub(crate) body: &'s str,
}

impl FrontMatter<'_> {
    pub(crate) fn root(&self) -> Field<'_> {
        Field::new("", &self.fields)
    }
}

/// The two parts, or `None` and a diagnostic.
pub(crate) fn split<'s>(source: &'s str, report: &mut Report<'_>) -> Option<FrontMatter<'s>> {
    split_with(source, Keys::Text, report)
}

/// [`split`], with these keys.
pub(crate) fn split_with<'s>(
    source: &'s str,
    keys: Keys,
    report: &mut Report<'_>,
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
        let hint = "put `---` on the first line";
        let message = "expected YAML front matter between two `---` lines, found none";
        report.add_with_hint(&codes::FRONT_MATTER_MISSING, Position::START, message, hint);
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
    let mut warnings = Vec::new();
    let read = yaml::parse(text, 2, keys, &mut warnings);
    for warning in warnings {
        report.add_hinted(warning.info, warning.at, warning.message, warning.hint);
    }
    match read {
        Ok(fields) => Some(FrontMatter { fields, body }),
        Err(error) => {
            report.add_hinted(error.info, error.at, error.message, error.hint);
            None
        }
    }
}

fn is_fence(line: &str) -> bool {
    line.trim_end() == "---"
}
