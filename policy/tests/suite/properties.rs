//! Properties of every policy, contract and driver.

mod generators;

use std::collections::{BTreeSet, HashSet};

use proptest::prelude::*;
use proptest::sample::select;
use toolward_contract::capability::{Capability, CapabilitySet, Class};
use toolward_contract::driver::Driver;
use toolward_contract::tool::Tool;
use toolward_policy::{
    ApprovalClass, Contract, Decision, DecisionContext, Effects, Grant, Implementation, Policy,
    Publisher, Rule, ToolPattern, Why, decide, explain,
};

use crate::support::{policy, suggested_for, words};

use self::generators::{
    CHANGEABLE, HOPELESS, READABLE, TABLES, UNKNOWN, built, contracts, denies, drivers, policies,
    rules, some,
};

fn of(policy: &Policy, tool: &Tool, driver: &Driver) -> Decision {
    reaching(policy, tool, driver, Effects::default())
}

fn reaching(policy: &Policy, tool: &Tool, driver: &Driver, reachable: Effects) -> Decision {
    let publisher = "acme";
    decide(
        &Contract { tool, publisher },
        &Implementation { driver, publisher },
        policy,
        &DecisionContext {
            reachable,
            machine: None,
        },
    )
}

/// 0 if blocked, 1 if a person is asked, 2 if it runs.
fn freedom(decision: &Decision) -> u8 {
    match decision {
        Decision::Deny(_) => 0,
        Decision::Ask(..) => 1,
        Decision::Allow(_) => 2,
    }
}

fn network(texts: impl IntoIterator<Item = String>) -> CapabilitySet {
    let read = |text: String| Capability::of(Class::Network, &text).expect("a host");
    texts.into_iter().map(read).collect()
}

/// Whether everything that is granted is declared, used by the driver, and granted by some rule of
/// the policy. Written independently of the decision's code.
fn is_within(policy: &Policy, tool: &Tool, driver: &Driver, decision: &Decision) {
    let Some(grant) = decision.grant() else {
        return;
    };
    let (reads, writes) = (
        tool.declaration().union(&driver.requires.capabilities),
        tool.mutates.clone(),
    );
    let mut given_reads = CapabilitySet::new();
    let mut given_writes = CapabilitySet::new();
    for rule in policy
        .grants()
        .filter(|rule| rule.publisher.as_str() == "acme")
    {
        given_reads = given_reads.union(&rule.requires).union(&rule.mutates);
        given_writes = given_writes.union(&rule.mutates);
    }
    let services = |declared: &CapabilitySet| {
        let used = policy.tables().services.iter().filter(|service| {
            let name: Capability = format!("external:{}", service.name)
                .parse()
                .expect("a name");
            declared.covers_one(&name)
        });
        network(used.flat_map(|service| service.hosts.iter().map(ToString::to_string)))
    };
    let check = |capability: &Capability, write: bool| {
        let (declared, given) = match write {
            true => (&writes, &given_writes),
            false => (&reads, &given_reads),
        };
        let by_service =
            services(declared).covers_one(capability) && services(given).covers_one(capability);
        assert!(
            by_service || (declared.covers_one(capability) && given.covers_one(capability)),
            "{capability} {write}"
        );
    };
    for host in grant.network() {
        let capability = Capability::of(Class::Network, &host.host.to_string()).expect("a host");
        check(&capability, host.unsafe_methods);
        assert!(driver.egress.covers_one(&capability), "{capability}");
    }
    for workspace in grant.workspaces() {
        let text = format!("workspace:{}", workspace.path);
        check(&text.parse().expect("a path"), workspace.write);
    }
    for bucket in grant.buckets() {
        let text = format!("database:{}", bucket.name);
        check(&text.parse().expect("a bucket"), bucket.write);
    }
    for secret in grant.secrets() {
        let text = format!("secret:{}", secret.slug);
        let name: Capability = text.parse().expect("a secret");
        if secret.store {
            check(&name, true);
        }
        if secret.binding.is_some() {
            let used = tool
                .requires
                .capabilities
                .union(&driver.requires.capabilities);
            assert!(used.covers_one(&name), "{name} is not to be used");
            let mut rules = policy.grants();
            assert!(rules.any(|rule| rule.requires.covers_one(&name)), "{name}");
        }
        assert!(!secret.reveal, "no rule reveals one");
    }
    for class in Class::KNOWN {
        for scope in grant.scopes(class) {
            check(
                &format!("{class}:{scope}")
                    .parse()
                    .expect("a scope of its class"),
                false,
            );
        }
    }
}

