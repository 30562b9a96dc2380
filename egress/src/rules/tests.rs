//! Tests which requests rules admit, and which rules are refused.

use toolward_contract::capability::HostPattern;

use super::*;

fn host(pattern: &str) -> HostGrant {
    HostGrant {
        host: HostPattern::parse(pattern).unwrap(),
        unsafe_methods: false,
        terms: HostTerms::default(),
    }
}

fn admit(hosts: Vec<HostGrant>, url: &str, method: Method, own: &[HeaderName]) -> Option<Rule> {
    let rules = Rules::new(hosts, Vec::new()).unwrap();
    let uri: Uri = url.parse().unwrap();
    let https = uri.scheme_str() == Some("https");
    let origin = Origin {
        https,
        host: uri.host().unwrap().to_owned(),
        port: uri.port_u16().unwrap_or(Origin::default_port(https)),
    };
    let request = RequestView {
        origin: &origin,
        method: &method,
        uri: &uri,
        headers: &HeaderMap::new(),
    };
    let admitted = rules.admit(&request, own);
    admitted.err().map(|denied| denied.rule)
}

#[test]
fn no_rules_allow_nothing() {
    let none = Some(Rule::HostNotGranted);
    assert_eq!(
        admit(Vec::new(), "https://a.example/", Method::GET, &[]),
        none
    );
}

#[test]
fn a_rule_is_for_its_host_and_port() {
    let get = |url| {
        admit(
            vec![host("a.example"), host("b.example:8443")],
            url,
            Method::GET,
            &[],
        )
    };
    assert_eq!(get("https://a.example/"), None);
    assert_eq!(get("https://a.example:443/"), None);
    assert_eq!(get("https://b.example:8443/"), None);
    for url in [
        "https://a.example:8443/",
        "https://a.example:80/",
        "https://b.example/",
        "https://c.a.example/",
        "https://a.example.evil.example/",
    ] {
        assert_eq!(get(url), Some(Rule::HostNotGranted), "{url}");
    }
}

#[test]
fn plain_http_and_unsafe_methods_are_granted_apart() {
    let mut plain = host("a.example");
    plain.terms.plain_http = true;
    let writing = HostGrant {
        unsafe_methods: true,
        ..host("a.example")
    };
    let url = "http://a.example/";
    assert_eq!(
        admit(vec![host("a.example")], url, Method::GET, &[]),
        Some(Rule::PlainHttp)
    );
    assert_eq!(admit(vec![plain.clone()], url, Method::GET, &[]), None);
    assert_eq!(
        admit(
            vec![plain.clone()],
            "http://a.example:443/",
            Method::GET,
            &[]
        ),
        Some(Rule::HostNotGranted)
    );
    // Rules are not combined.
    let both = vec![plain, writing];
    assert_eq!(
        admit(both.clone(), url, Method::POST, &[]),
        Some(Rule::UnsafeMethod)
    );
    assert_eq!(admit(both, "https://a.example/", Method::POST, &[]), None);
    let reading = vec![host("a.example")];
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let denied = admit(reading.clone(), "https://a.example/", method, &[]);
        assert_eq!(denied, Some(Rule::UnsafeMethod));
    }
}

#[test]
fn own_credentials_are_granted_by_name() {
    let mut rule = host("a.example");
    rule.terms.guest_headers.push("cookie".to_owned());
    let get = |own| admit(vec![rule.clone()], "https://a.example/", Method::GET, own);
    assert_eq!(get(&[http::header::COOKIE]), None);
    assert_eq!(
        get(&[http::header::AUTHORIZATION]),
        Some(Rule::CredentialHeader)
    );
    let mut odd = host("a.example");
    odd.terms.guest_headers.push("host".to_owned());
    assert_eq!(
        Rules::new(vec![odd], Vec::new()).unwrap_err().code(),
        "rule-header"
    );
}

fn secret() -> SecretBinding {
    SecretBinding {
        host: "api.example".to_owned(),
        port: 443,
        position: SecretPosition::Header("authorization".to_owned()),
        methods: vec!["GET".to_owned()],
        path_prefix: "/repos/".to_owned(),
    }
}

#[test]
fn secrets_are_tied_to_one_clear_place() {
    let rules = |binding| Rules::new(Vec::new(), [("token".to_owned(), binding)]);
    assert!(rules(secret()).is_ok());
    let parameter = SecretBinding {
        position: SecretPosition::Query("api_key".to_owned()),
        ..secret()
    };
    assert!(rules(parameter).is_ok());
    for wrong in [
        SecretBinding {
            host: "*".to_owned(),
            ..secret()
        },
        SecretBinding {
            host: "*.example".to_owned(),
            ..secret()
        },
        SecretBinding {
            host: "a.example:443".to_owned(),
            ..secret()
        },
        SecretBinding {
            host: String::new(),
            ..secret()
        },
        SecretBinding {
            port: 0,
            ..secret()
        },
        SecretBinding {
            position: SecretPosition::Header("host".to_owned()),
            ..secret()
        },
        SecretBinding {
            position: SecretPosition::Header("proxy-authorization".to_owned()),
            ..secret()
        },
        SecretBinding {
            position: SecretPosition::Header("content-length".to_owned()),
            ..secret()
        },
        SecretBinding {
            position: SecretPosition::Header("a b".to_owned()),
            ..secret()
        },
        SecretBinding {
            position: SecretPosition::Query(String::new()),
            ..secret()
        },
        SecretBinding {
            position: SecretPosition::Query("a b".to_owned()),
            ..secret()
        },
        SecretBinding {
            position: SecretPosition::Query("k%65y".to_owned()),
            ..secret()
        },
        SecretBinding {
            methods: vec!["TRACE".to_owned()],
            ..secret()
        },
        SecretBinding {
            methods: vec!["get".to_owned()],
            ..secret()
        },
        SecretBinding {
            path_prefix: String::new(),
            ..secret()
        },
        SecretBinding {
            path_prefix: "/a/../b".to_owned(),
            ..secret()
        },
        SecretBinding {
            path_prefix: "/a?b".to_owned(),
            ..secret()
        },
        SecretBinding {
            path_prefix: "/a%2f".to_owned(),
            ..secret()
        },
    ] {
        let refused = rules(wrong.clone());
        assert_eq!(
            refused.map_err(|e| e.code()).err(),
            Some("rule-secret"),
            "{wrong:?}"
        );
    }
}
