//! Ids of bundles and names of publishers, and the prefixes that bind publishers to ids. Contract
//! and driver ids have other grammars, but a [`Prefix`] applies to all ids.

use std::fmt;
use std::str::FromStr;

use crate::error::{ErrorKind, Refusal, impl_serde_text};
use crate::text::quoted;

/// Checks an id of a bundle or a publisher's name: 2 to 80 lower-case ASCII letters, digits, dashes
/// and dots, with a letter or digit at both ends, no two dots in a row (AIP-14, `id`).
///
/// # Errors
/// [`ErrorKind::IdInvalid`].
pub fn check(text: &str) -> Result<(), Refusal> {
    let edge = |byte: Option<&u8>| {
        byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let bytes = text.as_bytes();
    let good = (2..=80).contains(&bytes.len())
        && bytes
            .iter()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'))
        && edge(bytes.first())
        && edge(bytes.last())
        && !text.contains("..");
    if good {
        Ok(())
    } else {
        Err(Refusal::new(ErrorKind::IdInvalid).found(quoted(text)))
    }
}

/// An id of a bundle or a publisher's name, checked by [`check`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(String);

impl Id {
    /// Checks an id.
    ///
    /// # Errors
    /// [`ErrorKind::IdInvalid`].
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        check(text)?;
        Ok(Self(text.to_owned()))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Id {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        Self::parse(text)
    }
}

impl_serde_text!(Id);

impl AsRef<str> for Id {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Ids that a publisher may publish: one id and all ids below it, in whole segments. The segments
/// of an id end at `.`, `:` or `/`. So `acme` covers `acme`, `acme.crm` and `acme:commit`, but not
/// `acme-crm`. `*` covers every id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix(String);

impl Prefix {
    /// Checks a prefix: `*`, or at most 80 bytes of segments, separated by `.`, `:` or `/`. A
    /// segment has lower-case ASCII letters, digits, `-`, `_` and `@`.
    ///
    /// # Errors
    /// [`ErrorKind::IdInvalid`].
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        let good = text == "*"
            || (!text.is_empty()
                && text.len() <= 80
                && text.split(['.', ':', '/']).all(|segment| {
                    !segment.is_empty()
                        && segment.bytes().all(
                            |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'@'),
                        )
                }));
        if good {
            Ok(Self(text.to_owned()))
        } else {
            Err(Refusal::new(ErrorKind::IdInvalid)
                .expected("whole lower-case segments, for example \"acme.crm\", or \"*\"")
                .found(quoted(text))
                .hinted("write a prefix without a trailing dot or star"))
        }
    }

    /// The prefix that covers every id.
    #[must_use]
    pub fn all() -> Self {
        Self("*".to_owned())
    }

    /// Whether `id` is at or below this prefix. The comparison is exact: `acme` does not cover
    /// `ACME`.
    #[must_use]
    pub fn covers(&self, id: &str) -> bool {
        if self.0 == "*" {
            return true;
        }
        id.strip_prefix(self.0.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ':', '/']))
    }

    /// Whether both cover some id: they are equal, or one is inside the other.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.covers(&other.0) || other.covers(&self.0)
    }

    /// How specific a prefix is: 0 for `*`, otherwise its length in bytes. Of two prefixes that
    /// cover the same id, the longer has more segments.
    #[must_use]
    pub fn closeness(&self) -> usize {
        if self.0 == "*" { 0 } else { self.0.len() }
    }

    /// The prefix as written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_short_lower_case_and_segmented() {
        for id in ["ab", "text.stats", "a-b.c-d.3", "x2"] {
            check(id).unwrap();
        }
        let long = "a".repeat(81);
        for id in [
            "", "a", ".a", "a.", "-a", "a-", "a..b", "Ab", "a_b", "a b", "é.a", "a:b", &long,
        ] {
            assert_eq!(check(id).expect_err(id).code(), "id-invalid");
        }
    }

    #[test]
    fn a_prefix_covers_whole_segments_only() {
        let prefix = Prefix::parse("acme.crm").unwrap();
        for id in ["acme.crm", "acme.crm.find", "acme.crm:commit", "acme.crm/x"] {
            assert!(prefix.covers(id), "{id}");
        }
        for id in [
            "acme",
            "acme.crmx",
            "acme.crm-x",
            "ACME.crm",
            "x.acme.crm",
            "",
        ] {
            assert!(!prefix.covers(id), "{id}");
        }
        assert!(Prefix::all().covers("anything"));
    }

    #[test]
    fn prefixes_overlap_that_are_equal_or_inside_each_other() {
        let overlap = |one: &str, other: &str| {
            let [one, other] = [one, other].map(|text| Prefix::parse(text).unwrap());
            assert_eq!(one.overlaps(&other), other.overlaps(&one));
            one.overlaps(&other)
        };
        for (one, other) in [
            ("acme", "acme"),
            ("acme", "acme.crm"),
            ("acme", "acme:commit"),
            ("*", "acme"),
            ("*", "*"),
        ] {
            assert!(overlap(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("acme", "acmeevil"),
            ("acme.crm", "acme.crmx"),
            ("acme.crm", "acme.mail"),
            ("acme.crm", "acme:crm"),
            ("acme", "x.acme"),
        ] {
            assert!(!overlap(one, other), "{one} {other}");
        }
    }

    #[test]
    fn a_prefix_is_written_in_whole_segments() {
        for prefix in [
            "", ".", "acme.", "acme.*", "Acme", "a b", ".acme", "a..b", "**",
        ] {
            assert!(Prefix::parse(prefix).is_err(), "{prefix}");
        }
    }
}
