//! Which drivers may serve a tool, their order, and the drivers for which lines are suggested.

use std::path::PathBuf;

use toolward_contract::NoScope;
use toolward_contract::driver::{Driver, DriverKind};
use toolward_contract::index::Index;
use toolward_contract::tool::Tool;
use toolward_policy::{
    Choices, Contract, Decision, Implementation, Policy, Rejection, UnusableDirectory, Why, routes,
};

use crate::support::{denial, driver, machine, named_tool, policy, suggested_for, tool};

/// The drivers that may serve the tool, best first, and the others with the reasons.
fn found(
    policy: &Policy,
    tool: &Tool,
    drivers: &[(&Driver, &str)],
) -> (Vec<String>, Vec<(String, Vec<Rejection>)>) {
    let tools = [Contract {
        tool,
        publisher: "acme",
    }];
    let drivers: Vec<Implementation<'_>> = drivers
        .iter()
        .map(|(driver, publisher)| Implementation { driver, publisher })
        .collect();
    let mut all = routes(&tools, &drivers, policy, &machine()).expect("different ids");
    let found = all.remove(0);
    let serving = found.routes.iter();
    let serving = serving.map(|route| route.implementation.driver.id.to_string());
    let rejected = found.rejected.into_iter();
    let rejected = rejected.map(|one| (one.implementation.driver.id.to_string(), one.reasons));
    (serving.collect(), rejected.collect())
}

/// Why the publisher's driver, which a rule binds to a tool of acme, may not serve the tool; empty
/// if it may.
fn against(resolve: &str, lines: &str, publisher: &str) -> Vec<&'static str> {
    let binds = format!(
        "[resolve]\n{resolve}\n[[grant]]\npublisher = \"acme\"\ndriver_publisher = {publisher:?}\n\
         driver = \"acme.notes\"\n"
    );
    let (driver, policy) = (driver(lines), policy(&binds));
    let (serving, rejected) = found(&policy, &tool(""), &[(&driver, publisher)]);
    assert_eq!(serving.is_empty(), !rejected.is_empty());
    let reasons = rejected.iter().flat_map(|(_, reasons)| reasons);
    reasons.map(Rejection::code).collect()
}

const EGRESS: &str = "network: { egress: [a.example] }\n";

#[test]
fn a_denied_tag_rejects_a_driver_whoever_made_it() {
    let denies = "denied_tags = [\"third-party-llm\"]\npublishers = [\"acme\"]";
    let tagged = "policy_tags: [pii-safe, third-party-llm]";
    for publisher in ["acme", "labs"] {
        assert_eq!(against(denies, tagged, publisher), ["tag-denied"]);
        assert!(against(denies, "policy_tags: [pii-safe]", publisher).is_empty());
        assert!(against(denies, "", publisher).is_empty());
        assert!(against("", tagged, publisher).is_empty());
    }
    // A denied tag counts even if other tags are allowed.
    let both = format!("{denies}\nallowed_tags = [\"pii-safe\"]");
    assert_eq!(against(&both, tagged, "acme"), ["tag-denied"]);
}

#[test]
fn an_allowed_tag_counts_only_where_its_publisher_is_believed() {
    let allows = "allowed_tags = [\"pii-safe\", \"hipaa\"]\n";
    let believes = format!("{allows}publishers = [\"acme\"]");
    let tagged = "policy_tags: [beta, hipaa]";
    assert!(against(&believes, tagged, "acme").is_empty());
    assert_eq!(against(&believes, tagged, "labs"), ["tag-not-believed"]);
    assert_eq!(against(allows, tagged, "acme"), ["tag-not-believed"]);
    for untagged in ["", "policy_tags: [beta]", "policy_tags: [HIPAA]"] {
        assert_eq!(against(&believes, untagged, "acme"), ["tag-missing"]);
    }
    let nothing = "allowed_tags = []\npublishers = []";
    assert!(against(nothing, tagged, "labs").is_empty());
}

