//! Fills in the path and the query. A value stays in its path segment or parameter value.

use super::{RenderError, Values};
use crate::driver::http::Endpoint;
use crate::driver::template::{Template, TemplatePart};
use crate::url_path::{percent_decoded, percent_encoded};

/// How many bytes path and query may have. Servers should accept at least 8000 (RFC 9110, section
/// 4.1).
const MAX_URL_BYTES: usize = 8 << 10;

/// Returns the path and query, and the parameters whose value is a secret.
pub(super) fn render(
    endpoint: &Endpoint,
    values: Values<'_>,
) -> Result<(String, Vec<(String, String)>), RenderError> {
    let mut url = String::new();
    for template in &endpoint.segments {
        url.push('/');
        segment(template, values, &mut url)?;
    }
    let mut secrets = Vec::new();
    let mut separator = '?';
    for (name, template) in &endpoint.query {
        if let [TemplatePart::Secret(slug)] = template.parts.as_slice() {
            secrets.push((name.clone(), slug.clone()));
            continue;
        }
        if values.lacks(template) {
            continue;
        }
        url.push(separator);
        url.push_str(name);
        if !template.parts.is_empty() {
            url.push('=');
        }
        for part in &template.parts {
            match part {
                TemplatePart::Literal(text) => push(&mut url, text)?,
                TemplatePart::Value(slot) => encode(&values.text(slot, "the query")?, &mut url)?,
                TemplatePart::Secret(slug) => return Err(RenderError::misplaced(slug)),
            }
        }
        separator = '&';
    }
    // Names and separators after the last value were not counted yet.
    push(&mut url, "")?;
    Ok((url, secrets))
}

/// Fills in one path segment. The result is one segment with any value, even for servers that
/// decode before they split.
fn segment(template: &Template, values: Values<'_>, url: &mut String) -> Result<(), RenderError> {
    const POSITION: &str = "the path";
    let mut decoded = Vec::new();
    let mut last = None;
    for part in &template.parts {
        match part {
            TemplatePart::Literal(text) => {
                decoded.extend(percent_decoded(text.as_bytes()));
                push(url, text)?;
            }
            TemplatePart::Value(slot) => {
                let text = values.text(slot, POSITION)?;
                if text.contains(|c: char| matches!(c, '/' | '\\') || c.is_control()) {
                    let expected = "neither `/`, `\\` nor control characters";
                    return Err(RenderError::unfit(slot, POSITION, expected));
                }
                decoded.extend_from_slice(text.as_bytes());
                encode(&text, url)?;
                last = Some(slot);
            }
            TemplatePart::Secret(slug) => return Err(RenderError::misplaced(slug)),
        }
    }
    match last {
        Some(slot) if may_be_dots(decoded) => Err(RenderError::unfit(
            slot,
            POSITION,
            "more than nothing, `.` or `..`",
        )),
        _ => Ok(()),
    }
}

/// Whether a server may read a segment as empty, `.` or `..`: some servers decode twice, and some
/// drop the part after `;`.
fn may_be_dots(mut segment: Vec<u8>) -> bool {
    loop {
        let name = segment.split(|byte| *byte == b';').next();
        if matches!(name, Some(b"" | b"." | b"..")) {
            return true;
        }
        let decoded = percent_decoded(&segment);
        if decoded == segment {
            return false;
        }
        segment = decoded;
    }
}

fn push(url: &mut String, text: &str) -> Result<(), RenderError> {
    check(url, text)?;
    url.push_str(text);
    Ok(())
}

fn encode(text: &str, url: &mut String) -> Result<(), RenderError> {
    // Checked before encoding, whose time is proportional to the length.
    check(url, text)?;
    url.extend(percent_encoded(text.as_bytes()));
    check(url, "")
}

/// Checks that there is room for `text`.
fn check(url: &str, text: &str) -> Result<(), RenderError> {
    if url.len().saturating_add(text.len()) > MAX_URL_BYTES {
        return Err(RenderError::too_large("path and query", MAX_URL_BYTES));
    }
    Ok(())
}
