//! Rules that names, descriptions and versions of all documents share.

use crate::codes;
use crate::diagnostic::{Position, Report};
use crate::source::{Content, Field, Fields, Node};

/// Characters that change what a text looks like: controls, bidirectional overrides, tag characters.
pub(crate) fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Text for people: within a length, without deceptive characters.
pub(crate) fn prose(
    field: &Field<'_>,
    length: std::ops::RangeInclusive<usize>,
    lines: bool,
    report: &mut Report<'_>,
) -> Option<String> {
    let found = report.read(field.text())?;
    let count = found.trim().chars().count();
    if !length.contains(&count) {
        let message = format!(
            "expected `{}` to have {} to {} characters, found {count}",
            field.name,
            length.start(),
            length.end()
        );
        report.add(&codes::TEXT_LENGTH, field.at, message);
        return None;
    }
    check_characters(found, &field.name, field.at, lines, report).then(|| found.trim().to_owned())
}

/// Text of any length but none, without deceptive characters.
pub(crate) fn filled(field: &Field<'_>, lines: bool, report: &mut Report<'_>) -> Option<String> {
    let found = report.read(field.text())?;
    if found.trim().is_empty() {
        let message = format!("expected `{}` to say something, found nothing", field.name);
        report.add(&codes::TEXT_LENGTH, field.at, message);
        return None;
    }
    check_characters(found, &field.name, field.at, lines, report).then(|| found.to_owned())
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
    let field = report.read(fields.required("name"))?;
    prose(&field, 1..=80, false, report)
}

pub(crate) fn description(fields: &mut Fields<'_>, report: &mut Report<'_>) -> Option<String> {
    let field = report.read(fields.required("description"))?;
    prose(&field, 1..=2000, true, report)
}

pub(crate) fn version(field: &Field<'_>, report: &mut Report<'_>) -> Option<semver::Version> {
    // Unquoted, `1.0` is a number, and quoting it does not make it a version.
    let number;
    let found = match &field.content {
        Content::Number(found) => {
            number = found.to_string();
            number.as_str()
        }
        _ => report.read(field.text())?,
    };
    let name = &field.name;
    match semver::Version::parse(found) {
        Ok(version) => Some(version),
        Err(error) => {
            let message = format!(
                "expected `{name}` to be a semantic version such as 1.0.0, found {found:?} ({error})"
            );
            // Of a number the zeros at its end are lost: `1.10` was read as 1.1.
            let is_exact = !matches!(field.content, Content::Number(_))
                || found
                    .strip_suffix(".0")
                    .unwrap_or(found)
                    .parse::<u64>()
                    .is_ok();
            let whole = completed(found).filter(|_| is_exact);
            let hint = whole.map(|whole| format!("write `{name}: {whole}`"));
            report.add_hinted(&codes::VERSION_INVALID, field.at, message, hint);
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
    let Some(field) = fields.take(key) else {
        return Vec::new();
    };
    let mut kept = Vec::new();
    for (found, at) in report.texts(&field) {
        if check_characters(found, &field.name, at, false, report) {
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
        _ => node.kind().to_string(),
    }
}
