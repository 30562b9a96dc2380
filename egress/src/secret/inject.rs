//! Finds where values are injected, and refuses every other use of a placeholder.
//! No value is loaded before the whole request was checked.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Uri};

use super::placeholder::{LENGTH, Placeholders};
use crate::authority::Host;
use crate::error::{Denied, Rule};
use crate::rules::SecretPlace;
use crate::target;

/// A request, as far as secrets go.
pub(crate) struct RequestView<'a> {
    pub(crate) https: bool,
    pub(crate) host: &'a Host,
    pub(crate) port: u16,
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
}

/// A value to inject.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Injection {
    pub(crate) slug: String,
    pub(crate) header: HeaderName,
    /// What stands before the placeholder, e.g. `Bearer `.
    pub(crate) prefix: Vec<u8>,
}

/// Finds the placeholders of a request.
///
/// # Errors
/// The rule against the first one that does not belong where it is.
pub(crate) fn find(
    request: &RequestView<'_>,
    placeholders: &Placeholders,
    places: &[SecretPlace],
) -> Result<Vec<Injection>, Denied> {
    if !placeholders.any() {
        return Ok(Vec::new());
    }
    let authority = request.uri.authority().map_or("", |a| a.as_str());
    let target = request.uri.path_and_query().map_or("", |t| t.as_str());
    for text in [authority, target] {
        if let Some((_, slug)) = placeholders.find(text.as_bytes()) {
            return Err(Denied::new(Rule::SecretInUri, slug));
        }
    }
    let mut found = Vec::new();
    for (name, value) in request.headers {
        if let Some((_, slug)) = placeholders.find(name.as_str().as_bytes()) {
            return Err(Denied::new(Rule::SecretInHeader, slug));
        }
        if let Some((start, slug)) = placeholders.find(value.as_bytes()) {
            found.push(place(request, places, (name, value), start, slug)?);
        }
    }
    Ok(found)
}

fn place(
    request: &RequestView<'_>,
    places: &[SecretPlace],
    (name, value): (&HeaderName, &HeaderValue),
    start: usize,
    slug: String,
) -> Result<Injection, Denied> {
    let (before, rest) = value.as_bytes().split_at_checked(start).unwrap_or_default();
    let alone = request.headers.get_all(name).iter().count() == 1;
    if !alone || rest.len() != LENGTH || !is_prefix(name, before) {
        return Err(Denied::new(Rule::SecretInHeader, slug));
    }
    // Of several places of one secret, one must allow all of the request.
    let path = request.uri.path();
    let mut left: Vec<&SecretPlace> = places.iter().filter(|p| p.slug == slug).collect();
    left.retain(|place| place.header == name);
    if left.is_empty() {
        return Err(Denied::new(Rule::SecretInHeader, slug));
    }
    left.retain(|place| place.is_at(request.https, request.host, request.port));
    if left.is_empty() {
        return Err(Denied::new(Rule::SecretOrigin, slug));
    }
    left.retain(|place| place.methods.contains(request.method));
    if left.is_empty() {
        return Err(Denied::new(Rule::SecretMethod, slug));
    }
    left.retain(|place| target::is_below(path, &place.path_prefix));
    if left.is_empty() {
        return Err(Denied::new(Rule::SecretPath, slug));
    }
    Ok(Injection {
        slug,
        header: name.clone(),
        prefix: before.to_vec(),
    })
}

