//! Paths of URLs: the paths to which a secret may be sent, and percent-encoding (RFC 3986, section
//! 2.1) as servers read it. The rule for secrets applies to the paths of sent requests and to the
//! paths that declarative drivers write.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode};

/// Whether `path` is at or below `prefix`, by whole segments. With a prefix other than `/`, this is
/// false for a path that a server could read as another path: a path with dot segments, an empty
/// segment before its end, or escaped dots, slashes, backslashes, percent signs, semicolons or
/// control characters.
///
/// ```
/// use toolward_contract::url_path::is_below;
///
/// assert!(is_below("/repos/a", "/repos/") && is_below("/repos", "/repos"));
/// assert!(!is_below("/reposit", "/repos") && !is_below("/repos/a%2fb", "/repos"));
/// ```
pub fn is_below(path: &str, prefix: &str) -> bool {
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    if prefix.is_empty() {
        return true;
    }
    let segments = path.strip_prefix('/').unwrap_or(path);
    let mut all = segments.split('/').peekable();
    while let Some(segment) = all.next() {
        // An empty segment is allowed at the end of the path: `/repos/`.
        let empty = segment.is_empty() && all.peek().is_some();
        if empty || is_dots(segment) || hides(segment) {
            return false;
        }
    }
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether a segment means the same folder (`.`) or its parent (`..`).
pub fn is_dots(segment: &str) -> bool {
    // Some servers cut off `;parameters` before they look for dots.
    let name = segment.split(';').next().unwrap_or_default();
    name == "." || name == ".."
}

/// Whether a path segment has escapes that a server could read as another path: escaped dots,
/// slashes, backslashes, percent signs, semicolons or control characters.
pub fn hides(segment: &str) -> bool {
    segment.split('%').skip(1).any(|rest| {
        let digits = rest.get(..2).unwrap_or_default();
        let byte = u8::from_str_radix(digits, 16).unwrap_or(0);
        byte.is_ascii_control() || b"./\\%;".contains(&byte)
    })
}

/// All characters except the unreserved ones (RFC 3986, section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Encodes everything but unreserved characters.
///
/// ```
/// use toolward_contract::url_path::percent_encoded;
///
/// assert_eq!(percent_encoded(b"a b/~").to_string(), "a%20b%2F~");
/// ```
pub fn percent_encoded(text: &[u8]) -> PercentEncode<'_> {
    percent_encoding::percent_encode(text, RESERVED)
}

/// Decodes once; invalid escapes stay unchanged.
///
/// ```
/// use toolward_contract::url_path::percent_decoded;
///
/// assert_eq!(percent_decoded(b"k%65y%zz"), b"key%zz");
/// ```
pub fn percent_decoded(text: &[u8]) -> Vec<u8> {
    percent_encoding::percent_decode(text).collect()
}

/// Whether each `%` starts an escape.
pub(crate) fn has_valid_escapes(text: &str) -> bool {
    let hex = |rest: &str| {
        rest.get(..2)
            .is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    text.split('%').skip(1).all(hex)
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
