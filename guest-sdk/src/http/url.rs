//! Splits a URL into the three parts of a request, and refuses invalid parts. Only the Toolward
//! host decides what a host name means and whether it may be reached.

use crate::Error;

/// The longest URL that is accepted.
const MAX_URL: usize = 8192;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Url<'a> {
    /// Whether the scheme is `https`; otherwise it is `http`.
    pub(super) secure: bool,
    /// Host and port as written.
    pub(super) authority: &'a str,
    /// Path and query, without the fragment; starts with `/`.
    pub(super) path: String,
}

impl<'a> Url<'a> {
    pub(super) fn parse(url: &'a str) -> Result<Self, Error> {
        let (scheme, rest) = url
            .split_once("://")
            .ok_or_else(|| invalid(url, "has no `https://` at its start"))?;
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(invalid(url, "is neither https nor http")),
        };
        if url.len() > MAX_URL {
            return Err(invalid(url, "is too long"));
        }
        if url.contains(|c: char| c.is_control() || c == ' ' || c == '\\') {
            return Err(invalid(
                url,
                "holds a space, a backslash or a control character",
            ));
        }
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end).unwrap_or((rest, ""));
        if authority.is_empty() {
            return Err(invalid(url, "names no host"));
        }
        if authority.contains('@') {
            return Err(invalid(url, "holds a user name or a password"));
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Url {
            secure,
            authority,
            path: format!("{slash}{path}"),
        })
    }
}

fn invalid(url: &str, problem: &str) -> Error {
    let shown: String = url.chars().take(200).collect();
    Error::new("input_invalid", format!("the URL {shown} {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_falls_into_scheme_authority_and_path() {
        for (url, secure, authority, path) in [
            ("https://a.example", true, "a.example", "/"),
            ("HTTPS://A.example/", true, "A.example", "/"),
            (
                "http://a.example:8080/b/c?d=e#f",
                false,
                "a.example:8080",
                "/b/c?d=e",
            ),
            ("https://a.example?q=1", true, "a.example", "/?q=1"),
            ("https://[::1]:1/x#y?z", true, "[::1]:1", "/x"),
        ] {
            let parts = Url::parse(url).unwrap();
            assert_eq!(
                (parts.secure, parts.authority, parts.path.as_str()),
                (secure, authority, path),
                "{url}"
            );
        }
    }

    #[test]
    fn what_is_no_url_of_the_web_is_refused() {
        for url in [
            "",
            "a.example/b",
            "ftp://a.example/",
            "file:///etc/passwd",
            "https://",
            "https:///path",
            "https://user:word@a.example/",
            "https://a.example/b c",
            "https://a.example/\r\nHost: b",
            "https://a.example\\@b.example/",
        ] {
            assert_eq!(
                Url::parse(url).unwrap_err().code(),
                "input_invalid",
                "{url}"
            );
        }
        let long = format!("https://a.example/{}", "x".repeat(MAX_URL));
        let error = Url::parse(&long).unwrap_err();
        assert!(error.message().len() < 400, "{}", error.message());
    }
}