/// Nothing, a scheme and a space (RFC 9110 section 11.4), or, in a cookie, a
/// name and `=`.
fn is_prefix(header: &HeaderName, text: &[u8]) -> bool {
    let Some((last, word)) = text.split_last() else {
        return true;
    };
    let end = if *header == header::COOKIE {
        b'='
    } else {
        b' '
    };
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    *last == end && (1..=64).contains(&word.len()) && word.iter().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Rules, SecretRule};

    struct Case {
        url: &'static str,
        method: Method,
        headers: Vec<(&'static str, String)>,
    }

    fn decide(placeholders: &Placeholders, case: &Case) -> Result<Vec<String>, Rule> {
        let rule = |header: &str| SecretRule {
            slug: "token".to_owned(),
            host: "api.example".to_owned(),
            port: 443,
            header: header.to_owned(),
            methods: vec!["GET".to_owned()],
            path_prefix: "/repos/".to_owned(),
        };
        let other = SecretRule {
            slug: "session".to_owned(),
            path_prefix: "/".to_owned(),
            ..rule("cookie")
        };
        let rules = Rules::new(Vec::new(), vec![rule("authorization"), other]).unwrap();
        let uri: Uri = case.url.parse().unwrap();
        let mut headers = HeaderMap::new();
        for (name, value) in &case.headers {
            headers.append(*name, value.parse().unwrap());
        }
        let host = crate::authority::parse(uri.host().unwrap()).unwrap().host;
        let https = uri.scheme_str() == Some("https");
        let request = RequestView {
            https,
            host: &host,
            port: uri.port_u16().unwrap_or(if https { 443 } else { 80 }),
            method: &case.method,
            uri: &uri,
            headers: &headers,
        };
        let found = find(&request, placeholders, rules.secrets()).map_err(|denied| denied.rule)?;
        Ok(found.into_iter().map(|placing| placing.slug).collect())
    }

    fn case(url: &'static str, headers: Vec<(&'static str, String)>) -> Case {
        Case {
            url,
            method: Method::GET,
            headers,
        }
    }

    const GOOD: &str = "https://api.example/repos/a";

    #[test]
    fn a_value_goes_where_it_is_tied_to() {
        let placeholders = Placeholders::default();
        let token = placeholders.issue("token").unwrap();
        let session = placeholders.issue("session").unwrap();
        let decide = |case| decide(&placeholders, &case);
        assert_eq!(decide(case(GOOD, vec![])), Ok(vec![]));
        for value in [
            token.clone(),
            format!("Bearer {token}"),
            format!("token {token}"),
        ] {
            let good = case(GOOD, vec![("authorization", value)]);
            assert_eq!(decide(good), Ok(vec!["token".to_owned()]));
        }
        let cookie = case(
            "https://api.example/",
            vec![("cookie", format!("sid={session}"))],
        );
        assert_eq!(decide(cookie), Ok(vec!["session".to_owned()]));
    }

    #[test]
    fn every_other_use_is_refused() {
        let placeholders = Placeholders::default();
        let token = placeholders.issue("token").unwrap();
        let session = placeholders.issue("session").unwrap();
        let bearer = || vec![("authorization", format!("Bearer {token}"))];
        let with = |header, value: String| case(GOOD, vec![(header, value)]);
        let leak = |text: String| -> &'static str { text.leak() };
        for (case, rule) in [
            (
                case("http://api.example/repos/a", bearer()),
                Rule::SecretOrigin,
            ),
            (
                case("https://api.example:8443/repos/a", bearer()),
                Rule::SecretOrigin,
            ),
            (
                case("https://evil.example/repos/a", bearer()),
                Rule::SecretOrigin,
            ),
            (
                case("https://a.api.example/repos/a", bearer()),
                Rule::SecretOrigin,
            ),
            (
                Case {
                    method: Method::POST,
                    ..case(GOOD, bearer())
                },
                Rule::SecretMethod,
            ),
            (case("https://api.example/user", bearer()), Rule::SecretPath),
            (
                case("https://api.example/repos/../user", bearer()),
                Rule::SecretPath,
            ),
            (with("x-token", token.clone()), Rule::SecretInHeader),
            (with("cookie", format!("a={token}")), Rule::SecretInHeader),
            (with("authorization", session.clone()), Rule::SecretInHeader),
            (
                with("authorization", format!("Bearer  {token}")),
                Rule::SecretInHeader,
            ),
            (
                with("authorization", format!("Bearer {token} x")),
                Rule::SecretInHeader,
            ),
            (
                with("authorization", format!("Bearer {token}{token}")),
                Rule::SecretInHeader,
            ),
            (
                with("authorization", format!("Bearer a={token}")),
                Rule::SecretInHeader,
            ),
            (
                with("cookie", format!("a=b; sid={session}")),
                Rule::SecretInHeader,
            ),
            (
                case(leak(format!("{GOOD}?t={token}")), vec![]),
                Rule::SecretInUri,
            ),
            (
                case(leak(format!("{GOOD}/{token}")), vec![]),
                Rule::SecretInUri,
            ),
            (
                case(
                    GOOD,
                    vec![
                        ("authorization", token.clone()),
                        ("authorization", "a".to_owned()),
                    ],
                ),
                Rule::SecretInHeader,
            ),
            (
                case(GOOD, vec![(leak(token.clone()), "a".to_owned())]),
                Rule::SecretInHeader,
            ),
        ] {
            let (url, headers) = (case.url, case.headers.clone());
            assert_eq!(decide(&placeholders, &case), Err(rule), "{url} {headers:?}");
        }
    }

    #[test]
    fn a_guessed_or_stale_placeholder_is_text() {
        let stale = Placeholders::default().issue("token").unwrap();
        let placeholders = Placeholders::default();
        placeholders.issue("token").unwrap();
        let with = case(GOOD, vec![("x-token", stale)]);
        assert_eq!(decide(&placeholders, &with), Ok(vec![]));
    }
}
