//! The contents of a grant, case by case.

use std::path::Path;

use toolward_policy::{Decision, OnViolation, Policy, Why};

use crate::support::{
    EVERYWHERE, allowed, ask, ask_of, denial, driver, granted, missing, named_tool, policy, tool,
};

const NONE: &[&str] = &[];

#[test]
fn an_empty_list_gives_nothing() {
    let policy = policy("[[grant]]\npublisher = \"acme\"\nrequires = []\nmutates = []\n");
    let tool = tool("requires: { network: [api.example] }");
    let decision = ask(&policy, &tool, &driver(EVERYWHERE));
    assert_eq!(
        missing(&decision),
        ["`network:api.example`: no rule gives it"]
    );
}

#[test]
fn a_rule_is_about_its_publisher_tools_and_major_version_only() {
    let tool = tool("requires: { database: [counters] }");
    let driver = driver("");
    let rule = |lines: &str| {
        policy(&format!(
            "[[grant]]\n{lines}\nrequires = [\"database:counters\"]"
        ))
    };
    for lines in [
        "publisher = \"acme\"",
        "publisher = \"acme\"\ntool = \"notes.*\"",
        "publisher = \"acme\"\ntool = \"notes.append@1\"",
        "publisher = \"acme\"\ndriver_publisher = \"acme\"\ndriver = \"acme.notes\"",
    ] {
        assert_eq!(
            granted(&ask(&rule(lines), &tool, &driver)).len(),
            1,
            "{lines}"
        );
    }
    for lines in [
        "publisher = \"other\"",
        "publisher = \"acme\"\ntool = \"notes\"",
        "publisher = \"acme\"\ntool = \"notes.append@2\"",
        "publisher = \"acme\"\ndriver_publisher = \"other\"",
        "publisher = \"acme\"\ndriver = \"acme.other\"",
        "publisher = \"dev:/srv/acme\"",
    ] {
        let decision = ask(&rule(lines), &tool, &driver);
        assert_eq!(denial(&decision).missing[0].why, Why::NoRule, "{lines}");
    }
}

#[test]
fn a_driver_of_another_publisher_needs_a_rule_that_names_that_publisher() {
    let tool = tool("requires: { database: [counters] }");
    let driver = driver("");
    let own = "[[grant]]\npublisher = \"acme\"\nrequires = [\"database:counters\"]";
    let pair = |policy: &Policy| ask_of(policy, (&tool, "acme"), (&driver, "other"));
    assert_eq!(denial(&pair(&policy(own))).missing.len(), 1);
    let named = format!("{own}\ndriver_publisher = \"other\"");
    assert_eq!(
        granted(&pair(&policy(&named))),
        ["bucket counters of acme, read-only"]
    );
}

#[test]
fn the_closest_workspace_at_or_above_a_path_is_opened() {
    let policy = policy(
        r#"
        [[workspace]]
        path = "/"
        directory = "/srv/all"
        [[workspace]]
        path = "/notes"
        directory = "/srv/notes"
        max_bytes = 10
        max_files = 2
        [[grant]]
        publisher = "acme"
        mutates = ["workspace:/"]
        "#,
    );
    let tool = tool(
        "requires: { workspace: [/docs, /notesx, /notes/a] }\nmutates: ['workspace:/notes/a/b']",
    );
    assert_eq!(
        granted(&ask(&policy, &tool, &driver(""))),
        [
            "/docs read-only, / being /srv/all",
            "/notes/a read-only, /notes being /srv/notes, at most 10 bytes more, at most 2 files more",
            "/notesx read-only, / being /srv/all",
            "/notes/a/b read-write, /notes being /srv/notes, at most 10 bytes more, at most 2 files more",
        ]
    );
}

#[test]
fn a_workspace_without_a_directory_is_missing() {
    let policy = policy(
        r#"
        [[workspace]]
        path = "/notes/inner"
        directory = "/srv/inner"
        [[grant]]
        publisher = "acme"
        requires = ["workspace:/notes"]
        "#,
    );
    let tool = tool("requires: { workspace: [/notes] }");
    let decision = ask(&policy, &tool, &driver(""));
    assert_eq!(denial(&decision).missing[0].why, Why::NoWorkspace);
}