#[test]
fn a_driver_that_reaches_the_network_claims_the_region_that_is_asked_for() {
    let europe = "region = \"eu\"\npublishers = [\"acme\"]";
    let claims = |region: &str| format!("{EGRESS}region: {region}");
    assert!(against(europe, &claims("eu"), "acme").is_empty());
    assert!(against(europe, &claims("[us, eu]"), "acme").is_empty());
    assert_eq!(
        against(europe, &claims("eu"), "labs"),
        ["region-not-believed"]
    );
    for region in ["us", "EU", "eu-west-1", "global", "[]"] {
        assert_eq!(against(europe, &claims(region), "acme"), ["region"]);
    }
    assert_eq!(against(europe, EGRESS, "acme"), ["region"]);
    // A driver that sends nothing runs in the region of this host.
    assert!(against(europe, "", "labs").is_empty());
    assert!(against(europe, "region: us", "labs").is_empty());
    for anywhere in ["", "region = []"] {
        assert!(against(anywhere, &claims("us"), "labs").is_empty());
    }
}

#[test]
fn a_region_is_one_of_several_and_a_driver_that_claims_none_is_global() {
    let several = "region = [\"EU\", \"global\"]\npublishers = [\"acme\"]";
    let claims = |region: &str| format!("{EGRESS}region: {region}");
    for region in ["EU", "global", "[us, EU]", "[us, global]", "[]"] {
        assert!(
            against(several, &claims(region), "acme").is_empty(),
            "{region}"
        );
    }
    assert_eq!(against(several, &claims("us"), "acme"), ["region"]);
    // `global` promises nothing.
    for unclaimed in [EGRESS.to_owned(), claims("global"), claims("[EU, global]")] {
        assert!(against(several, &unclaimed, "labs").is_empty());
        assert!(against("region = \"global\"", &unclaimed, "labs").is_empty());
    }
    assert_eq!(
        against(several, &claims("EU"), "labs"),
        ["region-not-believed"]
    );
    assert_eq!(
        against("region = \"global\"", &claims("us"), "acme"),
        ["region"]
    );
}

#[test]
fn only_the_region_is_in_the_way_where_nothing_else_is() {
    let only = |lines: &[&str], text: &str, publisher: &str| {
        let drivers: Vec<Driver> = (lines.iter().enumerate())
            .map(|(number, lines)| {
                let mut driver = driver(lines);
                let id = format!("d.{number}0");
                driver.id = toolward_contract::tool::ToolId::parse(&id).expect("an id");
                driver
            })
            .collect();
        let tool = tool("");
        let tools = [Contract {
            tool: &tool,
            publisher: "acme",
        }];
        let drivers: Vec<_> = drivers
            .iter()
            .map(|driver| Implementation { driver, publisher })
            .collect();
        let policy = policy(text);
        let found = routes(&tools, &drivers, &policy, &machine()).expect("different ids");
        found[0].lacks_only_region()
    };
    let europe = "[resolve]\nregion = \"eu\"\n";
    let elsewhere = "network: { egress: [a.example] }\nregion: us";
    assert!(only(&[elsewhere], europe, "acme"));
    assert!(only(&[elsewhere, EGRESS], europe, "acme"));
    let plan9 = format!("{elsewhere}\nrequires: {{ os: [plan9] }}");
    assert!(!only(&[elsewhere, &plan9], europe, "acme"));
    assert!(!only(&[elsewhere, ""], europe, "acme"));
    assert!(!only(&[], europe, "acme"));
    assert!(!only(&[elsewhere], "", "acme"));
    // Drivers that no rule binds are not candidates.
    assert!(!only(&[elsewhere], europe, "labs"));
}

#[test]
fn a_bound_driver_comes_after_the_contracts_own_whatever_it_costs() {
    let (own, bound) = (priced("d.own", Some(9.0)), priced("a.bound", Some(0.0)));
    let binds = policy(
        "[[grant]]\npublisher = \"acme\"\ndriver_publisher = \"labs\"\ndriver = \"a.bound\"\n",
    );
    let both = [(&own, "acme"), (&bound, "labs")];
    assert_eq!(found(&binds, &tool(""), &both).0, ["d.own", "a.bound"]);
    let chosen = tool("default_implementation: a.bound");
    assert_eq!(found(&binds, &chosen, &both).0, ["a.bound", "d.own"]);
}

