//! Capabilities, their spellings and what covers what; and the policy that is written with them.

use toolward_contract::capability::Capability;
use toolward_contract::index::{family, parse_family};
use toolward_policy::Policy;

/// Capabilities, one a line, at most eight.
pub fn capability_patterns(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else {
        return false;
    };
    let both = |line: &str| [Capability::parse(line).ok(), parse_family(line).ok()];
    let all: Vec<Capability> = text.lines().take(8).flat_map(both).flatten().collect();
    for one in &all {
        let written = one.to_string();
        assert_eq!(
            written.parse::<Capability>().as_ref(),
            Ok(one),
            "a normal form is read back"
        );
        assert_eq!(parse_family(&family(one)).as_ref(), Ok(one));
        assert!(one.covers(one), "{one}");
        assert_eq!(one.intersect(one).as_ref(), Some(one), "{one}");
        if let Some(path) = one.path() {
            assert!(!path.matches("/a/../b") && !path.matches("a"), "{one}");
        }
        for other in &all {
            pair(one, other);
        }
    }
    !all.is_empty()
}

fn pair(one: &Capability, other: &Capability) {
    if one.covers(other) && other.covers(one) {
        assert_eq!(one, other);
    }
    let common = one.intersect(other);
    assert_eq!(common, other.intersect(one), "{one} and {other}");
    if let Some(common) = &common {
        assert!(
            one.covers(common) && other.covers(common),
            "{one} and {other}: {common}"
        );
        assert_eq!(
            common.to_string().parse().as_ref(),
            Ok(common),
            "a normal form is read back"
        );
    } else {
        assert!(
            !one.covers(other),
            "{one} covers {other} and shares nothing with it"
        );
    }
    // Where a pattern covers another, it takes in whatever that takes in.
    if let (Some(wide), Some(narrow)) = (one.host(), other.host()) {
        let hosts = [
            "a.example",
            "b.a.example",
            "127.0.0.1",
            "[::1]",
            &narrow.host(),
        ];
        for (host, port) in hosts
            .into_iter()
            .flat_map(|host| [(host, 443), (host, 8443)])
        {
            if one.covers(other) && narrow.matches(host, port, port == 443) {
                assert!(
                    wide.matches(host, port, port == 443),
                    "{one} covers {other}: {host}:{port}"
                );
            }
        }
    }
    if let (Some(wide), Some(narrow)) = (one.path(), other.path()) {
        for path in ["/", "/a", "/a/b.csv", &narrow.directory()] {
            if one.covers(other) && narrow.matches(path) {
                assert!(wide.matches(path), "{one} covers {other}: {path}");
            }
        }
    }
}

/// A policy is read or refused; nothing grants to everybody, and a layer below it changes nothing.
pub fn policy(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else {
        return false;
    };
    let Ok(policy) = Policy::from_toml(text) else {
        return false;
    };
    match Policy::empty().layer(policy.clone()) {
        Ok(layered) => assert_eq!(layered, policy),
        Err(error) => panic!("nothing is in the way of a policy: {error}"),
    }
    true
}