#[test]
fn what_still_waits_for_a_choice_gives_nothing() {
    let rule = "[[grant]]\npublisher = \"acme\"\nrequires = [\"secret:token\"]\nmutates = [\"external:mail\"]\n";
    let secret = |env: &str, host: &str| {
        format!(
            "{rule}[[secret]]\nslug = \"token\"\npublisher = \"acme\"\nenv = \"{env}\"\n\
             origin = \"https://{host}\"\nheader = \"authorization\"\n"
        )
    };
    let uses = tool("requires: { secrets: [token] }");
    for (env, host, waits) in [
        ("TOOLWARD_CHOOSE", "a.example", true),
        ("TOKEN", "host.invalid", true),
        ("TOKEN", "a.example", false),
    ] {
        let decision = ask(&policy(&secret(env, host)), &uses, &driver(""));
        match &decision {
            Decision::Deny(denial) => assert_eq!(denial.missing[0].why, Why::NotChosen),
            _ => assert!(!waits, "{env} {host}"),
        }
        assert_eq!(decision.grant().is_none(), waits, "{env} {host}");
    }
    let service = |hosts: &str| format!("{rule}[[service]]\nname = \"mail\"\nhosts = [{hosts}]\n");
    let everywhere = driver(EVERYWHERE);
    for (hosts, waits) in [
        ("\"host.invalid\"", true),
        ("\"a.example\", \"host.invalid\"", true),
        ("\"a.example\"", false),
    ] {
        let sends = tool("mutates: ['external:mail']");
        let decision = ask(&policy(&service(hosts)), &sends, &everywhere);
        assert_eq!(decision.grant().is_none(), waits, "{hosts}");
    }
}

#[test]
fn a_bucket_is_the_publishers_own_unless_another_shares_it_by_name() {
    let rule = "[[grant]]\npublisher = \"acme\"\nrequires = [\"database:*\"]\n";
    let share = "[[share]]\ndatabase = \"counters\"\nfrom = \"other\"\nto = \"acme\"\n";
    let elsewhere = "[[share]]\ndatabase = \"counters\"\nfrom = \"third\"\nto = \"other\"\n";
    let tool = tool("requires: { database: [counters] }");
    let own = ["bucket counters of acme, read-only"];
    assert_eq!(granted(&ask(&policy(rule), &tool, &driver(""))), own);
    let policy_of = |tables: &str| policy(&format!("{rule}{tables}"));
    assert_eq!(
        granted(&ask(&policy_of(elsewhere), &tool, &driver(""))),
        own
    );
    assert_eq!(
        granted(&ask(&policy_of(share), &tool, &driver(""))),
        ["bucket counters of other, read-only"]
    );
    let all = crate::support::tool("requires: { database: ['*'] }");
    assert_eq!(
        granted(&ask(&policy_of(share), &all, &driver(""))),
        [
            "bucket counters of other, read-only",
            "bucket * of acme, read-only"
        ]
    );
    // A share grants nothing without a rule.
    let decision = ask(&policy(share), &tool, &driver(""));
    assert_eq!(denial(&decision).missing[0].why, Why::NoRule);
}

#[test]
fn a_service_reaches_its_hosts_as_far_as_the_driver_uses_them() {
    let rule = "[[grant]]\npublisher = \"acme\"\nmutates = [\"external:mail\"]\n";
    let service = "[[service]]\nname = \"mail\"\nhosts = [\"a.example\", \"*.b.example\"]\n";
    let tool = tool("mutates: ['external:mail']");
    let used = driver("network: { egress: [x.b.example, c.example] }");
    assert_eq!(
        denial(&ask(&policy(rule), &tool, &used)).missing[0].why,
        Why::NoService
    );
    let policy = policy(&format!("{rule}{service}"));
    assert_eq!(
        granted(&ask(&policy, &tool, &used)),
        ["all methods to x.b.example by https"]
    );
    assert_eq!(granted(&ask(&policy, &tool, &driver(""))), NONE);
}

#[test]
fn a_deny_wins_and_names_itself() {
    let rules = r#"
        [[deny]]
        capabilities = ["network:*.internal"]
        [[grant]]
        publisher = "acme"
        requires = ["network:*"]
    "#;
    let policy = Policy::from_toml_in(rules, "deny.toml", Path::new("/etc")).unwrap();
    let driver = driver(EVERYWHERE);
    let inside = tool("requires: { network: ['db.internal:8080', api.example] }");
    let decision = ask(&policy, &inside, &driver);
    assert_eq!(
        missing(&decision),
        [
            "`network:db.internal:8080`: denied by [[deny]] 1 (deny.toml:2): network:*.internal \
             for tools * of everybody"
        ]
    );
    let outside = tool("requires: { network: [api.example] }");
    assert_eq!(granted(&ask(&policy, &outside, &driver)).len(), 1);
    // A wider declaration includes the denied part.
    let wide = tool("requires: { network: ['*'] }");
    assert_eq!(missing(&ask(&policy, &wide, &driver)).len(), 1);
}

