//! The path and query of a request, read strictly: origin form only (RFC 9112 section 3.2.1), so
//! that a request has its authority in one place.

use http::Uri;

use crate::authority;
use crate::error::{Denied, Rule};

/// Checks a path with an optional query.
///
/// # Errors
/// [`Rule::Target`] if the text does not start with exactly one `/`, has a fragment or a character
/// that is not allowed in a path or query (such as a space, a control character, or anything beyond
/// ASCII), or has an incomplete `%` escape in the path.
pub fn parse(text: &str) -> Result<(), Denied> {
    let (path, query) = text.split_once('?').unwrap_or((text, ""));
    // `//host/path` would be a path here, but an authority for a parser of relative references.
    let is_origin_form = path.starts_with('/') && !path.starts_with("//");
    let is_plain = path.bytes().all(in_path) && query.bytes().all(in_query);
    match is_origin_form && is_plain && whole_escapes(path) {
        true => Ok(()),
        false => Err(Denied::new(Rule::Target, text)),
    }
}

/// Whether a byte may be in a path: RFC 3986 section 3.3, and bytes that browsers leave unescaped.
fn in_path(byte: u8) -> bool {
    let marks = b"/-._~!$&'()*+,;=:@%[]|";
    byte.is_ascii_alphanumeric() || marks.contains(&byte)
}

/// Whether a byte may be in a query: RFC 3986 section 3.4, and bytes that browsers leave unescaped.
fn in_query(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"#\"<>".contains(&byte)
}

fn whole_escapes(path: &str) -> bool {
    path.split('%').skip(1).all(|rest| {
        let mut digits = rest.bytes().take(2);
        let mut hex = || digits.next().is_some_and(|b| b.is_ascii_hexdigit());
        hex() && hex()
    })
}

/// Converts an absolute `http` or `https` URL, possibly with international names, to the form that
/// [`Call::send`](crate::Call::send) takes.
///
/// ```
/// use toolward_egress::{Rule, target};
///
/// # fn main() -> Result<(), toolward_egress::Denied> {
/// assert_eq!(target::uri("HTTPS://Bücher.example?q=1")?, "https://xn--bcher-kva.example/?q=1");
/// assert!(target::parse("/v1/items?q=1").is_ok());
/// let denied = target::parse("//other.example/").map_err(|denied| denied.rule);
/// assert_eq!(denied, Err(Rule::Target));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The rule that the URL breaks.
pub fn uri(text: &str) -> Result<Uri, Denied> {
    let (scheme, rest) = text
        .split_once("://")
        .ok_or_else(|| Denied::new(Rule::NotAbsolute, text))?;
    let scheme = scheme.to_ascii_lowercase();
    if scheme != "https" && scheme != "http" {
        return Err(Denied::new(Rule::Scheme, scheme));
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, target) = rest.split_at(end);
    let host = authority::parse(host)?;
    let slash = if target.starts_with('/') { "" } else { "/" };
    let target = format!("{slash}{target}");
    parse(&target)?;
    Uri::builder()
        .scheme(scheme.as_str())
        .authority(host.to_string())
        .path_and_query(target)
        .build()
        .map_err(|_| Denied::new(Rule::Target, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_form_passes() {
        for text in [
            "/",
            "/a/b.c?d=e&f[g]=h",
            "/a%20b",
            "/?q=100%",
            "/~user/;v=1/@x:y",
            "/a?b=/../c?d",
        ] {
            assert!(parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn other_forms_are_refused() {
        for text in [
            "",
            "*",
            "a",
            "?a",
            "http://evil.example/",
            "//evil.example/",
            "/a#b",
            "/a?b#c",
            "/a b",
            "/a\r\nhost: evil.example",
            "/a\0",
            "/a\tb",
            "/a\\b",
            "/ü",
            "/%",
            "/%2",
            "/%zz",
            "/a?b=\"c\"",
            "/a\x7f",
        ] {
            assert_eq!(
                parse(text).map_err(|d| d.rule),
                Err(Rule::Target),
                "{text:?}"
            );
        }
    }

    #[test]
    fn urls_are_read_into_normal_form() {
        let read = |text| uri(text).map(|uri| uri.to_string()).map_err(|d| d.rule);
        assert_eq!(
            read("HTTPS://Bücher.example.:8443/a?b"),
            Ok("https://xn--bcher-kva.example:8443/a?b".to_owned())
        );
        assert_eq!(read("http://a.example"), Ok("http://a.example/".to_owned()));
        assert_eq!(
            read("http://a.example?b"),
            Ok("http://a.example/?b".to_owned())
        );
        assert_eq!(read("a.example/b"), Err(Rule::NotAbsolute));
        assert_eq!(read("ftp://a.example/"), Err(Rule::Scheme));
        assert_eq!(read("file:///etc/passwd"), Err(Rule::Scheme));
        assert_eq!(read("http:///a"), Err(Rule::Host));
        assert_eq!(read("http://a@b.example/"), Err(Rule::Userinfo));
        assert_eq!(read("http://a.example\\@b.example/"), Err(Rule::Userinfo));
        assert_eq!(read("http://a.example#@b.example/"), Err(Rule::Target));
        assert_eq!(read("http://[::1%25lo]/"), Err(Rule::AddressForm));
    }
}
