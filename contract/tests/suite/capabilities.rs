//! The laws of the capability vocabulary.

use proptest::prelude::*;
use toolward_contract::capability::{Capability, CapabilitySet, Class};

fn capability(text: &str) -> Capability {
    Capability::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn covers(a: &str, b: &str) -> bool {
    capability(a).covers(&capability(b))
}

#[test]
fn spellings_are_normalised() {
    for (written, normal) in [
        ("network:API.Example.COM", "network:api.example.com"),
        ("network:example.com.", "network:example.com"),
        ("network:a.example:443", "network:a.example"),
        ("network:[0:0::1]:8443", "network:[::1]:8443"),
        ("workspace:/a//b/./c/", "workspace:/a/b/c"),
        ("workspace:/a/**", "workspace:/a"),
        ("workspace:/**", "workspace:/"),
        ("workspace:/*/**", "workspace:/*/**"),
        ("secret:runloop/mail/key", "secret:runloop/mail/key"),
        ("vendor-thing:any.thing", "vendor-thing:any.thing"),
    ] {
        assert_eq!(capability(written).to_string(), normal);
    }
}

#[test]
fn what_no_class_has_is_refused() {
    for text in [
        "",
        ":",
        "network",
        "network:",
        "Network:a.example",
        "network:a b",
        "network:http://a.example",
        "network:a.example/x",
        "network:u@a.example",
        "network:a.example:0",
        "network:a.example:080",
        "network:a.example:65536",
        "network:a.example:",
        "network:*.1.2.3.4",
        "network:1.2.3",
        "network:0x7f.0.0.1",
        "network:0x7f000001",
        "network:*a.example",
        "network:a.*.example",
        "network:-a.example",
        "network:a..example",
        "network:::1",
        "network:[::1",
        "network:[::1]x",
        "network:\u{430}.example",
        "workspace:",
        "workspace:a",
        "workspace:/../a",
        "workspace:/a/../b",
        "workspace:/a\\b",
        "workspace:/a\u{0}",
        "workspace:/a/**/b",
        "workspace:/a**",
        "workspace:/[ab]",
        "workspace:/{a,b}",
        "database:a b",
        "database:",
        "secret:a//b",
        "secret:/a",
        "secret:..",
        "user:password",
        "user:*",
        "tool:A",
        "external:",
        "external:a/b",
        "other:a b",
    ] {
        assert!(Capability::parse(text).is_err(), "{text:?} was read");
    }
}

#[test]
fn a_wildcard_host_is_every_name_below_and_not_the_host() {
    assert!(covers("network:*.example.com", "network:api.example.com"));
    assert!(covers("network:*.example.com", "network:a.b.example.com"));
    assert!(covers("network:*.example.com", "network:*.b.example.com"));
    assert!(!covers("network:*.example.com", "network:example.com"));
    assert!(!covers("network:*.example.com", "network:badexample.com"));
    assert!(!covers("network:api.example.com", "network:*.example.com"));
    assert!(!covers("network:*.example.com", "network:*"));
    assert!(covers("network:*", "network:*.example.com"));
    assert!(covers("network:*", "network:127.0.0.1"));
}

#[test]
fn no_port_is_the_default_port_only() {
    assert!(covers("network:a.example", "network:a.example:443"));
    assert!(!covers("network:a.example", "network:a.example:8443"));
    assert!(!covers("network:a.example", "network:a.example:80"));
    assert!(covers("network:a.example:443", "network:a.example"));
    assert!(!covers("network:*", "network:a.example:8443"));
    assert!(covers("network:*:8443", "network:a.example:8443"));
    let host = capability("network:a.example");
    let host = host.host().expect("a host");
    assert!(host.matches("A.example", 443, true));
    assert!(!host.matches("a.example", 8443, false));
    assert!(
        !capability("network:*.0.0.com")
            .host()
            .expect("a host")
            .matches("127.0.0.1", 443, true)
    );
}

#[test]
fn a_plain_path_is_a_tree_and_a_pattern_is_what_it_matches() {
    assert!(covers("workspace:/data", "workspace:/data/a/b.txt"));
    assert!(covers("workspace:/", "workspace:/data/*.csv"));
    assert!(!covers("workspace:/data", "workspace:/database"));
    assert!(!covers("workspace:/data/a", "workspace:/data"));
    assert!(covers("workspace:/data/*", "workspace:/data/*.csv"));
    assert!(covers("workspace:/data/*.csv", "workspace:/data/a*.csv"));
    assert!(!covers("workspace:/data/a*.csv", "workspace:/data/*.csv"));
    // A pattern does not reach below what it matches; a plain path does.
    assert!(!covers("workspace:/data/*", "workspace:/data/a"));
    assert!(covers("workspace:/data/*/**", "workspace:/data/a"));
    let pattern = capability("workspace:/data/*.csv");
    let pattern = pattern.path().expect("a path");
    assert!(pattern.matches("/data/a.csv"));
    assert!(!pattern.matches("/data/sub/a.csv"));
    assert!(!pattern.matches("/data/../a.csv"));
    assert_eq!(
        (pattern.is_plain(), pattern.directory().as_str()),
        (false, "/data")
    );
    let tree = capability("workspace:/data/a");
    assert_eq!(
        tree.path().map(|path| (path.is_plain(), path.directory())),
        Some((true, "/data/a".to_owned()))
    );
}

#[test]
fn a_path_leads_through_the_directories_above_what_it_matches() {
    let leads = |pattern: &str, path: &str| {
        let pattern = capability(&format!("workspace:{pattern}"));
        pattern.path().is_some_and(|own| own.leads_through(path))
    };
    for (pattern, path) in [
        ("/data/a", "/"),
        ("/data/a", "/data"),
        ("/data/a", "/data/a/b"),
        ("/data/*/x-*.csv", "/data/2026"),
        ("/data/*/**", "/data/2026/b"),
    ] {
        assert!(leads(pattern, path), "{pattern} {path}");
    }
    for (pattern, path) in [
        ("/data/a", "/other"),
        ("/data/a", "/dat"),
        ("/data/a", "data"),
        ("/data/*.csv", "/data/a.csv"),
        ("/data/*/x.csv", "/data/.."),
        ("/data/*/x.csv", "/data/*"),
        ("/data/*/x.csv", "/data/a/x.csv/b"),
    ] {
        assert!(!leads(pattern, path), "{pattern} {path}");
    }
    let below = |pattern: &str, path: &str| {
        let pattern = capability(&format!("workspace:{pattern}"));
        pattern.path().is_some_and(|own| own.matches_below(path))
    };
    assert!(below("/data", "/data/a") && below("/data/*/**", "/data/a"));
    assert!(!below("/data/*", "/data/a") && !below("/data", "/"));
}

#[test]
fn an_unknown_class_covers_only_its_own_text() {
    assert!(covers("vendor:a", "vendor:a"));
    assert!(!covers("vendor:*", "vendor:a"));
    assert!(!covers("network:*", "vendor:a"));
    assert_eq!(
        capability("vendor:a").class(),
        &Class::Other("vendor".to_owned())
    );
}

#[test]
fn the_intersection_is_the_narrower_one() {
    let both = |a: &str, b: &str| {
        capability(a)
            .intersect(&capability(b))
            .map(|c| c.to_string())
    };
    assert_eq!(
        both("network:*", "network:*.example.com").as_deref(),
        Some("network:*.example.com")
    );
    assert_eq!(
        both("network:*:8443", "network:a.example:8443").as_deref(),
        Some("network:a.example:8443")
    );
    assert_eq!(
        both("network:*", "network:a.example:443").as_deref(),
        Some("network:a.example")
    );
    assert_eq!(both("network:a.example", "network:b.example"), None);
    assert_eq!(
        both("workspace:/data", "workspace:/data/in/*.csv").as_deref(),
        Some("workspace:/data/in/*.csv")
    );
    assert_eq!(
        both("workspace:/data/*/**", "workspace:/*/b").as_deref(),
        None
    );
    assert_eq!(both("workspace:/data", "workspace:/other"), None);
    assert_eq!(
        both("database:*", "database:notes").as_deref(),
        Some("database:notes")
    );
    assert_eq!(both("database:notes", "secret:notes"), None);
}

fn hosts() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec![
        "com",
        "a.com",
        "b.a.com",
        "c.b.a.com",
        "b.com",
        "127.0.0.1",
        "[::1]",
    ]);
    let port = prop::sample::select(vec!["", ":443", ":80", ":8443"]);
    let form = prop::sample::select(vec!["", "*.", "*"]);
    (name, port, form).prop_map(|(name, port, form)| match form {
        "*" => format!("network:*{port}"),
        "*." if name.starts_with(|c: char| c.is_ascii_lowercase()) => {
            format!("network:*.{name}{port}")
        }
        _ => format!("network:{name}{port}"),
    })
}

