//! Finds where values are injected, and refuses every other use of a placeholder.
//! No value is loaded before the whole request was checked.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Uri};

use super::placeholder::{LENGTH, Placeholders};
use crate::authority::Host;
use crate::error::{Denied, Rule};
use crate::rules::{Position, SecretPlace};
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
    pub(crate) spot: Spot,
}

/// Where a value is injected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    Header {
        name: HeaderName,
        /// What stands before the placeholder, e.g. `Bearer `.
        prefix: Vec<u8>,
    },
    /// The value of this parameter.
    Query(String),
}

impl Injection {
    /// The header that it makes.
    pub(crate) fn header(&self) -> Option<&HeaderName> {
        match &self.spot {
            Spot::Header { name, .. } => Some(name),
            Spot::Query(_) => None,
        }
    }
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
    for text in [authority, request.uri.path()] {
        if let Some((_, slug)) = placeholders.find(text.as_bytes()) {
            return Err(Denied::new(Rule::SecretInUri, slug));
        }
    }
    let mut found = in_query(request, placeholders, places)?;
    for (name, value) in request.headers {
        if let Some((_, slug)) = placeholders.find(name.as_str().as_bytes()) {
            return Err(Denied::new(Rule::SecretInHeader, slug));
        }
        if let Some((start, slug)) = placeholders.find(value.as_bytes()) {
            found.push(in_header(request, places, (name, value), start, slug)?);
        }
    }
    Ok(found)
}

/// A placeholder is the whole value of one parameter, of which there is no second one.
fn in_query(
    request: &RequestView<'_>,
    placeholders: &Placeholders,
    places: &[SecretPlace],
) -> Result<Vec<Injection>, Denied> {
    let query = request.uri.query().unwrap_or_default();
    let pairs = || {
        query
            .split('&')
            .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
    };
    let mut found: Vec<Injection> = Vec::new();
    for pair in query.split('&') {
        let Some((_, slug)) = placeholders.find(pair.as_bytes()) else {
            continue;
        };
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let whole =
            value.len() == LENGTH && matches!(placeholders.find(value.as_bytes()), Some((0, _)));
        let alone = pairs().filter(|(other, _)| *other == name).count() == 1;
        let known = found.iter().any(|injection| injection.slug == slug);
        if !whole || !alone || known {
            return Err(Denied::new(Rule::SecretInUri, slug));
        }
        let here = |position: &Position| matches!(position, Position::Query(own) if own == name);
        allowed(request, places, here, Rule::SecretInUri, &slug)?;
        let spot = Spot::Query(name.to_owned());
        found.push(Injection { slug, spot });
    }
    Ok(found)
}

fn in_header(
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
    let here = |position: &Position| matches!(position, Position::Header(own) if own == name);
    allowed(request, places, here, Rule::SecretInHeader, &slug)?;
    Ok(Injection {
        slug,
        spot: Spot::Header {
            name: name.clone(),
            prefix: before.to_vec(),
        },
    })
}

/// Of several places of one secret, one must allow all of the request.
fn allowed(
    request: &RequestView<'_>,
    places: &[SecretPlace],
    here: impl Fn(&Position) -> bool,
    misplaced: Rule,
    slug: &str,
) -> Result<(), Denied> {
    let path = request.uri.path();
    let mut left: Vec<&SecretPlace> = places.iter().filter(|p| p.slug == slug).collect();
    type Holds<'a> = &'a dyn Fn(&SecretPlace) -> bool;
    let here = |place: &SecretPlace| here(&place.position);
    let origin = |place: &SecretPlace| place.is_at(request.https, request.host, request.port);
    let method = |place: &SecretPlace| place.methods.contains(request.method);
    let below = |place: &SecretPlace| target::is_below(path, &place.path_prefix);
    let rules: [(Rule, Holds<'_>); 4] = [
        (misplaced, &here),
        (Rule::SecretOrigin, &origin),
        (Rule::SecretMethod, &method),
        (Rule::SecretPath, &below),
    ];
    for (rule, holds) in rules {
        left.retain(|place| holds(place));
        if left.is_empty() {
            return Err(Denied::new(rule, slug));
        }
    }
    Ok(())
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
    use crate::rules::{Rules, SecretPosition, SecretRule};

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
            position: SecretPosition::Header(header.to_owned()),
            methods: vec!["GET".to_owned()],
            path_prefix: "/repos/".to_owned(),
        };
        let other = SecretRule {
            slug: "session".to_owned(),
            path_prefix: "/".to_owned(),
            ..rule("cookie")
        };
        let key = SecretRule {
            slug: "key".to_owned(),
            position: SecretPosition::Query("key".to_owned()),
            ..rule("authorization")
        };
        let rules = Rules::new(Vec::new(), vec![rule("authorization"), other, key]).unwrap();
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
    fn a_value_goes_into_the_parameter_that_it_is_tied_to_and_nowhere_else() {
        let placeholders = Placeholders::default();
        let key = placeholders.issue("key").unwrap();
        let token = placeholders.issue("token").unwrap();
        let at = |url: String| {
            let case = case(url.leak(), vec![]);
            decide(&placeholders, &case)
        };
        for query in [format!("key={key}"), format!("a=1&key={key}&b=%20")] {
            assert_eq!(
                at(format!("{GOOD}?{query}")),
                Ok(vec!["key".to_owned()]),
                "{query}"
            );
        }
        for query in [
            format!("Key={key}"),
            format!("k%65y={key}"),
            format!("other={key}"),
            format!("key={key}x"),
            format!("key=x{key}"),
            format!("key={key}{key}"),
            format!("key=a={key}"),
            format!("key={key}&key=1"),
            format!("key=1&key={key}"),
            format!("key={key}&key={key}"),
            format!("key={key}&other={key}"),
            format!("{key}"),
            format!("{key}=key"),
            format!("key={token}"),
        ] {
            assert_eq!(
                at(format!("{GOOD}?{query}")),
                Err(Rule::SecretInUri),
                "{query}"
            );
        }
        for (url, rule) in [
            (
                format!("http://api.example/repos/a?key={key}"),
                Rule::SecretOrigin,
            ),
            (
                format!("https://api.example:8443/repos/a?key={key}"),
                Rule::SecretOrigin,
            ),
            (
                format!("https://evil.example/repos/a?key={key}"),
                Rule::SecretOrigin,
            ),
            (
                format!("https://api.example/user?key={key}"),
                Rule::SecretPath,
            ),
            (
                format!("https://api.example/repos/../user?key={key}"),
                Rule::SecretPath,
            ),
            (
                format!("https://api.example/repos/{key}"),
                Rule::SecretInUri,
            ),
        ] {
            assert_eq!(at(url.clone()), Err(rule), "{url}");
        }
        let post = Case {
            method: Method::POST,
            ..case(format!("{GOOD}?key={key}").leak(), vec![])
        };
        assert_eq!(decide(&placeholders, &post), Err(Rule::SecretMethod));
        // One that is tied to a parameter stands in no header.
        let header = case(GOOD, vec![("authorization", key.clone())]);
        assert_eq!(decide(&placeholders, &header), Err(Rule::SecretInHeader));
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
