//! Policies on top of each other, and policies built in code.

use toolward_contract::capability::{Capability, PathPattern};
use toolward_policy::{
    ApprovalClass, Defaults, DenyRule, LimitName, LimitSetting, LimitSettings, OnViolation, Policy,
    PolicyParts, PolicyTables, Publisher, Rule, Secret, SecretBinding, SecretPosition,
    SecretSource, ServiceRule, Share, ToolPattern, Workspace,
};

use crate::support::{ask, driver, granted, policy, tool};

#[test]
fn single_values_of_the_later_layer_win_one_by_one() {
    let first = policy(
        "[defaults]\napproval = \"always\"\non_violation = \"end\"\n[network]\nca_file = \"a.pem\"\n\
         [limits]\nfuel = { default = 1, maximum = 2 }\nqueue = 3\n",
    );
    let later = policy("[defaults]\napproval = \"auto\"\n[limits]\nfuel = { maximum = 9 }\n");
    let both = first.layer(later).unwrap();
    assert_eq!(
        both.tables().defaults,
        Defaults {
            approval: Some(ApprovalClass::Auto),
            on_violation: Some(OnViolation::End),
        }
    );
    assert_eq!(both.tables().ca_file.as_deref(), Some("a.pem"));
    let fuel = LimitSetting {
        default: Some(1),
        maximum: Some(9),
    };
    assert_eq!(both.tables().limits.get(LimitName::Fuel), fuel);
    assert_eq!(both.tables().limits.get(LimitName::Queue).maximum, Some(3));
}

#[test]
fn a_deny_of_an_earlier_layer_wins_over_a_grant_of_a_later_one() {
    let deny = policy("[[deny]]\ncapabilities = [\"database:a\"]");
    let grant = policy("[[grant]]\npublisher = \"acme\"\nrequires = [\"database:a\"]");
    let tool = tool("requires: { database: [a] }");
    for both in [
        deny.clone().layer(grant.clone()).unwrap(),
        grant.clone().layer(deny).unwrap(),
    ] {
        assert!(ask(&both, &tool, &driver("")).grant().is_none());
    }
    assert!(ask(&grant, &tool, &driver("")).grant().is_some());
}

#[test]
fn layers_that_contradict_each_other_are_refused() {
    let of = |path: &str, directory: &str, shared: bool| {
        policy(&format!(
            "[[workspace]]\npath = \"{path}\"\ndirectory = \"{directory}\"\nshared = {shared}"
        ))
    };
    let first = of("/notes", "/srv/notes", false);
    let again = first.clone().layer(of("/notes", "/srv/other", false));
    assert_eq!(again.unwrap_err().code(), "policy-duplicate");
    for inside in ["/srv/notes", "/srv/notes/a", "/srv", "/"] {
        let nested = first.clone().layer(of("/docs", inside, true));
        assert_eq!(
            nested.unwrap_err().code(),
            "policy-workspace-overlap",
            "{inside}"
        );
    }
    assert!(first.layer(of("/docs", "/srv/notes2", false)).is_ok());
    let shared = of("/notes", "/srv/notes", true).layer(of("/docs", "/srv", true));
    assert!(shared.is_ok());
}

#[test]
fn too_many_rules_together_are_refused() {
    let many = |count: usize| {
        let rules = (0..count).map(|_| Rule::new(Publisher::parse("acme").unwrap()));
        let parts = PolicyParts {
            grants: rules.collect(),
            ..PolicyParts::default()
        };
        parts.build()
    };
    assert_eq!(many(4097).unwrap_err().code(), "policy-too-large");
    let most = many(4096).unwrap();
    assert!(most.clone().layer(Policy::empty()).is_ok());
    let more = most.layer(policy("[[deny]]\n")).unwrap_err();
    assert_eq!(more.code(), "policy-too-large");
}

