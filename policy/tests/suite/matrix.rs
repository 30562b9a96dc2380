//! Every class × how it is declared × how the policy grants it.

use toolward_contract::capability::Capability;
use toolward_policy::{Decision, Policy, PolicyParts, Publisher, Rule};

use crate::support::{
    EVERYWHERE, allowed, ask, denial, driver, granted, policy, reasons, tool, words,
};

/// A class, and the sandbox's access for reading and for changing.
struct Row {
    capability: &'static str,
    /// Its spelling in `requires`; `None` if it can only be changed.
    requires: Option<&'static str>,
    read: &'static [&'static str],
    write: &'static [&'static str],
}

const TABLES: &str = r#"
    [[workspace]]
    path = "/notes"
    directory = "/srv/notes"

    [[secret]]
    slug = "token"
    publisher = "acme"
    env = "TOKEN"
    origin = "https://api.example"
    header = "authorization"

    [[service]]
    name = "mail"
    hosts = ["mail.example"]
"#;

const USED: &str =
    "secret token of acme, in `authorization` of GET, HEAD to https://api.example:443/";

const ROWS: &[Row] = &[
    Row {
        capability: "network:api.example",
        requires: Some("{ network: [api.example] }"),
        read: &["GET, HEAD and OPTIONS to api.example by https"],
        write: &["all methods to api.example by https"],
    },
    Row {
        capability: "network:*",
        requires: Some("{ network: ['*'] }"),
        read: &["GET, HEAD and OPTIONS to * by https"],
        write: &["all methods to * by https"],
    },
    Row {
        capability: "workspace:/notes",
        requires: Some("{ workspace: [/notes] }"),
        read: &["/notes read-only, /notes being /srv/notes"],
        write: &["/notes read-write, /notes being /srv/notes"],
    },
    Row {
        capability: "workspace:/notes/*.md",
        requires: Some("{ workspace: ['/notes/*.md'] }"),
        read: &["/notes/*.md read-only, /notes being /srv/notes"],
        write: &["/notes/*.md read-write, /notes being /srv/notes"],
    },
    Row {
        capability: "database:counters",
        requires: Some("{ database: [counters] }"),
        read: &["bucket counters of acme, read-only"],
        write: &["bucket counters of acme, read-write"],
    },
    Row {
        capability: "secret:token",
        requires: Some("{ secrets: [token] }"),
        read: &[USED],
        write: &["secret token of acme, and storing it"],
    },
    Row {
        capability: "tool:text.stats",
        requires: Some("{ tools: [text.stats] }"),
        read: &["tool text.stats"],
        write: &["tool text.stats"],
    },
    Row {
        capability: "user:form",
        requires: Some("{ user: [form] }"),
        read: &["user form"],
        write: &["user form"],
    },
    Row {
        capability: "user:sample",
        requires: Some("{ user: [sample] }"),
        read: &["user sample"],
        write: &["user sample"],
    },
    Row {
        capability: "user:roots",
        requires: Some("{ user: [roots] }"),
        read: &["user roots"],
        write: &["user roots"],
    },
    Row {
        capability: "external:mail",
        requires: None,
        read: &[],
        write: &["all methods to mail.example by https"],
    },
];

/// How the policy grants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    Not,
    ForReading,
    ForChanging,
}

fn with(row: &Row, given: Given) -> Option<Policy> {
    let tables = policy(TABLES);
    let mut rule = Rule::new(Publisher::parse("acme").expect("a publisher"));
    let capability = Capability::parse(row.capability).expect("a capability");
    match given {
        Given::Not => {}
        Given::ForReading => rule.requires.insert(capability),
        Given::ForChanging => rule.mutates.insert(capability),
    }
    let parts = PolicyParts {
        grants: vec![rule],
        ..PolicyParts::default()
    };
    let rules = parts.build().ok()?;
    Some(tables.layer(rules).expect("one rule"))
}

