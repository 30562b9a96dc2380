//! Random policies, contracts and drivers.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use toolward_contract::capability::CapabilitySet;
use toolward_contract::driver::Driver;
use toolward_contract::tool::Tool;
use toolward_policy::{ApprovalClass, DenyRule, Policy, PolicyParts, Publisher, Rule, ToolPattern};

use crate::support::{driver, policy, tool};

const NETWORK: &[&str] = &[
    "network:a.example",
    "network:b.example",
    "network:*.example",
    "network:a.example:8443",
    "network:a.example:443",
    "network:*",
];

pub(super) const READABLE: &[&str] = &[
    "network:a.example",
    "network:b.example",
    "network:*.example",
    "network:a.example:8443",
    "network:*",
    "workspace:/notes",
    "workspace:/notes/sub",
    "workspace:/docs/*.md",
    "workspace:/docs/**",
    "workspace:/",
    "database:counters",
    "database:other",
    "database:*",
    "secret:token",
    "secret:key",
    "tool:text.stats",
    "tool:notes.read",
    "user:form",
    "user:roots",
];

pub(super) const CHANGEABLE: &[&str] = &[
    "network:a.example",
    "network:*.example",
    "network:*",
    "workspace:/notes",
    "workspace:/docs/x.md",
    "workspace:/",
    "database:counters",
    "database:*",
    "secret:token",
    "external:mail",
    "external:*",
];

/// Classes that no host knows. A rule can accept them, which grants nothing.
pub(super) const UNKNOWN: &[&str] = &["gpu:x", "storage:*"];

/// Capabilities that contracts may require but no rule can grant.
pub(super) const HOPELESS: &[&str] = &["secret:*", "tool:*"];

pub(super) const TABLES: &str = r#"
    [[workspace]]
    path = "/notes"
    directory = "/srv/notes"
    [[workspace]]
    path = "/docs"
    directory = "/srv/docs"
    [[secret]]
    slug = "token"
    publisher = "acme"
    origin = "https://a.example"
    header = "x-key"
    [[service]]
    name = "mail"
    hosts = ["a.example", "mail.internal"]
    [[share]]
    database = "counters"
    from = "other"
    to = "acme"
"#;

fn set(texts: &[&str]) -> CapabilitySet {
    texts
        .iter()
        .map(|text| text.parse().expect("a capability"))
        .collect()
}

pub(super) fn some(from: &'static [&'static str]) -> impl Strategy<Value = CapabilitySet> {
    subsequence(from, 0..=4.min(from.len())).prop_map(|texts| set(&texts))
}

pub(super) fn contracts() -> impl Strategy<Value = Tool> {
    let changes = (
        some(CHANGEABLE),
        prop::option::weighted(0.1, select(HOPELESS)),
        prop::option::weighted(0.2, select(UNKNOWN)),
    );
    (
        some(READABLE),
        changes,
        0_u8..=3,
        select(&["auto", "on-mutate", "always"][..]),
    )
        .prop_map(
            |(requires, (mut mutates, hopeless, unknown), risk, approval)| {
                let beyond = hopeless.into_iter().chain(unknown);
                mutates.extend(beyond.map(|text| text.parse().expect("a capability")));
                let listed: Vec<String> = mutates.iter().map(|one| format!("'{one}'")).collect();
                let mut tool = tool(&format!(
                    "mutates: [{}]\nrisk_level: {risk}\napproval: {approval}",
                    listed.join(", ")
                ));
                tool.requires.capabilities = requires;
                tool
            },
        )
}

pub(super) fn drivers() -> impl Strategy<Value = Driver> {
    let added = subsequence(READABLE, 0..=2).prop_map(|texts| set(&texts));
    (some(NETWORK), added).prop_map(|(egress, added)| {
        let mut driver = driver("");
        driver.egress = egress;
        driver.requires.capabilities = added;
        driver
    })
}

fn patterns() -> impl Strategy<Value = ToolPattern> {
    select(&["*", "notes.*", "notes.append@1", "notes.append@2", "text.*"][..])
        .prop_map(|text| ToolPattern::parse(text).expect("a pattern"))
}

pub(super) fn rules() -> impl Strategy<Value = Rule> {
    let publishers = select(&["acme", "acme", "acme", "other"][..]);
    let drivers = prop::option::weighted(0.4, select(&["acme.notes", "acme.other"][..]));
    let accepts = prop::option::of(select(&["gpu", "storage"][..]));
    let terms = (
        any::<bool>(),
        any::<bool>(),
        prop::bool::weighted(0.1),
        accepts,
    );
    (
        publishers,
        patterns(),
        drivers,
        some(READABLE),
        some(CHANGEABLE),
        terms,
    )
        .prop_map(|(publisher, tool, driver, requires, mutates, terms)| {
            let (plain_http, preapproved, always, accepts) = terms;
            let mut rule = Rule::new(Publisher::parse(publisher).expect("a publisher"));
            rule.tool = tool;
            rule.driver = driver.map(str::to_owned);
            rule.requires = requires;
            rule.mutates = mutates;
            rule.host_terms.plain_http = plain_http;
            rule.preapproved = preapproved;
            rule.accepts = accepts.into_iter().map(str::to_owned).collect();
            if always {
                rule.approval = ApprovalClass::Always;
            }
            rule
        })
}

pub(super) fn denies() -> impl Strategy<Value = DenyRule> {
    let publishers = prop::option::of(select(&["acme", "other"][..]));
    let capabilities = prop::option::weighted(0.9, some(CHANGEABLE));
    (publishers, patterns(), capabilities).prop_map(|(publisher, tool, capabilities)| DenyRule {
        publisher: publisher.map(|name| Publisher::parse(name).expect("a publisher")),
        tool,
        capabilities,
    })
}

pub(super) fn built(rules: &[Rule], denies: &[DenyRule]) -> Policy {
    let parts = PolicyParts {
        grants: rules.to_vec(),
        denies: denies.to_vec(),
        ..PolicyParts::default()
    };
    parts.build().expect("the rules are good")
}

pub(super) fn policies() -> impl Strategy<Value = Policy> {
    let rules = prop::collection::vec(rules(), 0..5);
    let denies = prop::collection::vec(denies(), 0..2);
    (rules, denies, any::<bool>()).prop_map(|(rules, denies, tables)| {
        let rules = built(&rules, &denies);
        match tables {
            true => policy(TABLES).layer(rules).expect("the tables are good"),
            false => rules,
        }
    })
}