#[test]
fn layers_deny_what_either_denies_and_the_later_one_asks() {
    let below = "[resolve]\nregion = \"eu\"\nallowed_tags = [\"a\"]\ndenied_tags = [\"x\"]\n\
                 publishers = [\"acme\"]\n";
    let above = "[resolve]\nregion = \"us\"\ndenied_tags = [\"y\"]\nallowed_tags = []\n";
    let both = policy(below).layer(policy(above)).expect("two layers");
    let resolve = &both.tables().resolve;
    assert_eq!(resolve.regions(), ["us"]);
    assert!(resolve.allowed_tags().is_empty());
    assert_eq!(resolve.denied_tags, ["x", "y"]);
    assert_eq!(resolve.publishers().len(), 1);
    let same = policy(below).layer(Policy::empty()).expect("two layers");
    assert_eq!(same, policy(below));
}

/// A driver with this id and cost.
fn priced(id: &str, cost: Option<f64>) -> Driver {
    let mut driver = driver("");
    driver.id = toolward_contract::tool::ToolId::parse(id).expect("an id");
    for entry in &mut driver.implements {
        entry.cost_override.cost_units_per_call = cost;
    }
    driver
}

#[test]
fn a_driver_that_states_no_cost_comes_after_all_that_do() {
    let (free, cheap) = (priced("d.free", Some(0.0)), priced("c.cheap", Some(1.0)));
    let (dear, silent) = (priced("b.dear", Some(900.0)), priced("a.silent", None));
    let all = [
        (&silent, "acme"),
        (&dear, "acme"),
        (&cheap, "acme"),
        (&free, "acme"),
    ];
    let order = found(&Policy::empty(), &tool(""), &all).0;
    assert_eq!(order, ["d.free", "c.cheap", "b.dear", "a.silent"]);
    // The contract's own default comes before all of these.
    let order = found(
        &Policy::empty(),
        &tool("default_implementation: a.silent"),
        &all,
    )
    .0;
    assert_eq!(order, ["a.silent", "d.free", "c.cheap", "b.dear"]);
}

#[test]
fn every_reason_against_a_driver_is_named() {
    let elsewhere = driver("requires: { os: [darwin], arch: [arm64], min_memory_mb: 65 }");
    let (serving, rejected) = found(&Policy::empty(), &tool(""), &[(&elsewhere, "other")]);
    assert!(serving.is_empty());
    let reasons = &rejected[0].1;
    assert_eq!(reasons[0], Rejection::NotBound);
    assert!(matches!(reasons[1], Rejection::Os { .. }), "{reasons:?}");
    assert!(matches!(reasons[2], Rejection::Arch { .. }), "{reasons:?}");
    assert!(
        matches!(reasons[3], Rejection::Memory { needed_mb: 65, .. }),
        "{reasons:?}"
    );
    assert_eq!(reasons.len(), 4);
    let here = driver("requires: { os: [linux], arch: [x64, arm64], min_memory_mb: 64 }");
    assert_eq!(
        found(&Policy::empty(), &tool(""), &[(&here, "acme")]).0,
        ["acme.notes"]
    );
    let forbids = tool("driver_constraints: { forbid: [component] }");
    let rejected = found(&Policy::empty(), &forbids, &[(&here, "acme")]).1;
    assert!(
        matches!(rejected[0].1[..], [Rejection::KindForbidden { .. }]),
        "{rejected:?}"
    );
    // A kind that no host runs may be forbidden as well.
    let mut mcp = here.clone();
    mcp.kind = DriverKind::Mcp;
    let forbids = tool("driver_constraints: { forbid: [mcp] }");
    let rejected = found(&Policy::empty(), &forbids, &[(&mcp, "acme")]).1;
    let codes: Vec<&str> = rejected[0].1.iter().map(Rejection::code).collect();
    assert_eq!(codes, ["kind-not-run", "kind-forbidden"]);
    // The rejection does not list a driver that does not name the tool at all.
    let unnamed = named_tool("other.tool", "");
    assert!(
        found(&Policy::empty(), &unnamed, &[(&here, "acme")])
            .1
            .is_empty()
    );
}

#[test]
fn a_rule_binds_another_publishers_driver_only_by_its_name_and_its_publisher() {
    let driver = driver("");
    let binds = |lines: &str| {
        let rule = policy(&format!("[[grant]]\npublisher = \"acme\"\n{lines}"));
        !found(&rule, &tool(""), &[(&driver, "other")]).0.is_empty()
    };
    let named = "driver = \"acme.notes\"\n";
    let by = "driver_publisher = \"other\"\n";
    assert!(binds(&format!("{named}{by}")));
    assert!(binds(&format!("{named}{by}tool = \"notes.*\"")));
    for lines in [
        "",
        named,
        by,
        "driver = \"acme.notes\"\ndriver_publisher = \"third\"",
        "driver = \"acme.other\"\ndriver_publisher = \"other\"",
        "driver = \"acme.notes\"\ndriver_publisher = \"other\"\ntool = \"text.*\"",
    ] {
        assert!(!binds(lines), "{lines}");
    }
}

