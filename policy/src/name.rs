//! Names in a policy: publishers, patterns of tool ids, and names of rules. They are parsed once;
//! later stages only compare them.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use toolward_contract::tool::is_word;

use crate::error::{self, PolicyError, Refuse as _};

/// The publisher of a bundle, by its name in the host. It is a name of the trust store; `key:` and
/// the id of a key that is trusted ad hoc; or `dev:` and the directory of an unsigned bundle. Never
/// a wildcard.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Publisher(Arc<str>);

/// The number of digits of a key id after `key:`. All of them are needed, since a key with the same
/// first digits can be found by generating keys.
const KEY_ID_DIGITS: usize = 64;
/// The most bytes of the directory of `dev:`.
const MAX_DEV_BYTES: usize = 4096;

impl Publisher {
    /// Reads a publisher's name.
    ///
    /// # Errors
    /// If the name has another form, such as `*`.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let good = if let Some(directory) = text.strip_prefix("dev:") {
            (1..=MAX_DEV_BYTES).contains(&directory.len())
                && !directory.chars().any(char::is_control)
        } else if let Some(key) = text.strip_prefix("key:") {
            let hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
            key.len() == KEY_ID_DIGITS && key.bytes().all(hex)
        } else {
            is_trust_name(text)
        };
        if good {
            return Ok(Self(text.into()));
        }
        let error = error::PUBLISHER.expected("a publisher's name", text);
        Err(if text.contains('*') {
            error.hinted("a grant names its publisher; only `[[deny]]` may be about all of them")
        } else if text.starts_with("key:") {
            error.hinted(
                "write all 64 digits of the key id: `toolward publisher keys show KEY.pub.pem` shows it",
            )
        } else {
            error.hinted("write the name as in `[[publisher]]`, `key:…` or `dev:…`")
        })
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a trust store accepts the text as a name.
fn is_trust_name(text: &str) -> bool {
    (2..=80).contains(&text.len()) && is_word(text, &['-', '.']) && !text.contains("..")
}

impl fmt::Display for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A pattern of tools: an id whose segments may be `*`, and optionally a major version. `*` stands
/// for one whole segment; as the last segment, it stands for one or more. `notes.*` matches
/// `notes.append` and `notes.a.b`, but neither `notes` nor `notesx.a`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolPattern {
    segments: Vec<String>,
    major: Option<u64>,
}

impl ToolPattern {
    /// Whether it matches any id, because all of its segments are `*`.
    pub(crate) fn is_all(&self) -> bool {
        self.segments.iter().all(|segment| segment == "*")
    }

    /// The pattern that matches every tool.
    pub fn all() -> Self {
        Self {
            segments: vec!["*".to_owned()],
            major: None,
        }
    }

    /// Reads `id` or `id@major`, with `*` for whole segments.
    ///
    /// # Errors
    /// If the text is not such a pattern.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let refused = || {
            error::TOOL
                .expected(
                    "a tool's id, with `*` for whole segments and possibly `@major`",
                    text,
                )
                .hinted("write for example \"notes.append\", \"notes.*\" or \"notes.append@1\"")
        };
        let (id, major) = match text.split_once('@') {
            None => (text, None),
            Some((id, digits)) => {
                let major = digits.parse().ok();
                let major = major.filter(|major: &u64| major.to_string() == digits);
                (id, Some(major.ok_or_else(refused)?))
            }
        };
        let literal = |segment: &str| is_word(segment, &['-', '_']);
        let good = id.len() <= 80
            && id
                .split('.')
                .all(|segment| segment == "*" || literal(segment));
        if !good {
            return Err(refused());
        }
        Ok(Self {
            segments: id.split('.').map(str::to_owned).collect(),
            major,
        })
    }

    /// Whether a segment is a wildcard.
    pub(crate) fn has_wildcard(&self) -> bool {
        self.segments.iter().any(|segment| segment == "*")
    }

    /// The major version, if it names one.
    pub(crate) fn major(&self) -> Option<u64> {
        self.major
    }

    /// Whether the pattern matches a tool.
    pub fn matches(&self, id: &str, major: u64) -> bool {
        if self.major.is_some_and(|own| own != major) {
            return false;
        }
        matches_segments(self.segments.iter().map(String::as_str), id.split('.'))
    }
}

