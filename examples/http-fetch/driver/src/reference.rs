//! Where a reference leads that stands in a page or a redirect (RFC 3986,
//! section 5.2).

struct Parts<'a> {
    scheme: Option<&'a str>,
    authority: Option<&'a str>,
    path: &'a str,
    query: Option<&'a str>,
    fragment: Option<&'a str>,
}

/// The absolute form of `reference`, as found in the document at `base`.
pub(crate) fn resolve(base: &str, reference: &str) -> String {
    let base = split(base);
    let found = split(reference.trim());
    let (scheme, authority, path, query);
    if found.scheme.is_some() {
        scheme = found.scheme;
        authority = found.authority;
        path = without_dots(found.path);
        query = found.query;
    } else {
        scheme = base.scheme;
        if found.authority.is_some() {
            authority = found.authority;
            path = without_dots(found.path);
            query = found.query;
        } else {
            authority = base.authority;
            if found.path.is_empty() {
                path = base.path.to_owned();
                query = found.query.or(base.query);
            } else {
                path = without_dots(&beside(&base, found.path));
                query = found.query;
            }
        }
    }
    let mut url = String::new();
    if let Some(scheme) = scheme {
        url.push_str(scheme);
        url.push(':');
    }
    if let Some(authority) = authority {
        url.push_str("//");
        url.push_str(authority);
    }
    url.push_str(&path);
    if let Some(query) = query {
        url.push('?');
        url.push_str(query);
    }
    if let Some(fragment) = found.fragment {
        url.push('#');
        url.push_str(fragment);
    }
    url
}

fn split(url: &str) -> Parts<'_> {
    let (rest, fragment) = cut(url, '#');
    let (rest, query) = cut(rest, '?');
    let (scheme, rest) = match rest.split_once(':') {
        Some((scheme, after)) if is_scheme(scheme) => (Some(scheme), after),
        _ => (None, rest),
    };
    let (authority, path) = match rest.strip_prefix("//") {
        Some(rest) => match rest.find('/') {
            Some(at) => (rest.get(..at), rest.get(at..).unwrap_or_default()),
            None => (Some(rest), ""),
        },
        None => (None, rest),
    };
    Parts {
        scheme,
        authority,
        path,
        query,
        fragment,
    }
}

fn cut(text: &str, at: char) -> (&str, Option<&str>) {
    match text.split_once(at) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// A relative path put in place of the last segment of the base's.
fn beside(base: &Parts<'_>, path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    match base.path.rsplit_once('/') {
        Some((folder, _)) => format!("{folder}/{path}"),
        None if base.authority.is_some() => format!("/{path}"),
        None => path.to_owned(),
    }
}

fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." if last => kept.push(""),
            "." => {}
            ".." => {
                // The empty segment before the first slash stays.
                if kept.len() > 1 {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            other => kept.push(other),
        }
    }
    kept.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_resolve_as_the_rfc_lists_them() {
        for (reference, expected) in [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q#s"),
            ("g#s", "http://a/b/c/g#s"),
            ("g?y#s", "http://a/b/c/g?y#s"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("./../g", "http://a/b/g"),
            ("g/./h", "http://a/b/c/g/h"),
            ("g/../h", "http://a/b/c/h"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            (" g ", "http://a/b/c/g"),
        ] {
            assert_eq!(
                resolve("http://a/b/c/d;p?q", reference),
                expected,
                "{reference}"
            );
        }
        assert_eq!(resolve("https://a", "b"), "https://a/b");
    }
}
