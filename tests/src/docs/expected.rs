//! Compares the output of a command with the output on a page. A line `...` matches any number of
//! lines, and `…` within a line matches any text.

/// Whether `actual` matches `expected`. White space at line ends and empty lines at the end are
/// ignored.
pub(super) fn matches(expected: &[String], actual: &str) -> bool {
    let actual: Vec<&str> = actual.trim_end().lines().map(str::trim_end).collect();
    let expected: Vec<&str> = expected.iter().map(|line| line.trim_end()).collect();
    lines_match(&expected, &actual)
}

fn lines_match(expected: &[&str], actual: &[&str]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((&"...", rest)) => (0..=actual.len()).any(|skipped| {
            actual
                .get(skipped..)
                .is_some_and(|left| lines_match(rest, left))
        }),
        Some((line, rest)) => actual
            .split_first()
            .is_some_and(|(first, left)| line_matches(line, first) && lines_match(rest, left)),
    }
}

fn line_matches(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = parts.next().and_then(|first| line.strip_prefix(first)) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: &str, actual: &str) -> bool {
        let expected: Vec<String> = expected.lines().map(str::to_owned).collect();
        matches(&expected, actual)
    }

    #[test]
    fn plain_text_must_be_equal() {
        assert!(check("a\nb", "a\nb\n"));
        assert!(!check("a\nb", "a\n"));
        assert!(!check("a", "a\nb\n"));
        assert!(!check("", "a\n"));
    }

    #[test]
    fn three_dots_stand_for_any_number_of_lines_and_no_more() {
        assert!(check("...\nend", "a\nb\nend\n"));
        assert!(check("...\nend", "end\n"));
        assert!(!check("...\nend", "a\nend\nb\n"));
        assert!(check("a\n...\nz", "a\nz\n"));
    }

    #[test]
    fn an_ellipsis_stands_for_any_text_within_its_line() {
        assert!(check("a…c", "abc"));
        assert!(check("a…", "a"));
        assert!(check("{…\"ok\":true…}", "{\"id\":1,\"ok\":true,\"x\":2}"));
        assert!(!check("a…c", "abd"));
        assert!(!check("a…b…c", "a c"));
    }
}
