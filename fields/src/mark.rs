//! The byte order mark, which some editors write before a document in UTF-8. It says nothing: every reader of documents
//! that people write drops it here. What is signed or sent by machines has none.

/// A document's text without the mark.
///
/// ```
/// assert_eq!(toolward_fields::without_mark("\u{feff}---\n"), "---\n");
/// ```
#[must_use]
pub fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// [`without_mark`], of bytes that need not be UTF-8.
#[must_use]
pub fn without_mark_bytes(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}