#[test]
fn each_class_is_granted_exactly_as_declared_and_allowed() {
    let driver = driver(EVERYWHERE);
    for row in ROWS {
        for given in [Given::Not, Given::ForReading, Given::ForChanging] {
            let case = format!("{} {given:?}", row.capability);
            let Some(policy) = with(row, given) else {
                assert_eq!((row.requires, given), (None, Given::ForReading), "{case}");
                continue;
            };

            // Without a declaration, nothing is granted by any policy.
            let decision = ask(&policy, &tool(""), &driver);
            assert!(matches!(decision, Decision::Allow(_)), "{case}");
            assert_eq!(
                words(&allowed(&decision).grant),
                Vec::<String>::new(),
                "{case}"
            );

            // Declared for reading.
            if let Some(requires) = row.requires {
                let tool = tool(&format!("requires: {requires}"));
                let decision = ask(&policy, &tool, &driver);
                // Permission to store a secret is not permission to use it.
                let secret = row.capability.starts_with("secret:");
                if given == Given::Not || (secret && given == Given::ForChanging) {
                    let missing = &denial(&decision).missing;
                    assert_eq!(missing.len(), 1, "{case}");
                    assert_eq!(missing[0].capability.to_string(), row.capability, "{case}");
                    assert!(!missing[0].mutates, "{case}");
                } else {
                    assert!(
                        matches!(decision, Decision::Allow(_)),
                        "{case}: {decision:?}"
                    );
                    assert_eq!(words(&allowed(&decision).grant), row.read, "{case}");
                }
            }

            // Declared for changing.
            let tool = tool(&format!("mutates: ['{}']", row.capability));
            let decision = ask(&policy, &tool, &driver);
            if given == Given::ForChanging {
                assert!(
                    matches!(decision, Decision::Ask(..)),
                    "{case}: {decision:?}"
                );
                assert_eq!(words(&allowed(&decision).grant), row.write, "{case}");
            } else {
                let missing = &denial(&decision).missing;
                assert_eq!(missing.len(), 1, "{case}");
                assert!(missing[0].mutates, "{case}");
                assert!(decision.grant().is_none(), "{case}");
            }
        }
    }
}

#[test]
fn a_class_that_nobody_knows_is_never_granted() {
    let wide = policy(
        r#"
        [[grant]]
        publisher = "acme"
        requires = ["network:*", "workspace:/", "database:*", "user:form"]
        mutates = ["network:*", "workspace:/", "database:*", "external:*"]
        "#,
    );
    let decision = ask(&wide, &tool("mutates: ['gpu:all']"), &driver(EVERYWHERE));
    let missing = &denial(&decision).missing;
    assert_eq!(missing.len(), 1);
    assert_eq!(missing[0].why, toolward_policy::Why::UnknownClass);
}

#[test]
fn a_class_that_nobody_knows_is_accepted_by_its_name_and_gives_nothing() {
    let rule = "[[grant]]\npublisher = \"acme\"\naccepts = [\"gpu\"]\n";
    let tool = tool("mutates: ['gpu:all', 'gpu:*']");
    let decision = ask(&policy(rule), &tool, &driver(EVERYWHERE));
    assert!(granted(&decision).is_empty(), "{decision:?}");
    assert_eq!(reasons(&decision), [toolward_policy::AskReason::Mutates]);
    // A rule for one name or tool does not apply to another.
    for other in [
        rule.replace("\"gpu\"", "\"gp\", \"gpux\""),
        format!("{rule}tool = \"text.*\"\n"),
        rule.replace("acme", "other"),
    ] {
        let decision = ask(&policy(&other), &tool, &driver(EVERYWHERE));
        assert!(decision.grant().is_none(), "{other}");
    }
    for class in ["*", "", "network", "net", "gpu:all", "Gpu"] {
        let text = rule.replace("\"gpu\"", &format!("{class:?}"));
        let refused = Policy::from_toml(&text).unwrap_err();
        assert_eq!(refused.code(), "policy-capability", "{class}");
    }
}

#[test]
fn all_tools_and_all_secrets_are_never_granted() {
    for (declared, entry) in [
        ("requires: { tools: ['*'] }", "tool:text.stats"),
        ("requires: { secrets: ['*'] }", "secret:token"),
        ("mutates: ['secret:*']", "secret:token"),
    ] {
        let policy = policy(&format!(
            "{TABLES}\n[[grant]]\npublisher = \"acme\"\nmutates = [\"{entry}\"]"
        ));
        let decision = ask(&policy, &tool(declared), &driver(""));
        let missing = &denial(&decision).missing;
        assert_eq!(
            missing[0].why,
            toolward_policy::Why::NeverGranted,
            "{declared}"
        );
    }
}

#[test]
fn a_wildcard_is_granted_only_where_policy_writes_it() {
    for (declared, entry) in [
        ("network:*", "network:*.example"),
        ("database:*", "database:counters"),
        ("external:*", "external:mail"),
    ] {
        let policy = policy(&format!(
            "{TABLES}\n[[grant]]\npublisher = \"acme\"\nmutates = [\"{entry}\"]"
        ));
        let tool = tool(&format!("mutates: ['{declared}']"));
        let decision = ask(&policy, &tool, &driver(EVERYWHERE));
        let missing = &denial(&decision).missing;
        assert_eq!(
            missing[0].why,
            toolward_policy::Why::WildcardNotWritten,
            "{declared}"
        );
    }
}