#[test]
fn code_builds_the_policy_that_a_file_says() {
    let mut rule = Rule::new(Publisher::parse("acme").unwrap());
    rule.tool = ToolPattern::parse("notes.*@1").unwrap();
    rule.driver = Some("acme.notes".to_owned());
    rule.mutates
        .insert(Capability::parse("workspace:/notes").unwrap());
    rule.requires
        .insert(Capability::parse("secret:token").unwrap());
    rule.reveal.push("token".to_owned());
    rule.host_terms.plain_http = true;
    rule.host_terms
        .addresses
        .push("127.0.0.0/8".parse().unwrap());
    rule.host_terms.guest_headers.push("cookie".to_owned());
    rule.preapproved = true;
    rule.approval = ApprovalClass::OnMutate;
    rule.on_violation = OnViolation::End;
    let mut deny = DenyRule::all();
    deny.publisher = Some(Publisher::parse("other").unwrap());
    let mut workspace = Workspace::new(PathPattern::parse("/notes").unwrap(), "/srv/notes");
    workspace.max_files = Some(3);
    let mut secret = Secret::new("token", Publisher::parse("acme").unwrap());
    secret.source = SecretSource::Env("TOKEN".to_owned());
    let header = SecretPosition::Header("X-Key".to_owned());
    let methods = ["GET", "HEAD"];
    let binding = SecretBinding::new("https://a.example", &header, &methods, "/").unwrap();
    secret.binding = Some(binding.into());
    let mut limits = LimitSettings::default();
    let maximum = LimitSetting {
        default: None,
        maximum: Some(5),
    };
    limits.set(LimitName::Queue, maximum).unwrap();
    let service = ServiceRule {
        name: "mail".to_owned(),
        hosts: vec![toolward_contract::capability::HostPattern::parse("m.example").unwrap()],
    };
    let share = Share {
        database: "counters".to_owned(),
        from: Publisher::parse("acme").unwrap(),
        to: Publisher::parse("other").unwrap(),
    };
    let parts = PolicyParts {
        grants: vec![rule],
        denies: vec![deny],
        tables: PolicyTables {
            workspaces: vec![workspace],
            secrets: vec![secret],
            services: vec![service],
            shares: vec![share],
            limits,
            ca_file: Some("ca.pem".to_owned()),
            ..PolicyTables::default()
        },
        ..PolicyParts::default()
    };
    let built = parts.build().unwrap();
    let read = policy(
        r#"
        [limits]
        queue = 5
        [network]
        ca_file = "ca.pem"
        [[grant]]
        publisher = "acme"
        tool = "notes.*@1"
        driver = "acme.notes"
        mutates = ["workspace:/notes"]
        requires = ["secret:token"]
        reveal = ["token"]
        plain_http = true
        addresses = ["127.0.0.1/8"]
        guest_headers = ["Cookie"]
        preapproved = true
        approval = "on-mutate"
        on_violation = "end"
        [[deny]]
        publisher = "other"
        [[workspace]]
        path = "/notes/"
        directory = "/srv/notes"
        max_files = 3
        [[secret]]
        slug = "token"
        publisher = "acme"
        env = "TOKEN"
        origin = "https://A.example:443"
        header = "x-key"
        [[service]]
        name = "mail"
        hosts = ["M.example"]
        [[share]]
        database = "counters"
        from = "acme"
        to = "other"
        "#,
    );
    assert!(built.grants().eq(read.grants()));
    assert!(built.denies().eq(read.denies()));
    assert_eq!(built.tables().workspaces, read.tables().workspaces);
    assert_eq!(built.tables().secrets, read.tables().secrets);
    assert_eq!(built.tables().services, read.tables().services);
    assert_eq!(built.tables().shares, read.tables().shares);
    assert_eq!(built.tables().limits, read.tables().limits);
    assert_eq!(
        built.tables().ca_file.as_deref(),
        read.tables().ca_file.as_deref()
    );
}

#[test]
fn code_is_held_to_the_rules_of_a_file() {
    let mut rule = Rule::new(Publisher::parse("acme").unwrap());
    rule.requires.insert(Capability::parse("secret:*").unwrap());
    let parts = PolicyParts {
        grants: vec![rule],
        ..PolicyParts::default()
    };
    let error = parts.build().unwrap_err();
    assert_eq!(error.code(), "policy-never-granted");
    assert!(error.to_string().starts_with("[[grant]] 1: "), "{error}");
    assert_eq!(error.line(), None);

    let mut secret = Secret::new("token", Publisher::parse("acme").unwrap());
    let header = SecretPosition::Header("x-key".to_owned());
    let good = SecretBinding::new("https://a.example", &header, &["GET"], "/").unwrap();
    secret.binding = Some(
        SecretBinding {
            position: SecretPosition::Header("Host".to_owned()),
            ..good
        }
        .into(),
    );
    let mut parts = PolicyParts::default();
    parts.tables.secrets.push(secret);
    let error = parts.build().unwrap_err();
    assert_eq!(error.code(), "policy-header");

    let relative = Workspace::new(PathPattern::parse("/notes").unwrap(), "notes");
    let mut parts = PolicyParts::default();
    parts.tables.workspaces.push(relative);
    let error = parts.build().unwrap_err();
    assert_eq!(error.code(), "policy-workspace");
}

#[test]
fn the_empty_policy_is_no_layer() {
    let grant = policy("[[grant]]\npublisher = \"acme\"\nrequires = [\"database:a\"]");
    let tool = tool("requires: { database: [a] }");
    let above = Policy::empty().layer(grant.clone()).unwrap();
    let below = grant.clone().layer(Policy::empty()).unwrap();
    assert_eq!(above, grant);
    assert_eq!(below, grant);
    assert_eq!(granted(&ask(&above, &tool, &driver(""))).len(), 1);
}