/// Whether the segments of a name match the segments of a pattern: `*` stands for one segment; as
/// the last segment, it stands for one or more.
pub(crate) fn matches_segments<'s>(
    pattern: impl Iterator<Item = &'s str>,
    mut found: impl Iterator<Item = &'s str>,
) -> bool {
    let mut pattern = pattern.peekable();
    while let Some(segment) = pattern.next() {
        let Some(part) = found.next() else {
            return false;
        };
        if segment == "*" && pattern.peek().is_none() {
            return true;
        }
        if segment != "*" && segment != part {
            return false;
        }
    }
    found.next().is_none()
}

impl fmt::Display for ToolPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.segments.join("."))?;
        self.major.map_or(Ok(()), |major| write!(f, "@{major}"))
    }
}

/// Whether a rule grants or denies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleKind {
    /// `[[grant]]`
    Grant,
    /// `[[deny]]`
    Deny,
}

impl RuleKind {
    pub(crate) fn table(self) -> &'static str {
        match self {
            Self::Grant => "grant",
            Self::Deny => "deny",
        }
    }
}

/// The name of a rule for people, so that the deciding rule can be shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct RuleId {
    /// Whether it grants or denies.
    pub kind: RuleKind,
    /// Its place among the rules of its kind in its source, from 1.
    pub number: usize,
    /// Its source, such as the name of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The line of its table, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Its subject, in a few words.
    pub description: String,
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = format!("[[{}]] {}", self.kind.table(), self.number);
        let place = written_at(&table, self.source.as_deref(), self.line);
        write!(f, "{place}: {}", self.description)
    }
}

/// A table with its source and line.
pub(crate) fn written_at(table: &str, source: Option<&str>, line: Option<usize>) -> String {
    match (source, line) {
        (Some(source), Some(line)) => format!("{table} ({source}:{line})"),
        (Some(source), None) => format!("{table} ({source})"),
        (None, Some(line)) => format!("{table} (line {line})"),
        (None, None) => table.to_owned(),
    }
}

/// A rule and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed<T> {
    pub(crate) id: RuleId,
    pub(crate) rule: T,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_whole_segments_and_at_the_end_for_the_rest() {
        let matches = |pattern: &str, id: &str| ToolPattern::parse(pattern).unwrap().matches(id, 1);
        assert!(matches("*", "notes.append"));
        assert!(matches("notes.*", "notes.append"));
        assert!(matches("notes.*", "notes.a.b"));
        assert!(!matches("notes.*", "notes"));
        assert!(!matches("notes.*", "notesx.a"));
        assert!(matches("*.append", "notes.append"));
        assert!(!matches("*.append", "a.notes.append"));
        assert!(!matches("notes", "notes.append"));
        assert!(!matches("notes.append.x", "notes.append"));
    }

    #[test]
    fn a_major_version_limits_a_pattern_to_it() {
        let pattern = ToolPattern::parse("notes.*@2").unwrap();
        assert!(pattern.matches("notes.append", 2));
        assert!(!pattern.matches("notes.append", 1));
        assert_eq!(pattern.to_string(), "notes.*@2");
    }

    #[test]
    fn stars_inside_a_segment_and_stray_versions_are_refused() {
        for text in [
            "",
            "not*",
            "**",
            "a..b",
            ".a",
            "a.",
            "Notes",
            "a@",
            "a@x",
            "a@01",
            "a@1@2",
            "a b",
            "-a",
            "a@99999999999999999999999",
        ] {
            assert_eq!(
                ToolPattern::parse(text).unwrap_err().code(),
                "policy-tool",
                "{text}"
            );
        }
    }

    #[test]
    fn publishers_are_named_and_never_a_wildcard() {
        let key = format!("key:{}", "c4".repeat(32));
        for text in ["acme", &key, "dev:/srv/my tools", "a.b-c"] {
            Publisher::parse(text).unwrap();
        }
        for text in [
            "", "*", "acme*", "a", "Acme", "dev:", "dev:a\nb", "key:xy", "a..b",
        ] {
            assert!(Publisher::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_key_is_named_by_its_whole_id() {
        for digits in [0, 1, 12, 63, 65] {
            let text = format!("key:{}", "c".repeat(digits));
            let refused = Publisher::parse(&text).unwrap_err();
            assert!(
                refused.hint().unwrap().contains("publisher keys show"),
                "{text}"
            );
        }
    }
}