/// Whether nothing is required, once the network is narrowed to the egress.
fn declares_nothing(policy: &Policy, tool: &Tool, driver: &Driver) -> bool {
    let publisher = "acme";
    let found = explain(
        &Contract { tool, publisher },
        &Implementation { driver, publisher },
        policy,
        &DecisionContext::default(),
    );
    found.capabilities.iter().all(|row| row.asked.is_none())
}

/// Whether a request is allowed, by the rules with which outgoing HTTP reads a grant.
fn passes(grant: &Grant, host: &str, port: u16, https: bool, change: bool) -> bool {
    let default_port = port == if https { 443 } else { 80 };
    grant.network().iter().any(|granted| {
        granted.host.matches(host, port, default_port)
            && (https || granted.terms.plain_http)
            && (!change || granted.unsafe_methods)
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_grant_holds_only_what_is_declared_and_given(
        policy in policies(), tool in contracts(), driver in drivers(),
    ) {
        is_within(&policy, &tool, &driver, &of(&policy, &tool, &driver));
    }

    #[test]
    fn adding_a_deny_never_allows_more(
        policy in policies(), deny in denies(), tool in contracts(), driver in drivers(),
    ) {
        let before = of(&policy, &tool, &driver);
        let denied = policy.layer(built(&[], &[deny])).unwrap();
        let after = of(&denied, &tool, &driver);
        prop_assert!(freedom(&after) <= freedom(&before));
        if after.grant().is_some() {
            prop_assert_eq!(after, before);
        }
    }

    #[test]
    fn a_policy_that_narrows_another_never_gives_more(
        before in prop::collection::vec(rules(), 0..5),
        // Which rules stay, which of their capabilities stay, and what else changes.
        edits in prop::collection::vec((any::<bool>(), some(READABLE), 0_u8..6), 5),
        denies in prop::collection::vec(denies(), 0..2),
        tool in contracts(), driver in drivers(),
    ) {
        let kept = before.iter().zip(&edits).filter(|(_, (kept, ..))| *kept);
        let after: Vec<Rule> = kept.map(|(rule, (_, less, edit))| {
            let mut rule = rule.clone();
            match edit {
                0 => rule.requires = rule.requires.intersection(less),
                1 => rule.mutates = rule.mutates.intersection(less),
                2 => rule.host_terms.plain_http = !rule.host_terms.plain_http,
                3 => rule.preapproved = !rule.preapproved,
                4 => rule.tool = ToolPattern::parse("notes.append@1").unwrap(),
                _ => {}
            }
            rule
        }).collect();
        let before = policy(TABLES).layer(built(&before, &[])).unwrap();
        let after = policy(TABLES).layer(built(&after, &denies)).unwrap();
        if after.narrows(&before).is_ok() {
            let (before, after) = (of(&before, &tool, &driver), of(&after, &tool, &driver));
            prop_assert!(freedom(&after) <= freedom(&before));
            if let (Some(before), Some(after)) = (before.grant(), after.grant()) {
                for host in ["a.example", "b.example", "x.a.example", "elsewhere.test"] {
                    for port in [80, 443, 8443] {
                        for (https, change) in
                            [(true, false), (true, true), (false, false), (false, true)]
                        {
                            let now = passes(after, host, port, https, change);
                            prop_assert!(!now || passes(before, host, port, https, change));
                        }
                    }
                }
                let before: HashSet<String> = words(before).into_iter().collect();
                let others = words(after).into_iter().filter(|words| !words.contains(" to "));
                for words in others {
                    prop_assert!(before.contains(&words), "{}", words);
                }
            }
        }
    }

    #[test]
    fn adding_a_declaration_never_grants_by_itself(
        policy in policies(), tool in contracts(), driver in drivers(),
        more in select(CHANGEABLE), write in any::<bool>(),
    ) {
        let more: Capability = more.parse().unwrap();
        let mut wider = tool.clone();
        if write {
            wider.mutates.insert(more.clone());
        } else {
            wider.requires.capabilities.insert(more.clone());
        }
        let (before, after) = (of(&policy, &tool, &driver), of(&policy, &wider, &driver));
        is_within(&policy, &wider, &driver, &after);
        // The reasons that blocked the tool remain, unless a capability moved from the driver to
        // the contract.
        if driver.requires.capabilities.is_empty() && before.grant().is_none() {
            prop_assert!(after.grant().is_none());
        }
        // If no rule grants it, it blocks the tool.
        let given = policy.grants().any(|rule| {
            rule.mutates.covers_one(&more) || rule.requires.covers_one(&more)
        });
        if !given && *more.class() != Class::Network {
            prop_assert!(after.grant().is_none());
        }
    }

    #[test]
    fn the_empty_policy_grants_nothing_and_blocks_whatever_is_declared(
        tool in contracts(), driver in drivers(),
    ) {
        let decision = of(&Policy::empty(), &tool, &driver);
        let declared = tool.declaration().union(&driver.requires.capabilities);
        let offline = driver.egress.is_empty();
        let uses = declared
            .iter()
            .any(|capability| !offline || *capability.class() != Class::Network);
        let network_only = declared.iter().all(|one| *one.class() == Class::Network);
        match decision.grant() {
            Some(grant) => {
                prop_assert!(words(grant).is_empty());
                prop_assert!(network_only);
            }
            None => prop_assert!(uses),
        }
    }

    #[test]
    fn adding_a_grant_never_blocks_and_takes_nothing_away(
        policy in policies(), mut rule in rules(), tool in contracts(), driver in drivers(),
    ) {
        rule.approval = ApprovalClass::Auto;
        let before = of(&policy, &tool, &driver);
        let after = of(&policy.layer(built(&[rule], &[])).unwrap(), &tool, &driver);
        prop_assert!(freedom(&after) >= freedom(&before));
        if let (Some(before), Some(after)) = (before.grant(), after.grant()) {
            prop_assert_eq!(before.workspaces(), after.workspaces());
            prop_assert_eq!(before.buckets(), after.buckets());
            prop_assert_eq!(before.secrets(), after.secrets());
            prop_assert_eq!(before.tools(), after.tools());
            prop_assert_eq!(before.scopes(&Class::User), after.scopes(&Class::User));
        }
    }

    #[test]
    fn the_order_of_rules_does_not_matter(
        rules in prop::collection::vec(rules(), 0..5), tool in contracts(), driver in drivers(),
    ) {
        let backwards: Vec<Rule> = rules.iter().rev().cloned().collect();
        let first = of(&built(&rules, &[]), &tool, &driver);
        let second = of(&built(&backwards, &[]), &tool, &driver);
        prop_assert_eq!(freedom(&first), freedom(&second));
        let sorted = |decision: &Decision| {
            let mut words = decision.grant().map(words).unwrap_or_default();
            words.sort();
            words
        };
        prop_assert_eq!(sorted(&first), sorted(&second));
    }

    #[test]
    fn nothing_stands_for_a_person_who_always_asks_or_where_nothing_can_be_undone(
        policy in policies(), tool in contracts(), driver in drivers(),
        writes in any::<bool>(), risk in 0_u8..=3, always in any::<bool>(),
    ) {
        let mut reachable = Effects { writes, risk, ..Effects::default() };
        if always {
            reachable.approval = ApprovalClass::Always;
        }
        if let Decision::Allow(allowed) = reaching(&policy, &tool, &driver, reachable) {
            prop_assert!(allowed.approval < ApprovalClass::Always);
            prop_assert!(allowed.effects.risk < 3);
            let quiet = !allowed.effects.writes && allowed.effects.risk < 2;
            prop_assert_eq!(quiet, allowed.preapproved.is_empty());
        }
    }

    #[test]
    fn a_yes_in_writing_that_gives_nothing_asked_for_silences_no_question(
        others in prop::collection::vec(rules(), 0..=2), mut tool in contracts(),
        driver in drivers(), mut added in rules(), only_reads: bool,
    ) {
        if only_reads {
            tool.mutates = CapabilitySet::new();
            tool.risk_level = 2;
        }
        // Rules that grant everything that can be granted, without `preapproved`.
        let mut given = Rule::new(Publisher::parse("acme").unwrap());
        let givable = |set: &CapabilitySet| -> CapabilitySet {
            let known = |one: &&Capability| {
                let text = one.to_string();
                ![HOPELESS, UNKNOWN].concat().contains(&text.as_str())
            };
            set.iter().filter(known).cloned().collect()
        };
        given.requires = givable(&tool.requires.capabilities);
        given.mutates = givable(&tool.mutates);
        given.accepts = ["gpu", "storage"].map(str::to_owned).into();
        let mut to_driver = Rule::new(Publisher::parse("acme").unwrap());
        to_driver.driver = Some("acme.notes".to_owned());
        to_driver.requires = givable(&driver.requires.capabilities);
        let rules: Vec<Rule> = [given, to_driver].into_iter().chain(others).collect();
        let policy = policy(TABLES).layer(built(&rules, &[])).unwrap();
        added.preapproved = true;
        added.publisher = Publisher::parse("acme").unwrap();
        added.driver_publisher = Publisher::parse("acme").unwrap();
        let asked = tool.declaration().union(&driver.requires.capabilities);
        let apart = |set: &CapabilitySet| -> CapabilitySet {
            let apart = set.iter().filter(|own| {
                !asked.iter().any(|one| own.covers(one) || own.intersect(one).is_some())
            });
            apart.cloned().collect()
        };
        added.requires = apart(&added.requires);
        added.mutates = apart(&added.mutates);
        added.accepts.clear();
        if declares_nothing(&policy, &tool, &driver) {
            added.tool = ToolPattern::all();
        }
        let before = of(&policy, &tool, &driver);
        let more = built(&[added], &[]);
        let after = of(&policy.layer(more).unwrap(), &tool, &driver);
        if matches!(before, Decision::Ask(..)) {
            prop_assert!(!matches!(after, Decision::Allow(_)), "{after:?}");
        }
    }

    #[test]
    fn what_is_suggested_allows_all_that_can_be_granted(
        policy in policies(), first in contracts(), second in contracts(), driver in drivers(),
    ) {
        let publisher = "acme";
        let mut second = second;
        second.id = toolward_contract::tool::ToolId::parse("text.other").unwrap();
        let tools = [first, second];
        let lines = suggested_for(&policy, &tools, (&driver, publisher), None);
        let added = policy.clone().layer(Policy::from_toml(&lines).unwrap()).unwrap();
        for tool in &tools {
            is_within(&added, tool, &driver, &of(&added, tool, &driver));
            if let Decision::Deny(denial) = of(&added, tool, &driver) {
                for missing in &denial.missing {
                    let hopeless = matches!(
                        missing.why,
                        // Suggested values wait for the operator.
                        Why::DeniedBy(_) | Why::NeverGranted | Why::NotChosen
                    );
                    prop_assert!(hopeless, "{}\n{}", missing, lines);
                }
            }
            // The lines of one tool have the same property.
            if let Decision::Deny(denial) = of(&policy, tool, &driver) {
                let one = Policy::from_toml(&denial.lines_to_add()).unwrap();
                let alone = of(&policy.clone().layer(one).unwrap(), tool, &driver);
                let together = of(&added, tool, &driver);
                prop_assert_eq!(alone.grant().is_some(), together.grant().is_some());
            }
        }
        let again = suggested_for(&added, &tools, (&driver, publisher), None);
        prop_assert!(!again.lines().any(|line| line.starts_with("[[")), "{}", again);
    }

    #[test]
    fn an_explanation_says_what_is_decided(
        policy in policies(), tool in contracts(), driver in drivers(),
    ) {
        let publisher = "acme";
        let decision = of(&policy, &tool, &driver);
        let found = explain(
            &Contract { tool: &tool, publisher },
            &Implementation { driver: &driver, publisher },
            &policy,
            &DecisionContext::default(),
        );
        prop_assert_eq!(found.outcome as u8, 2 - freedom(&decision));
        // Two declarations may require the same part, which is missing only once.
        let missing = found.capabilities.iter().filter(|row| row.missing.is_some());
        let missing: HashSet<_> = missing
            .map(|row| (&row.asked, row.mutates, row.declared_by))
            .collect();
        let missing = missing.len();
        match &decision {
            Decision::Deny(denial) => {
                prop_assert_eq!(missing, denial.missing.len());
                prop_assert_eq!(found.lines_to_add.clone(), denial.lines_to_add());
            }
            Decision::Allow(allowed) | Decision::Ask(allowed, _) => {
                prop_assert_eq!(missing, 0);
                let rows = found.capabilities.iter();
                let shown: BTreeSet<&String> = rows.flat_map(|row| &row.granted).collect();
                for words in words(&allowed.grant) {
                    // The uses of one secret are shown separately, but granted together.
                    let known = shown.contains(&words)
                        || words.starts_with("secret ")
                        || words.starts_with("tool ")
                        || words.starts_with("user ");
                    prop_assert!(known, "{}", words);
                }
            }
        }
        prop_assert!(!found.to_string().is_empty());
    }

    #[test]
    fn any_text_is_read_or_refused_with_a_place(text in "[ -~\n\\[\\]=\"]{0,200}") {
        if let Err(error) = Policy::from_toml(&text) {
            prop_assert!(error.line().is_some(), "{}", error);
        }
    }

    #[test]
    fn a_file_with_a_byte_changed_is_read_or_refused(
        at in 0..TABLES.len(), byte in 0x20_u8..0x7f,
    ) {
        let mut text = TABLES.as_bytes().to_vec();
        text[at] = byte;
        let text = String::from_utf8(text).unwrap();
        if let Err(error) = Policy::from_toml(&text) {
            prop_assert!(error.line().is_some(), "{}", error);
        }
    }
}