#[test]
fn lines_bind_another_publishers_driver_only_where_it_is_named() {
    let driver = driver("requires: { database: [loot] }");
    let tools = [tool("requires: { database: [own] }")];
    let suggested =
        |policy: &Policy, named| suggested_for(policy, &tools, (&driver, "other"), named);
    assert_eq!(suggested(&Policy::empty(), None), "");
    assert_eq!(suggested(&Policy::empty(), Some("acme.third")), "");
    let lines = suggested(&Policy::empty(), Some("acme.notes"));
    assert_eq!(
        lines,
        "[[grant]]\npublisher = \"acme\"\ntool = \"notes.append@1\"\ndriver_publisher = \"other\"\n\
         driver = \"acme.notes\"\nrequires = [\"database:loot\", \"database:own\"]\n"
    );
    let bound = policy(&lines);
    let (serving, _) = found(&bound, &tools[0], &[(&driver, "other")]);
    assert_eq!(serving, ["acme.notes"]);
    assert_eq!(suggested(&bound, Some("acme.notes")), "");
    // A driver that is bound already but lacks something is not changed either.
    let less = policy(&lines.replace("\"database:loot\", ", ""));
    assert_eq!(suggested(&less, None), "");
    assert!(suggested(&less, Some("acme.notes")).contains("database:loot"));
}

#[test]
fn a_directory_that_can_not_be_used_blocks_the_tool_and_no_line_helps() {
    let policy = policy(
        "[[workspace]]\npath = \"/notes\"\ndirectory = \"/srv/notes\"\n\
         [[grant]]\npublisher = \"acme\"\nmutates = [\"workspace:/notes\"]\n",
    );
    let directory = UnusableDirectory {
        directory: PathBuf::from("/srv/notes"),
        code: "workspace-missing",
        problem: "no such directory".to_owned(),
        hint: "create the directory".to_owned(),
    };
    let machine = machine().without(directory);
    let (tool, driver) = (tool("mutates: ['workspace:/notes/a']"), driver(""));
    let tools = [Contract {
        tool: &tool,
        publisher: "acme",
    }];
    let drivers = [Implementation {
        driver: &driver,
        publisher: "acme",
    }];
    let found = routes(&tools, &drivers, &policy, &machine).expect("different ids");
    let decision = &found[0].routes[0].decision;
    assert!(matches!(denial(decision).missing[0].why, Why::Directory(_)));
    let explained = found[0].routes[0].explain(&policy, &machine).to_string();
    assert!(
        explained.contains("/srv/notes: no such directory; create the directory"),
        "{explained}"
    );
    let lines =
        toolward_policy::suggest(&found, None, false, &policy, &machine, &Choices::default()).lines;
    assert!(!lines.contains("[["), "{lines}");
    let all = machine.with_all_directories();
    let found = routes(&tools, &drivers, &policy, &all).expect("different ids");
    assert!(matches!(found[0].routes[0].decision, Decision::Ask(..)));
}

#[test]
fn one_id_twice_is_an_error_with_both_places() {
    let (tool, driver) = (tool(""), driver(""));
    let contract = Contract {
        tool: &tool,
        publisher: "acme",
    };
    let implementation = Implementation {
        driver: &driver,
        publisher: "acme",
    };
    let twice = routes(&[contract, contract], &[], &Policy::empty(), &machine()).unwrap_err();
    assert_eq!((twice.kind, twice.first, twice.second), ("tool", 0, 1));
    let drivers = [implementation, implementation];
    let twice = routes(&[contract], &drivers, &Policy::empty(), &machine()).unwrap_err();
    assert_eq!((twice.kind, twice.first, twice.second), ("driver", 0, 1));
}

