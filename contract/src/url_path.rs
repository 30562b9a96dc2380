//! Which path a secret may be sent to. The rule for paths of requests, as they are sent, and for those of declarative
//! drivers, as they are written.

/// Whether `path` lies at or below `prefix`, by whole segments. With a prefix
/// other than `/`, a path that a server could read as another one does not:
/// dot segments, empty segments, and escaped dots, slashes, backslashes,
/// percent signs or control characters.
///
/// ```
/// use toolward_contract::url_path::is_below;
///
/// assert!(is_below("/repos/a", "/repos/") && is_below("/repos", "/repos"));
/// assert!(!is_below("/reposit", "/repos") && !is_below("/repos/a%2fb", "/repos"));
/// ```
#[must_use]
pub fn is_below(path: &str, prefix: &str) -> bool {
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    if prefix.is_empty() {
        return true;
    }
    let segments = path.strip_prefix('/').unwrap_or(path);
    let mut all = segments.split('/').peekable();
    while let Some(segment) = all.next() {
        // One empty segment may end the path: `/repos/`.
        let empty = segment.is_empty() && all.peek().is_some();
        if empty || is_dots(segment) || hides(segment) {
            return false;
        }
    }
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a segment leads to the same place or to the one above.
#[must_use]
pub fn is_dots(segment: &str) -> bool {
    // Some servers cut `;parameters` off before they look for dots.
    let name = segment.split(';').next().unwrap_or_default();
    name == "." || name == ".."
}

/// Whether a segment of a path has escapes that a server could read as another path: of dots, slashes, backslashes,
/// percent signs, semicolons or control characters.
#[must_use]
pub fn hides(segment: &str) -> bool {
    segment.split('%').skip(1).any(|rest| {
        let digits = rest.get(..2).unwrap_or_default();
        let byte = u8::from_str_radix(digits, 16).unwrap_or(0);
        byte.is_ascii_control() || b"./\\%;".contains(&byte)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_of_whole_segments() {
        for path in [
            "/repos",
            "/repos/",
            "/repos/a",
            "/repos/a/b.c",
            "/repos/..a",
            "/repos/a%20b",
        ] {
            assert!(is_below(path, "/repos/"), "{path}");
            assert!(is_below(path, "/repos"), "{path}");
        }
        for path in [
            "/",
            "/repositories",
            "/repos2/a",
            "/Repos/a",
            "/repos/../user",
            "/repos/./a",
            "/repos//a",
            "//repos/a",
            "/repos/%2e%2e/user",
            "/repos/.%2E/user",
            "/repos/%2E/a",
            "/repos%2fa",
            "/repos/a%2f..%2fb",
            "/repos/a%5c..%5cb",
            "/repos/%252e%252e/user",
            "/repos/..;/user",
            "/repos/..;a=b/user",
            "/repos/.;/a",
            "/repos/a%00",
            "/repos/..%3b/user",
            "/repos/..",
        ] {
            assert!(!is_below(path, "/repos/"), "{path}");
        }
        assert!(is_below("/projects/group%2Fproject", "/"));
        assert!(is_below("/a/../b", "/"));
    }
}
