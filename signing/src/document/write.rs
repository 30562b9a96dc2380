//! Writing: strings as TOML 1.0 has them. Each document has its own layout.

use std::fmt::Write as _;

/// A basic string. What has no place in signed text is written as an escape, and refused on reading back.
pub(crate) fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if crate::text::is_hidden(c) => {
                // Writing to a String can't fail.
                let _ = write!(out, "\\U{:08X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
