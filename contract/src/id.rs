//! Ids of contracts and drivers, without versions.

use std::fmt;

/// The id of a contract or a driver: 2 to 80 lower-case letters, digits, dashes and dots, each
/// dotted part starting and ending with a letter or digit (AIP-14, "Required fields").
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct ToolId(String);

/// The error for a text that is not a valid id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an id of 2 to 80 lower-case letters, digits, dashes and dots, found {found:?}")]
pub struct IdError {
    found: String,
}

impl ToolId {
    /// Reads an id by the rules of AIP-14.
    ///
    /// # Errors
    /// The text has another length or other characters.
    pub fn parse(text: &str) -> Result<ToolId, IdError> {
        ToolId::checked(text, false)
    }

    /// Reads an id by the rules of a version 1 tools.json, which also allow `_`.
    ///
    /// # Errors
    /// The text has another length or other characters.
    pub fn relaxed(text: &str) -> Result<ToolId, IdError> {
        ToolId::checked(text, true)
    }

    fn checked(text: &str, underscore: bool) -> Result<ToolId, IdError> {
        let marks: &[char] = if underscore { &['-', '_'] } else { &['-'] };
        let part = |part: &str| is_word(part, marks);
        if (2..=80).contains(&text.len()) && text.split('.').all(part) {
            return Ok(ToolId(text.to_owned()));
        }
        Err(IdError {
            found: text.chars().take(100).collect(),
        })
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialEq<str> for ToolId {
    fn eq(&self, other: &str) -> bool {
        self.0 == other
    }
}

impl PartialEq<&str> for ToolId {
    fn eq(&self, other: &&str) -> bool {
        self.0 == *other
    }
}

/// Whether a text consists of lower-case letters and digits, with `marks` only between them.
pub fn is_word(text: &str, marks: &[char]) -> bool {
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(alphanumeric)
        && text.ends_with(alphanumeric)
        && text.chars().all(|c| alphanumeric(c) || marks.contains(&c))
}