fn paths() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec!["a", "b", "ab", "a*", "*b", "*", "a*b", "aab"]);
    let end = prop::sample::select(vec!["", "/**"]);
    (prop::collection::vec(part, 0..4), end).prop_map(|(parts, end)| {
        let path: String = parts.iter().map(|part| format!("/{part}")).collect();
        format!(
            "workspace:{}{end}",
            if path.is_empty() && end.is_empty() {
                "/"
            } else {
                &path
            }
        )
    })
}

fn names() -> impl Strategy<Value = String> {
    let class = prop::sample::select(vec!["database", "secret", "external", "tool", "vendor"]);
    let name = prop::sample::select(vec!["*", "one", "two", "three"]);
    (class, name).prop_map(|(class, name)| format!("{class}:{name}"))
}

fn capabilities() -> impl Strategy<Value = Capability> {
    let user = prop::sample::select(vec!["user:form", "user:sample", "user:roots"])
        .prop_map(str::to_owned);
    prop_oneof![4 => hosts(), 4 => paths(), 2 => names(), 1 => user]
        .prop_map(|text| capability(&text))
}

fn sets() -> impl Strategy<Value = CapabilitySet> {
    prop::collection::vec(capabilities(), 0..6).prop_map(|members| members.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn covering_is_reflexive(a in capabilities()) {
        prop_assert!(a.covers(&a));
    }

    #[test]
    fn covering_is_transitive(a in capabilities(), b in capabilities(), c in capabilities()) {
        if a.covers(&b) && b.covers(&c) {
            prop_assert!(a.covers(&c), "{} {} {}", a, b, c);
        }
    }

    #[test]
    fn covering_paths_is_transitive(a in paths(), b in paths(), c in paths()) {
        let (a, b, c) = (capability(&a), capability(&b), capability(&c));
        if a.covers(&b) && b.covers(&c) {
            prop_assert!(a.covers(&c), "{} {} {}", a, b, c);
        }
    }

    #[test]
    fn covering_both_ways_is_being_equal(a in capabilities(), b in capabilities()) {
        prop_assert_eq!(a.covers(&b) && b.covers(&a), a == b, "{} {}", a, b);
    }

    #[test]
    fn text_is_read_back_as_the_same_capability(a in capabilities()) {
        prop_assert_eq!(capability(&a.to_string()), a);
    }

    #[test]
    fn an_intersection_is_covered_by_both_and_has_a_spelling(a in capabilities(), b in capabilities()) {
        if let Some(both) = a.intersect(&b) {
            prop_assert!(a.covers(&both) && b.covers(&both), "{} {} {}", a, b, both);
            prop_assert_eq!(capability(&both.to_string()), both);
        } else {
            prop_assert!(!a.covers(&b) && !b.covers(&a), "{} {}", a, b);
        }
    }

    #[test]
    fn an_intersection_does_not_depend_on_the_order(a in capabilities(), b in capabilities()) {
        prop_assert_eq!(a.intersect(&b), b.intersect(&a));
    }

    #[test]
    fn what_a_covered_path_matches_its_cover_matches(a in paths(), b in paths(), parts in prop::collection::vec(prop::sample::select(vec!["a", "b", "ab", "aab", "c"]), 0..5)) {
        let (a, b) = (capability(&a), capability(&b));
        let path: String = parts.iter().map(|part| format!("/{part}")).collect::<String>() + if parts.is_empty() { "/" } else { "" };
        let matches = |c: &Capability| c.path().is_some_and(|pattern| pattern.matches(&path));
        if a.covers(&b) && matches(&b) {
            prop_assert!(matches(&a), "{} {} {}", a, b, path);
        }
        if let Some(both) = a.intersect(&b) && matches(&both) {
            prop_assert!(matches(&a) && matches(&b));
        }
    }

    #[test]
    fn what_a_covered_host_matches_its_cover_matches(a in hosts(), b in hosts(), name in prop::sample::select(vec!["com", "a.com", "b.a.com", "d.a.com", "127.0.0.1", "[::1]"]), port in prop::sample::select(vec![443_u16, 80, 8443])) {
        let (a, b) = (capability(&a), capability(&b));
        let matches = |c: &Capability| c.host().is_some_and(|host| host.matches(name, port, port == 443));
        if a.covers(&b) && matches(&b) {
            prop_assert!(matches(&a), "{} {} {}:{}", a, b, name, port);
        }
    }

    #[test]
    fn a_union_covers_both(a in sets(), b in sets()) {
        let union = a.union(&b);
        prop_assert!(union.covers(&a) && union.covers(&b));
    }

    #[test]
    fn the_intersection_of_sets_is_covered_by_both(a in sets(), b in sets()) {
        let both = a.intersection(&b);
        prop_assert!(a.covers(&both) && b.covers(&both));
        if a.covers(&b) {
            prop_assert!(both.covers(&b));
        }
    }

    #[test]
    fn the_empty_set_grants_nothing(a in sets(), one in capabilities()) {
        let empty = CapabilitySet::new();
        prop_assert!(!empty.covers_one(&one));
        prop_assert!(empty.intersection(&a).is_empty());
        prop_assert_eq!(empty.covers(&a), a.is_empty());
        prop_assert_eq!(a.union(&empty), a.clone());
        prop_assert!(a.covers(&empty));
    }

    #[test]
    fn what_is_missing_is_what_is_not_covered(a in sets(), b in sets()) {
        let missing = a.missing(&b);
        prop_assert!(b.covers(&missing));
        prop_assert!(a.union(&missing).covers(&b));
        prop_assert_eq!(missing.is_empty(), a.covers(&b));
    }

    #[test]
    fn no_text_makes_parsing_panic(text in ".*", class in "(network|workspace|user|tool|secret|x):", scope in ".*") {
        let _ = Capability::parse(&text);
        if let Ok(read) = Capability::parse(&format!("{class}{scope}")) {
            prop_assert_eq!(capability(&read.to_string()), read);
        }
    }
}

#[test]
fn the_spelling_of_tools_json_is_no_class() {
    for text in ["net:a.example", "fs:/a", "db:notes"] {
        let error = Capability::parse(text).expect_err("another document's spelling");
        assert_eq!(error.code(), "capability-invalid");
    }
    let error = Capability::parse("net:a.example").expect_err("another document's spelling");
    assert!(error.to_string().contains("network:a.example"), "{error}");
}

fn overlap(a: &str, b: &str) -> bool {
    capability(a).overlaps(&capability(b))
}

#[test]
fn patterns_that_some_path_matches_overlap_whichever_is_wider() {
    for (a, b) in [
        ("workspace:/a", "workspace:/a/b/c"),
        ("workspace:/a/b", "workspace:/a"),
        ("workspace:/", "workspace:/a/*.txt"),
        ("workspace:/a/*x", "workspace:/a/x*"),
        ("workspace:/a/x*", "workspace:/a/x"),
        ("workspace:/a/*.txt", "workspace:/a/x.txt"),
        ("workspace:/a/**", "workspace:/*/b"),
        ("workspace:/a/x*y*z", "workspace:/a/*yy*"),
    ] {
        assert!(overlap(a, b), "{a} {b}");
        assert!(overlap(b, a), "{b} {a}");
    }
    for (a, b) in [
        ("workspace:/a", "workspace:/b"),
        ("workspace:/a", "workspace:/ab"),
        ("workspace:/a/*.txt", "workspace:/a/x.md"),
        ("workspace:/a/*.txt", "workspace:/a/b/x.txt"),
        ("workspace:/a/x*", "workspace:/a/y*"),
    ] {
        assert!(!overlap(a, b), "{a} {b}");
        assert!(!overlap(b, a), "{b} {a}");
    }
}

#[test]
fn a_denied_host_is_denied_at_every_port_and_a_denied_port_only_there() {
    assert!(overlap("network:*.internal", "network:db.internal:5432"));
    assert!(overlap("network:db.internal", "network:*:5432"));
    assert!(overlap("network:a.example:443", "network:a.example"));
    assert!(overlap("network:a.example:443", "network:a.example:443"));
    assert!(!overlap("network:a.example:443", "network:a.example:8443"));
    assert!(!overlap("network:a.example:443", "network:a.example:80"));
    assert!(overlap("network:a.example:80", "network:*"));
    assert!(!overlap("network:a.example:8443", "network:a.example"));
    assert!(!overlap("network:a.example:8443", "network:a.example:443"));
    assert!(!overlap("network:*.internal", "network:internal"));
    assert!(!overlap("network:a.example", "database:a.example"));
}

#[test]
fn names_overlap_when_they_are_equal_or_one_is_a_wildcard() {
    assert!(overlap("secret:*", "secret:token"));
    assert!(overlap("tool:*", "tool:text.stats"));
    assert!(overlap("database:counters", "database:*"));
    assert!(!overlap("secret:a", "secret:b"));
}
