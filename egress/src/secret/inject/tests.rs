//! Tests each use of a placeholder, and its result.

use http::{HeaderMap, Method, Uri};
use toolward_policy::{SecretBinding, SecretPosition};

use super::*;
use crate::authority::Origin;
use crate::rules::Rules;

struct Case {
    url: &'static str,
    method: Method,
    headers: Vec<(&'static str, String)>,
}

fn decide(placeholders: &Placeholders, case: &Case) -> Result<Vec<String>, Rule> {
    let rule = |header: &str| SecretBinding {
        host: "api.example".to_owned(),
        port: 443,
        position: SecretPosition::Header(header.to_owned()),
        methods: vec!["GET".to_owned()],
        path_prefix: "/repos/".to_owned(),
    };
    let other = SecretBinding {
        path_prefix: "/".to_owned(),
        ..rule("cookie")
    };
    let key = SecretBinding {
        position: SecretPosition::Query("key".to_owned()),
        ..rule("authorization")
    };
    let secrets = [
        ("token", rule("authorization")),
        ("session", other),
        ("key", key),
    ];
    let secrets = secrets.map(|(slug, binding)| (slug.to_owned(), binding));
    let rules = Rules::new(Vec::new(), secrets).unwrap();
    let uri: Uri = case.url.parse().unwrap();
    let mut headers = HeaderMap::new();
    for (name, value) in &case.headers {
        headers.append(*name, value.parse().unwrap());
    }
    let host = crate::authority::parse(uri.host().unwrap()).unwrap().host;
    let https = uri.scheme_str() == Some("https");
    let origin = Origin {
        https,
        host: host.to_string(),
        port: uri.port_u16().unwrap_or(Origin::default_port(https)),
    };
    let request = RequestView {
        origin: &origin,
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
        key.clone(),
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
    // A secret that is tied to a parameter is refused in a header.
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
