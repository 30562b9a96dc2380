//! `base_url`: the one host of a driver, and the path that its endpoints lie below.

use super::endpoint::{is_dots, is_url_text};
use crate::capability::{Capability, Class};

/// Bytes of the whole, and parts of its path: each entry has a copy.
const MAX_BYTES: usize = 1024;
const MAX_SEGMENTS: usize = 16;

/// A literal https URL without query.
#[derive(Clone, Debug)]
pub(super) struct BaseUrl {
    /// `network:host[:port]`, literal.
    pub(super) host: Capability,
    /// As they stand in the URL.
    pub(super) segments: Vec<String>,
}

impl BaseUrl {
    /// Reads `https://host[:port][/path][/]`.
    ///
    /// # Errors
    /// What would have to be different.
    pub(super) fn parse(text: &str) -> Result<BaseUrl, &'static str> {
        let rest = text.strip_prefix("https://").ok_or("to be an https URL")?;
        if text.len() > MAX_BYTES {
            return Err("to have at most 1024 bytes");
        }
        if text.contains("${") {
            return Err("to be literal, without placeholders");
        }
        if rest.contains(['?', '#']) {
            return Err("to have neither query nor fragment");
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') {
            return Err("to have no user");
        }
        let host = Capability::of(Class::Network, authority)
            .ok()
            .filter(|host| host.host().is_some_and(|host| host.is_literal()))
            .ok_or("to name one host, with or without port")?;
        let path = path.strip_suffix('/').unwrap_or(path);
        let segments: Vec<String> = match path {
            "" => Vec::new(),
            path => path.split('/').map(str::to_owned).collect(),
        };
        if segments.len() > MAX_SEGMENTS {
            return Err("to have at most 16 parts in its path");
        }
        for segment in &segments {
            if segment.is_empty() || is_dots(segment) {
                return Err("to have a path without empty, `.` and `..` parts");
            }
            if !is_url_text(segment) {
                return Err("to have other characters in its path percent-encoded");
            }
        }
        Ok(BaseUrl { host, segments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_a_literal_https_url() {
        for (text, host, path) in [
            ("https://a.example", "network:a.example", ""),
            ("https://a.example/", "network:a.example", ""),
            (
                "https://A.example:8443/v1/x%20y/",
                "network:a.example:8443",
                "v1 x%20y",
            ),
            ("https://[::1]:1/a", "network:[::1]:1", "a"),
        ] {
            let base = BaseUrl::parse(text).unwrap_or_else(|expected| panic!("{text}: {expected}"));
            assert_eq!(
                (base.host.to_string(), base.segments.join(" ")),
                (host.to_owned(), path.to_owned())
            );
        }
        for text in [
            "",
            "a.example",
            "http://a.example",
            "HTTPS://a.example",
            "https://",
            "https:///a",
            "https://*.example",
            "https://*",
            "https://u@a.example",
            "https://u:p@a.example",
            "https://a.example?x=1",
            "https://a.example/?",
            "https://a.example#a",
            "https://a.example/..",
            "https://a.example/a/../b",
            "https://a.example/%2e%2E/a",
            "https://a.example/./a",
            "https://a.example//a",
            "https://a.example/a//",
            "https://${input.host}",
            "https://a.example/${input.a}",
            "https://a.example/a b",
            "https://a.example\\@b.example",
            "https://a.example/a\\b",
            "https://a.example/%zz",
            "https://a.example:0",
            "https://a.example:99999",
            "https://a.example /",
            " https://a.example",
            "https://é.example\r\n",
        ] {
            assert!(BaseUrl::parse(text).is_err(), "{text}");
        }
    }
}