/// The ids of the drivers, whether each takes over, and its tie.
fn terms(text: &str, drivers: &[(&Driver, &str)]) -> Vec<(String, bool, usize)> {
    let tool = tool("");
    let tools = [Contract {
        tool: &tool,
        publisher: "acme",
    }];
    let drivers: Vec<Implementation<'_>> = drivers
        .iter()
        .map(|(driver, publisher)| Implementation { driver, publisher })
        .collect();
    let policy = policy(text);
    let found = routes(&tools, &drivers, &policy, &machine()).expect("different ids");
    let routes = found.first().expect("one tool").routes.iter();
    let terms = routes.map(|one| {
        (
            one.implementation.driver.id.to_string(),
            one.takes_over,
            one.tie,
        )
    });
    terms.collect()
}

fn binds(publisher: &str, driver: &str, more: &str) -> String {
    format!(
        "[[grant]]\npublisher = \"acme\"\ndriver_publisher = {publisher:?}\ndriver = {driver:?}\n{more}\n"
    )
}

#[test]
fn calls_fall_to_a_driver_where_resolve_says_so_and_the_rule_of_a_bound_one_too() {
    let (own, bound) = (priced("d.own", None), priced("a.bound", None));
    let both = [(&own, "acme"), (&bound, "labs")];
    let falls = |text: &str| -> Vec<bool> { terms(text, &both).iter().map(|one| one.1).collect() };
    let fallback = "[resolve]\nfallback = true\n";
    let (plain, says) = (
        binds("labs", "a.bound", ""),
        binds("labs", "a.bound", "fallback = true"),
    );
    assert_eq!(falls(&plain), [false, false]);
    assert_eq!(falls(&says), [false, false]);
    assert_eq!(falls(&format!("{fallback}{plain}")), [true, false]);
    assert_eq!(falls(&format!("{fallback}{says}")), [true, true]);
    // One of the rules that bind it is enough.
    assert_eq!(falls(&format!("{fallback}{plain}{says}")), [true, true]);
    let other = binds("labs", "a.other", "fallback = true");
    assert_eq!(falls(&format!("{fallback}{plain}{other}")), [true, false]);
}

#[test]
fn a_preferred_driver_stands_before_the_contracts_own_and_after_its_choice() {
    let (own, bound) = (priced("d.own", Some(0.0)), priced("z.bound", Some(9.0)));
    let both = [(&own, "acme"), (&bound, "labs")];
    let preferred = policy(&binds("labs", "z.bound", "prefer = true"));
    assert_eq!(found(&preferred, &tool(""), &both).0, ["z.bound", "d.own"]);
    let chosen = tool("default_implementation: d.own");
    assert_eq!(found(&preferred, &chosen, &both).0, ["d.own", "z.bound"]);
}

#[test]
fn drivers_tie_that_differ_in_their_ids_alone_and_are_one_publishers() {
    let ids = ["a.one", "b.two", "c.three", "d.four"];
    let drivers: Vec<Driver> = ids.iter().map(|id| priced(id, None)).collect();
    let ties = |publishers: [&str; 4], first: Option<f64>| -> Vec<usize> {
        let first = priced("a.one", first);
        let all: Vec<(&Driver, &str)> = (drivers.iter().zip(publishers))
            .map(|(driver, publisher)| match driver.id.as_str() {
                "a.one" => (&first, publisher),
                _ => (driver, publisher),
            })
            .collect();
        let bound: String = ids
            .iter()
            .zip(publishers)
            .filter(|(_, publisher)| *publisher != "acme")
            .map(|(id, publisher)| binds(publisher, id, ""))
            .collect();
        terms(&bound, &all).iter().map(|one| one.2).collect()
    };
    assert_eq!(ties(["acme"; 4], None), [0, 0, 0, 0]);
    assert_eq!(ties(["acme"; 4], Some(1.0)), [0, 1, 1, 1]);
    assert_eq!(ties(["labs", "labs", "other", "other"], None), [0, 0, 1, 1]);
    assert_eq!(ties(["labs", "other", "labs", "other"], None), [0, 1, 2, 3]);
    assert_eq!(ties(["acme", "acme", "labs", "labs"], None), [0, 0, 1, 1]);
}

