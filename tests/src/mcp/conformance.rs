//! Everything that the official conformance suite requires of a server.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use super::official::{node, packages};
use super::served::{Served, machine};
use crate::support::Run;

/// The results of the checks of one scenario.
#[derive(Debug, Default)]
struct Checks {
    passed: usize,
    failed: Vec<Value>,
    warned: Vec<Value>,
}

/// The results of the suite, by scenario.
type Results = BTreeMap<String, Checks>;

/// Runs the required scenarios of a revision, and other scenarios that the suite runs with them.
fn run(revision: &str) -> Results {
    let machine = machine("");
    let served = Served::start(&machine);
    let mut command = machine.program(node());
    command
        .arg(packages().join(".bin/conformance"))
        .args(["server", "--url", &served.url, "--requirements", revision])
        .args(["--output-dir", "results"]);
    let ended = Run::new(command).end();
    let mut results = Results::new();
    for entry in fs::read_dir(machine.path("results")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap();
        // server-SCENARIO-2026-11-21T18-00-00-000Z
        let scenario = name.strip_prefix("server-").unwrap();
        let (scenario, _) = scenario.split_at(scenario.len() - "-2026-11-21T18-00-00-000Z".len());
        let checks: Vec<Value> =
            serde_json::from_slice(&fs::read(folder.join("checks.json")).unwrap()).unwrap();
        let results = results.entry(scenario.to_owned()).or_default();
        for check in checks {
            match check["status"].as_str().unwrap() {
                "SUCCESS" => results.passed += 1,
                "FAILURE" => results.failed.push(check),
                "WARNING" => results.warned.push(check),
                _ => {}
            }
        }
    }
    assert_eq!(ended.code, Some(0), "{:#?}\n{ended}", failures(&results));
    results
}

/// Returns the scenarios with failures, and these failures.
fn failures(results: &Results) -> BTreeMap<&str, &[Value]> {
    let failed = results
        .iter()
        .filter(|(_, checks)| !checks.failed.is_empty());
    failed
        .map(|(name, checks)| (name.as_str(), checks.failed.as_slice()))
        .collect()
}

/// Returns the server scenarios of a revision, from the suite's own list.
fn required(revision: &str) -> BTreeSet<String> {
    let list = packages().join(format!(
        "@modelcontextprotocol/conformance/requirements/{revision}.yaml"
    ));
    let list = fs::read_to_string(list).unwrap();
    let lines = list.lines().skip_while(|line| *line != "server:").skip(1);
    lines
        .map_while(|line| line.strip_prefix("  - "))
        .map(str::to_owned)
        .collect()
}

/// Runs a revision's set. There must be `count` required scenarios, and all must pass. Scenarios
/// that the suite runs but does not score must pass as well. Only the checks in `missing` may warn.
#[track_caller]
fn conforms(revision: &str, count: usize, unscored: &[&str], missing: &[&str]) {
    let results = run(revision);
    let required = required(revision);
    assert_eq!(required.len(), count, "{required:?}");
    let unscored = unscored.iter().map(|name| (*name).to_owned());
    for scenario in required.iter().cloned().chain(unscored) {
        let checks = results.get(&scenario);
        let checks = checks.unwrap_or_else(|| panic!("{scenario} did not run"));
        assert!(
            checks.passed > 0 && checks.failed.is_empty(),
            "{scenario}: {checks:#?}"
        );
        for warned in &checks.warned {
            let check = warned["id"].as_str().unwrap();
            assert!(missing.contains(&check), "{scenario}: {warned:#}");
        }
    }
}

#[test]
fn all_that_the_revision_of_november_2025_requires_passes() {
    let unscored = [
        "json-schema-2020-12",
        "server-session-lifecycle",
        "server-sse-polling",
    ];
    // No driver can close the connection of its call.
    conforms(
        "2025-11-25",
        30,
        &unscored,
        &["server-sse-disconnect-resume"],
    );
}

#[test]
fn all_that_the_revision_of_july_2026_requires_passes() {
    let unscored = [
        "http-custom-header-server-validation",
        "http-header-validation",
        "json-schema-2020-12",
    ];
    let missing = [
        // No driver can change the lists of tools and prompts.
        "sep-2575-server-sends-prompts-list-changed-on-subscription",
        "sep-2575-server-sends-tools-list-changed-on-subscription",
        // Answers are accepted only for questions that were asked.
        "sep-2322-ignore-unexpected-params",
    ];
    conforms("2026-07-28", 37, &unscored, &missing);
}
