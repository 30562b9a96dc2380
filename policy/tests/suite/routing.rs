//! Which drivers may serve a tool, in which order, and for which of them lines are suggested.

use std::path::PathBuf;

use toolward_contract::driver::Driver;
use toolward_contract::tool::Tool;
use toolward_policy::{
    Contract, Decision, Implementation, Policy, Rejection, UnusableDirectory, Why, routes,
};

use crate::support::{denial, driver, machine, named_tool, policy, suggested_for, tool};

/// The drivers that may serve the tool, best first; and the others, with the reasons.
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
    // The contract's own choice goes before all of that.
    let order = found(
        &Policy::empty(),
        &tool("default_implementation: a.silent"),
        &all,
    )
    .0;
    assert_eq!(order, ["a.silent", "d.free", "c.cheap", "b.dear"]);
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
    // Of no interest to a driver that does not name the tool at all.
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
    // One that is bound already, and lacks something, is left alone as well.
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
    let lines = toolward_policy::suggest(&found, None, &policy, &machine);
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
