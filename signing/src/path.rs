//! Paths inside a bundle, and the rules that make them safe on every system. Paths on a host's disk
//! go through `cap-std` instead.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::error::{ErrorKind, Refusal};
use crate::text::quoted;

/// How many segments a path may have. Deeper trees would only exhaust programs that walk them.
pub const MAX_DEPTH: usize = 8;
/// How long a segment may be, in bytes: the length of the name field in a ustar header.
pub const MAX_SEGMENT: usize = 100;
/// How long a path may be, in bytes. A path within this limit and [`MAX_SEGMENT`] fits a ustar
/// header.
pub const MAX_LENGTH: usize = 155;

/// A relative path of a bundle: segments of `[A-Za-z0-9._-]` joined by `/`, at most [`MAX_DEPTH`]
/// deep. No segment has a leading or trailing dot, or is a name that Windows takes for a device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct BundlePath(String);

impl BundlePath {
    /// Checks a path.
    ///
    /// # Errors
    /// [`ErrorKind::PathInvalid`] with the rule that it breaks.
    pub fn parse(text: &str) -> Result<Self, Refusal> {
        match broken_rule(text) {
            None => Ok(Self(text.to_owned())),
            Some(rule) => Err(Refusal::new(ErrorKind::PathInvalid)
                .expected(rule)
                .found(quoted(text))),
        }
    }

    /// The path, with `/` between the segments.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The folders that lead to the file, outermost first: `a`, `a/b` for `a/b/c`.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.0
            .match_indices('/')
            .filter_map(|(slash, _)| self.0.get(..slash))
    }
}

/// The first rule that a path breaks, in words for "expected …".
fn broken_rule(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        return Some("a name");
    }
    if text.len() > MAX_LENGTH {
        return Some("at most 155 bytes");
    }
    if text.starts_with('/') {
        return Some("a relative path");
    }
    if text.split('/').count() > MAX_DEPTH {
        return Some("at most 8 segments");
    }
    text.split('/').find_map(broken_segment_rule)
}

fn broken_segment_rule(segment: &str) -> Option<&'static str> {
    if segment.is_empty() {
        return Some("no empty segment");
    }
    if segment.len() > MAX_SEGMENT {
        return Some("segments of at most 100 bytes");
    }
    if !segment
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
    {
        return Some("only ASCII letters, digits, `.`, `_` and `-` in a segment");
    }
    if segment.starts_with('.') || segment.ends_with('.') {
        return Some("no segment that begins or ends with a dot");
    }
    if is_device_name(segment) {
        return Some("no name that Windows takes for a device");
    }
    None
}

/// Windows opens a device for these names, with any extension and in any case.
fn is_device_name(segment: &str) -> bool {
    let stem = segment.split('.').next().unwrap_or(segment);
    if ["con", "prn", "aux", "nul"]
        .iter()
        .any(|device| stem.eq_ignore_ascii_case(device))
    {
        return true;
    }
    let (Some(name), Some(number)) = (stem.get(..3), stem.get(3..)) else {
        return false;
    };
    (name.eq_ignore_ascii_case("com") || name.eq_ignore_ascii_case("lpt"))
        && matches!(number.as_bytes(), [b'0'..=b'9'])
}

/// Checks that paths can exist together on every system: no two differ only in case, folders
/// included, and none is both a file and a folder.
///
/// # Errors
/// [`ErrorKind::FileDuplicate`] for a path given twice, [`ErrorKind::PathConflict`] for other
/// conflicts.
pub fn check_set<'a>(paths: impl IntoIterator<Item = &'a BundlePath>) -> Result<(), Refusal> {
    // Maps each lower-case name to its exact spelling and whether it is a folder.
    let mut names: BTreeMap<String, (String, bool)> = BTreeMap::new();
    for path in paths {
        let parts = path
            .folders()
            .map(|folder| (folder, true))
            .chain(std::iter::once((path.as_str(), false)));
        for (name, is_folder) in parts {
            let key = name.to_ascii_lowercase();
            match names.get(&key) {
                None => {
                    names.insert(key, (name.to_owned(), is_folder));
                }
                Some((other, true)) if is_folder && other == name => {}
                Some((other, false)) if !is_folder && other == name => {
                    return Err(Refusal::new(ErrorKind::FileDuplicate).found(quoted(name)));
                }
                Some((other, _)) => {
                    return Err(Refusal::new(ErrorKind::PathConflict).found(format!(
                        "{} and {}",
                        quoted(name),
                        quoted(other)
                    )));
                }
            }
        }
    }
    Ok(())
}

impl FromStr for BundlePath {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self, Refusal> {
        Self::parse(text)
    }
}

impl fmt::Display for BundlePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for BundlePath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for BundlePath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(paths: &[&str]) -> Result<(), Refusal> {
        let paths: Vec<_> = paths
            .iter()
            .map(|path| BundlePath::parse(path).unwrap())
            .collect();
        check_set(&paths)
    }

    #[test]
    fn ordinary_paths_are_accepted() {
        let longest = format!("{}/{}", "d".repeat(54), "f".repeat(100));
        for path in [
            "tools.json",
            "tools/text.stats/TOOL.md",
            "a/b/c/d/e/f/g/h",
            "_-x",
            "common/com/lpt.md",
            "clock.md",
            longest.as_str(),
        ] {
            assert_eq!(BundlePath::parse(path).unwrap().as_str(), path);
        }
    }

    #[test]
    fn paths_that_are_unsafe_somewhere_are_refused() {
        let long = "x".repeat(101);
        let longer = format!("{}/{}", "a".repeat(78), "b".repeat(77));
        for path in [
            "",
            "/",
            "/a",
            "a/",
            "a//b",
            ".",
            "..",
            "../a",
            "a/../b",
            "a/./b",
            ".hidden",
            "a.",
            "a/b./c",
            "C:",
            "a\\b",
            "a b",
            "ä",
            "a\0",
            "a\n",
            "a*b",
            "a?b",
            "~a",
            "nul",
            "NUL.txt",
            "a/Aux/b",
            "com1",
            "LPT9.x.y",
            "CON",
            "a/b/c/d/e/f/g/h/i",
            &long,
            &longer,
        ] {
            let refusal = BundlePath::parse(path).expect_err(path);
            assert_eq!(refusal.code(), "path-invalid", "{path:?}");
            assert!(refusal.expected_text().is_some(), "{path:?}");
        }
    }

    #[test]
    fn paths_that_can_not_exist_together_are_refused() {
        assert!(set(&["a/b", "a/c", "b"]).is_ok());
        assert_eq!(set(&["a", "b", "a"]).unwrap_err().code(), "file-duplicate");
        for conflict in [
            ["a/B", "a/b"],
            ["A/b", "a/c"],
            ["a", "a/b"],
            ["a/b", "a"],
            ["x/y/z", "X/y"],
        ] {
            assert_eq!(set(&conflict).unwrap_err().code(), "path-conflict");
        }
    }

    #[test]
    fn folders_are_listed_outermost_first() {
        let path = BundlePath::parse("a/b/c").unwrap();
        assert_eq!(path.folders().collect::<Vec<_>>(), ["a", "a/b"]);
    }
}
