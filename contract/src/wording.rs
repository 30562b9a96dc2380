//! Rules that names, descriptions and versions of all documents share.

use crate::codes;
use crate::diagnostic::{FileReport, Position};
use crate::source::{Content, FieldReader, MappingReader, Node};

/// Characters that change what a text looks like: controls, bidirectional overrides, tag characters.
pub(crate) fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Text for people: within a length, without deceptive characters.
pub(crate) fn prose(
    field: &FieldReader<'_>,
    length: std::ops::RangeInclusive<usize>,
    lines: bool,
) -> Option<String> {
    let found = field.text()?;
    let count = found.trim().chars().count();
    if !length.contains(&count) {
        let message = format!(
            "expected `{}` to have {} to {} characters, found {count}",
            field.name,
            length.start(),
            length.end()
        );
        return field.refuse(&codes::TEXT_LENGTH, message);
    }
    check_characters(found, &field.name, field.at, lines, field.report)
        .then(|| found.trim().to_owned())
}

/// Text of any length but none, without deceptive characters.
pub(crate) fn filled(field: &FieldReader<'_>, lines: bool) -> Option<String> {
    let found = field.text()?;
    if found.trim().is_empty() {
        let message = format!("expected `{}` to say something, found nothing", field.name);
        return field.refuse(&codes::TEXT_LENGTH, message);
    }
    shown_text(field, lines)
}

/// Text without deceptive characters.
pub(crate) fn shown_text(field: &FieldReader<'_>, lines: bool) -> Option<String> {
    let found = field.text()?;
    check_characters(found, &field.name, field.at, lines, field.report).then(|| found.to_owned())
}

pub(crate) fn check_characters(
    found: &str,
    name: &str,
    at: Position,
    lines: bool,
    report: &FileReport<'_>,
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

/// `name`, of every front matter.
pub(crate) fn name(fields: &mut MappingReader<'_>) -> Option<String> {
    let field = fields.required("name")?;
    prose(&field, 1..=80, false)
}

pub(crate) fn description(fields: &mut MappingReader<'_>) -> Option<String> {
    let field = fields.required("description")?;
    prose(&field, 1..=2000, true)
}

pub(crate) fn version(field: &FieldReader<'_>) -> Option<semver::Version> {
    // Unquoted, `1.0` is a number, and quoting it does not make it a version.
    let number;
    let found = match &field.content {
        Content::Number(found) => {
            number = found.to_string();
            number.as_str()
        }
        _ => field.text()?,
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
            field.note_with_hint(&codes::VERSION_INVALID, message, hint);
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
pub(crate) fn labels(fields: &mut MappingReader<'_>, key: &'static str) -> Vec<String> {
    fields
        .take(key)
        .map(|field| shown_texts(&field))
        .unwrap_or_default()
}

/// The texts of a list that have no deceptive characters.
pub(crate) fn shown_texts(field: &FieldReader<'_>) -> Vec<String> {
    let mut texts = field.texts();
    texts.retain(|(text, at)| check_characters(text, &field.name, *at, false, field.report));
    texts.into_iter().map(|(text, _)| text.to_owned()).collect()
}

/// Names that MCP clients accept for tools and prompts.
pub(crate) fn plain_name(node: &Node, label: &str, report: &FileReport<'_>) -> Option<String> {
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

/// A value for messages: a short text in quotes, else its kind.
pub(crate) fn shown(node: &Node) -> String {
    match &node.content {
        Content::Text(text) if text.chars().count() <= 80 => format!("{text:?}"),
        _ => node.kind().to_string(),
    }
}