#[test]
fn prefer_and_fallback_go_with_a_rule_that_binds_a_driver() {
    for key in ["prefer", "fallback"] {
        for lines in ["", "driver = \"a.b\"", "driver_publisher = \"labs\""] {
            let text = format!("[[grant]]\npublisher = \"acme\"\n{lines}\n{key} = true\n");
            let refused = Policy::from_toml(&text).unwrap_err();
            assert_eq!(refused.code(), "policy-wrong-value", "{text}");
            assert!(refused.message().contains(key), "{refused}");
        }
        assert!(Policy::from_toml(&binds("labs", "a.b", &format!("{key} = true"))).is_ok());
    }
}

#[test]
fn a_rule_that_lets_drivers_repeat_a_change_is_about_one_tool() {
    let rule = |lines: &str, fallback: &str| {
        format!("[[grant]]\npublisher = \"acme\"\n{lines}fallback = {fallback}\n")
    };
    let one = rule("tool = \"a.b\"\n", "\"repeat\"");
    assert!(Policy::from_toml(&one).is_ok());
    for (lines, code) in [
        ("", "policy-wrong-value"),
        ("tool = \"a.*\"\n", "policy-wrong-value"),
        ("tool = \"a.b\"\ndriver = \"c\"\n", "policy-tool"),
    ] {
        let refused = Policy::from_toml(&rule(lines, "\"repeat\"")).unwrap_err();
        assert_eq!(refused.code(), code, "{lines}");
    }
    assert!(Policy::from_toml(&rule("tool = \"a.b\"\n", "\"repeats\"")).is_err());
    let plain = "[[grant]]\npublisher = \"acme\"\ntool = \"a.b\"\n";
    assert!(policy(&one).narrows(&policy(plain)).is_err());
    assert!(policy(plain).narrows(&policy(&one)).is_ok());
}

#[test]
fn a_policy_that_lets_calls_fall_or_prefers_a_driver_is_no_narrower() {
    let earlier = "[resolve]\ndenied_tags = [\"x\"]\n";
    let later = format!("{earlier}fallback = true\n");
    assert!(policy(&later).narrows(&policy(earlier)).is_err());
    assert!(policy(earlier).narrows(&policy(&later)).is_ok());
    let plain = binds("labs", "a.b", "");
    for key in ["prefer", "fallback"] {
        let says = binds("labs", "a.b", &format!("{key} = true"));
        assert!(policy(&says).narrows(&policy(&plain)).is_err(), "{key}");
        assert!(policy(&plain).narrows(&policy(&says)).is_ok(), "{key}");
    }
    let both =
        policy("[resolve]\nfallback = true\n").layer(policy("[resolve]\nfallback = false\n"));
    assert!(!both.expect("two layers").tables().resolve.fallback());
    let both = policy("[resolve]\nfallback = true\n").layer(Policy::empty());
    assert!(both.expect("two layers").tables().resolve.fallback());
}

#[test]
fn a_denied_transport_is_rejected_with_its_reason_and_takes_no_id() {
    let text = r#"{"version": 1, "tools": [{
        "id": "notes.append", "description": "Runs.", "transport": {"kind": "exec", "command": "/bin/sh"},
        "input_schema": {"type": "object"}, "result_schema": {}
    }]}"#;
    let index = Index::parse("tools.json", text.as_bytes(), &NoScope);
    let index = index.value.expect("an index");
    let contract = index.contracts().remove(0);
    let entry = &index.tools[0];
    let why = entry.driver(&contract, "tools.json").expect("a transport");
    let why = why.expect_err("denied");
    let denied = entry.denied(&contract, &why).expect("a driver");
    // The same holds next to a driver with the same id.
    let same = {
        let mut same = driver("");
        same.id = denied.id.clone();
        same
    };
    let (serving, rejected) = found(
        &Policy::empty(),
        &contract,
        &[(&denied, "acme"), (&same, "acme")],
    );
    assert_eq!(serving, ["notes.append"]);
    let [Rejection::TransportDenied { rule, message }] = &rejected[0].1[..] else {
        panic!("{rejected:?}");
    };
    assert_eq!(rule, "transport-command-refused");
    assert_eq!(message, &why.message);
}

#[test]
fn a_driver_without_a_region_is_global() {
    let plain = driver(EGRESS);
    let policy = policy("[resolve]\nregion = \"eu\"\n");
    let rejected = found(&policy, &tool(""), &[(&plain, "acme")]).1;
    let text = rejected[0].1[0].to_string();
    assert!(text.ends_with("its own is: global, by default"), "{text}");
}