#[test]
fn a_deny_of_a_host_reaches_the_hosts_of_a_service() {
    let policy = policy(
        r#"
        [[deny]]
        capabilities = ["network:mail.internal"]
        [[service]]
        name = "mail"
        hosts = ["mail.internal"]
        [[grant]]
        publisher = "acme"
        mutates = ["external:mail"]
        "#,
    );
    let tool = tool("mutates: ['external:mail']");
    let decision = ask(&policy, &tool, &driver(EVERYWHERE));
    assert!(matches!(denial(&decision).missing[0].why, Why::DeniedBy(_)));
}

#[test]
fn a_deny_without_capabilities_blocks_the_whole_tool_and_an_empty_one_nothing() {
    let driver = driver("");
    let all = policy("[[deny]]\ntool = \"notes.*\"\n");
    let decision = ask(&all, &tool(""), &driver);
    assert_eq!(denial(&decision).denied_by.len(), 1);
    assert!(denial(&decision).missing.is_empty());
    let other = named_tool("text.stats", "");
    assert!(ask(&all, &other, &driver).grant().is_some());
    let nothing = policy("[[deny]]\ncapabilities = []\n");
    assert!(ask(&nothing, &tool(""), &driver).grant().is_some());
}

#[test]
fn a_denied_publisher_is_denied_as_publisher_of_the_driver_too() {
    let policy = policy("[[deny]]\npublisher = \"other\"\n");
    let (tool, driver) = (tool(""), driver(""));
    let decision = ask_of(&policy, (&tool, "acme"), (&driver, "other"));
    assert_eq!(denial(&decision).denied_by.len(), 1);
    assert!(
        ask_of(&policy, (&tool, "acme"), (&driver, "acme"))
            .grant()
            .is_some()
    );
}

#[test]
fn the_strictest_answer_to_violations_holds() {
    let end = "[[grant]]\npublisher = \"acme\"\non_violation = \"end\"\n";
    let record = "[defaults]\non_violation = \"record\"\n";
    let of = |text: &str| {
        let decision = ask(&policy(text), &tool(""), &driver(""));
        allowed(&decision).grant.on_violation()
    };
    assert_eq!(of(""), OnViolation::Record);
    assert_eq!(of(end), OnViolation::End);
    assert_eq!(of(&format!("{record}{end}")), OnViolation::End);
    assert_eq!(of("[defaults]\non_violation = \"end\"\n"), OnViolation::End);
}

#[test]
fn the_rules_that_gave_something_are_named_in_order() {
    let policy = policy(
        r#"
        [[grant]]
        publisher = "acme"
        tool = "notes.*"
        requires = ["database:b"]

        [[grant]]
        publisher = "acme"
        tool = "text.*"
        requires = ["database:a"]

        [[grant]]
        publisher = "acme"
        requires = ["database:a"]
        "#,
    );
    let tool = tool("requires: { database: [a, b] }");
    let decision = ask(&policy, &tool, &driver(""));
    let rules: Vec<String> = allowed(&decision)
        .rules
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        rules,
        [
            "[[grant]] 1 (line 2): tools notes.* of acme",
            "[[grant]] 3 (line 12): tools * of acme",
        ]
    );
}

/// Contract and driver have as many entries as they can. Each entry is wide enough to overlap with
/// all others.
#[test]
fn a_declaration_made_to_be_slow_is_decided_all_the_same() {
    let mut tool = tool("");
    let mut driver = driver("");
    let read = |text: String| text.parse().unwrap();
    let labels: Vec<String> = (0..40).map(|depth| "a.".repeat(depth)).collect();
    for labels in &labels {
        let wide = format!("network:*.{labels}example");
        tool.requires.capabilities.insert(read(wide));
    }
    let deepest = labels.last().unwrap();
    for number in 0..2000 {
        let host = format!("network:h{number}.{deepest}example");
        driver.egress.insert(read(host));
        let path = format!("workspace:/d{number}*/*x*y*z*");
        tool.mutates.insert(read(path));
    }
    let policy = policy(
        r#"
        [[workspace]]
        path = "/"
        directory = "/srv"
        [[grant]]
        publisher = "acme"
        requires = ["network:*"]
        mutates = ["workspace:/"]
        [[deny]]
        capabilities = ["network:*.internal", "workspace:/x*y/*a*b*"]
        "#,
    );
    let started = std::time::Instant::now();
    let decision = ask(&policy, &tool, &driver);
    assert_eq!(allowed(&decision).grant.network().len(), 2000);
    assert!(started.elapsed() < std::time::Duration::from_secs(20));
}
