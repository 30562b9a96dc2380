//! Rules that names, descriptions and versions of all documents share.

use serde_json::{Map, Value};

use crate::codes;
use crate::diagnostic::{Position, Report};
use crate::source::{Content, Fields, Node, text, texts};

/// Characters that change what a text looks like: controls, bidirectional overrides, tag characters.
pub(crate) fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Text for people: within a length, without deceptive characters.
pub(crate) fn prose(
    node: &Node,
    name: &str,
    length: std::ops::RangeInclusive<usize>,
    lines: bool,
    report: &mut Report<'_>,
) -> Option<String> {
    let found = text(node, name, report)?;
    let count = found.trim().chars().count();
    if !length.contains(&count) {
        let message = format!(
            "expected `{name}` to have {} to {} characters, found {count}",
            length.start(),
            length.end()
        );
        report.add(&codes::TEXT_LENGTH, node.at, message);
        return None;
    }
    check_characters(found, name, node.at, lines, report).then(|| found.trim().to_owned())
}

pub(crate) fn check_characters(
    found: &str,
    name: &str,
    at: Position,
    lines: bool,
    report: &mut Report<'_>,
) -> bool {
    let bad = found
        .trim()
        .chars()
        .find(|&c| is_deceptive(c) && !(lines && matches!(c, '\n' | '\t')));
    if let Some(bad) = bad {
        let message = format!(
            "expected `{name}` without control or bidirectional characters, found U+{:04X}",
            u32::from(bad)
        );
        report.add(&codes::TEXT_CONTROL_CHARACTER, at, message);
    }
    bad.is_none()
}

/// The four fields that every front matter begins with.
pub(crate) fn name(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Option<String> {
    let label = fields.name("name");
    fields
        .required("name", report)
        .and_then(|node| prose(node, &label, 1..=80, false, report))
}

pub(crate) fn description(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Option<String> {
    let label = fields.name("description");
    fields
        .required("description", report)
        .and_then(|node| prose(node, &label, 1..=2000, true, report))
}

pub(crate) fn version(node: &Node, name: &str, report: &mut Report<'_>) -> Option<semver::Version> {
    // Unquoted, `1.0` is a number, and quoting it does not make it a version.
    let number;
    let found = match &node.content {
        Content::Number(found) => {
            number = found.to_string();
            number.as_str()
        }
        _ => text(node, name, report)?,
    };
    match semver::Version::parse(found) {
        Ok(version) => Some(version),
        Err(error) => {
            let message = format!(
                "expected `{name}` to be a semantic version such as 1.0.0, found {found:?} ({error})"
            );
            // Of a number the zeros at its end are lost: `1.10` was read as 1.1.
            let is_exact = !matches!(node.content, Content::Number(_))
                || found
                    .strip_suffix(".0")
                    .unwrap_or(found)
                    .parse::<u64>()
                    .is_ok();
            match completed(found) {
                Some(whole) if is_exact => {
                    let hint = format!("write `{name}: {whole}`");
                    report.add_with_hint(&codes::VERSION_INVALID, node.at, message, hint);
                }
                _ => report.add(&codes::VERSION_INVALID, node.at, message),
            }
            None
        }
    }
}

/// `1` and `1.0` as versions of three numbers.
fn completed(found: &str) -> Option<semver::Version> {
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = found.split('.').collect();
    let missing = 3_usize
        .checked_sub(parts.len())
        .filter(|missing| *missing > 0)?;
    if !parts.iter().all(|part| plain(part)) {
        return None;
    }
    semver::Version::parse(&format!("{found}{}", ".0".repeat(missing))).ok()
}

/// A list of short labels, such as tags.
pub(crate) fn labels(
    fields: &mut Fields<'_>,
    key: &'static str,
    report: &mut Report<'_>,
) -> Vec<String> {
    let Some(node) = fields.take(key) else {
        return Vec::new();
    };
    let label = fields.name(key);
    let read = texts(node, &label, report).into_iter();
    let mut kept = Vec::new();
    for (found, at) in read {
        if check_characters(found, &label, at, false, report) {
            kept.push(found.to_owned());
        }
    }
    kept
}

/// Names that MCP clients accept for tools and prompts.
pub(crate) fn plain_name(node: &Node, label: &str, report: &mut Report<'_>) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match &node.content {
        Content::Text(name) if (1..=64).contains(&name.len()) && name.chars().all(plain) => {
            Some(name.clone())
        }
        _ => {
            let message = format!(
                "expected `{label}` to have 1 to 64 letters, digits, `_`, `-` and `.`, found {}",
                shown(node)
            );
            report.add(&codes::METADATA_INVALID, node.at, message);
            None
        }
    }
}

/// A value for messages: a short text as it is, else its kind.
pub(crate) fn shown(node: &Node) -> String {
    match &node.content {
        Content::Text(text) if text.chars().count() <= 80 => format!("{text:?}"),
        _ => node.kind().to_owned(),
    }
}

/// A mapping of the author's, as written; an empty one if it isn't there.
pub(crate) fn mapping(
    node: Option<&Node>,
    label: &str,
    report: &mut Report<'_>,
) -> Map<String, Value> {
    let Some(node) = node else {
        return Map::new();
    };
    match node.to_value() {
        Value::Object(mapping) => mapping,
        _ => {
            let message = format!("expected `{label}` to be a mapping, found {}", node.kind());
            report.add(&codes::WRONG_TYPE, node.at, message);
            Map::new()
        }
    }
}
