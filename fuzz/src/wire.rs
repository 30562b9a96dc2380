//! Authorities, request targets and headers, as a guest hands them over.

use http::{HeaderMap, HeaderName, HeaderValue};
use toolward_contract::capability::HostPattern;
use toolward_egress::{authority, headers, target};
use url::Url;

/// Authority, target, and headers (`name: value`), a line each.
pub fn authority_and_headers(data: &[u8]) -> bool {
    let mut lines = data.split(|byte| *byte == b'\n');
    let mut text = || std::str::from_utf8(lines.next().unwrap_or_default()).ok();
    let (host, path) = (text(), text());
    let host = host.is_some_and(check_authority);
    let path = path.is_some_and(check_target);
    let mut map = HeaderMap::new();
    for line in lines.take(64) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name), HeaderValue::from_bytes(value))
        {
            map.append(name, value);
        }
    }
    const LIMIT: u64 = 64 << 10;
    let sent = headers::check(&map, LIMIT);
    if let Ok(size) = &sent {
        assert!(*size <= LIMIT);
        assert!(!map.keys().any(headers::is_forbidden));
        assert!(!map.contains_key("host") && !map.contains_key("transfer-encoding"));
        assert!(map.get_all("content-length").iter().count() <= 1);
        for value in map.values() {
            assert!(
                !value
                    .as_bytes()
                    .iter()
                    .any(|byte| matches!(byte, b'\r' | b'\n' | 0))
            );
        }
    }
    host && path && sent.is_ok()
}

/// An authority has one spelling, which names the same host to every reader.
fn check_authority(text: &str) -> bool {
    let Ok(read) = authority::parse(text) else {
        return false;
    };
    let written = read.to_string();
    assert_eq!(
        authority::parse(&written).as_ref(),
        Ok(&read),
        "{text:?}: {written}"
    );
    assert!(
        written
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !b"@/?#\\".contains(&byte)),
        "{written}"
    );
    // A pattern of that spelling matches it, or there is none.
    if let Ok(pattern) = HostPattern::parse(&written) {
        assert!(pattern.is_literal(), "{written}");
        assert_eq!(pattern.written_port(), read.port, "{written}");
        assert!(
            pattern.matches(&read.host.to_string(), read.port.unwrap_or(443), true),
            "{written}"
        );
    }
    let url = Url::parse(&format!("https://{written}/"));
    if let Ok(url) = url {
        assert_eq!(
            (url.username(), url.password(), url.path()),
            ("", None, "/"),
            "{written}"
        );
        assert_eq!(
            url.host_str(),
            Some(read.host.to_string().as_str()),
            "{text:?}"
        );
        assert_eq!(
            url.port_or_known_default(),
            Some(read.port.unwrap_or(443)),
            "{written}"
        );
    }
    true
}

/// A target stays behind its authority.
fn check_target(text: &str) -> bool {
    let parsed = target::parse(text).is_ok();
    if parsed {
        assert!(
            text.starts_with('/') && text.bytes().all(|byte| byte.is_ascii_graphic()),
            "{text:?}"
        );
        if let Ok(uri) = format!("https://a.example{text}").parse::<http::Uri>() {
            assert_eq!(
                uri.authority().map(http::uri::Authority::as_str),
                Some("a.example")
            );
        }
        let url = Url::parse(&format!("https://a.example:8443{text}")).expect("a URL");
        assert_eq!(
            (url.host_str(), url.port(), url.fragment()),
            (Some("a.example"), Some(8443), None)
        );
    }
    if let Ok(uri) = target::uri(text) {
        let authority = uri.authority().expect("an absolute URI").as_str();
        authority::parse(authority).unwrap_or_else(|denied| panic!("{authority}: {denied}"));
        let path = uri
            .path_and_query()
            .map_or("/", http::uri::PathAndQuery::as_str);
        target::parse(path).unwrap_or_else(|denied| panic!("{path}: {denied}"));
    }
    parsed
}
