//! Header values: printable ASCII, secrets by their position.

use super::values::Values;
use super::{HeaderPiece, RenderError};
use crate::driver::template::{Part, Template};

/// Bytes of all header values together, secrets left out. A template may repeat an input as often
/// as it likes: without a limit, 64 KiB of front matter turn 1 MiB of input into gigabytes.
const MAX_HEADER_BYTES: usize = 32 << 10;

pub(super) fn render(
    templates: &[(String, Template)],
    values: Values<'_>,
) -> Result<Vec<(String, Vec<HeaderPiece>)>, RenderError> {
    let mut left = MAX_HEADER_BYTES;
    let mut headers = Vec::with_capacity(templates.len());
    for (name, template) in templates {
        if !values.lacks(template) {
            headers.push((name.clone(), value(name, template, values, &mut left)?));
        }
    }
    Ok(headers)
}

fn value(
    name: &str,
    template: &Template,
    values: Values<'_>,
    left: &mut usize,
) -> Result<Vec<HeaderPiece>, RenderError> {
    let position = format!("the header `{name}`");
    let mut pieces: Vec<HeaderPiece> = Vec::new();
    let last = template.parts.len().saturating_sub(1);
    for (index, part) in template.parts.iter().enumerate() {
        let text = match part {
            Part::Literal(text) => text.clone(),
            Part::Value(slot) => {
                let text = values.text(slot, &position)?;
                if !text.bytes().all(|b| matches!(b, b' '..=b'~')) {
                    return Err(RenderError::unfit(slot, &position, "printable ASCII only"));
                }
                // A value has no spaces around it (RFC 9110, section 5.5).
                if (index == 0 && text.starts_with(' ')) || (index == last && text.ends_with(' ')) {
                    let expected = "no spaces at its ends";
                    return Err(RenderError::unfit(slot, &position, expected));
                }
                text
            }
            Part::Secret(slug) => {
                pieces.push(HeaderPiece::Secret(slug.clone()));
                continue;
            }
        };
        *left = left
            .checked_sub(text.len())
            .ok_or_else(|| RenderError::too_large("the headers", MAX_HEADER_BYTES))?;
        match pieces.last_mut() {
            Some(HeaderPiece::Text(before)) => before.push_str(&text),
            _ => pieces.push(HeaderPiece::Text(text)),
        }
    }
    Ok(pieces)
}
