//! Tests that a decision agrees with its explanation.

use std::path::Path;

use toolward_policy::{
    Contract, DecisionContext, ExplainedOutcome, Explanation, Implementation, Policy, explain,
};

use crate::support::{driver, policy, tool};

fn explained(policy: &Policy, tool_lines: &str, driver_lines: &str) -> Explanation {
    let publisher = "acme";
    explain(
        &Contract {
            tool: &tool(tool_lines),
            publisher,
        },
        &Implementation {
            driver: &driver(driver_lines),
            publisher,
        },
        policy,
        &DecisionContext::default(),
    )
}

const RULES: &str = r#"
[[workspace]]
path = "/notes"
directory = "/srv/notes"

[[grant]]
publisher = "acme"
tool = "notes.*"
mutates = ["workspace:/notes"]
requires = ["network:api.example"]
"#;

#[test]
fn people_see_declaration_rule_and_grant_side_by_side() {
    let policy = Policy::from_toml_in(RULES, "toolward.toml", Path::new("/etc")).unwrap();
    let found = explained(
        &policy,
        "requires: { network: ['*', other.example:1] }\nmutates: ['workspace:/notes']",
        "network: { egress: [api.example] }",
    );
    assert_eq!(
        found.to_string(),
        "\
notes.append@1 of acme: allowed once a person has said yes
  driver acme.notes of acme
  network:*: the contract requires it
    asked   network:api.example, by the driver's egress
    policy  [[grant]] 1 (toolward.toml:6): tools notes.* of acme
    grant   GET, HEAD and OPTIONS to api.example by https
  network:other.example:1: the contract requires it
    unused  the driver's egress has nothing of it
  workspace:/notes: the contract changes it
    policy  [[grant]] 1 (toolward.toml:6): tools notes.* of acme
    grant   /notes read-write, /notes being /srv/notes
  asks because it changes something
"
    );
}

#[test]
fn people_see_the_lines_to_add_to_a_blocked_tool() {
    let found = explained(
        &policy(RULES),
        "requires: { database: [counters] }\nmutates: ['workspace:/notes', 'gpu:x']",
        "",
    );
    assert_eq!(found.outcome, ExplainedOutcome::Deny);
    assert_eq!(
        found.to_string(),
        "\
notes.append@1 of acme: blocked
  driver acme.notes of acme
  database:counters: the contract requires it
    missing no rule gives it
  workspace:/notes: the contract changes it
    policy  [[grant]] 1 (line 6): tools notes.* of acme
  gpu:x: the contract changes it
    missing this host does not know its class, and no rule accepts it

to allow it, add to the policy:

[[grant]]
publisher = \"acme\"
tool = \"notes.append@1\"
requires = [\"database:counters\"]
accepts = [\"gpu\"] # unknown to this host: gives nothing
"
    );
}

#[test]
fn programs_get_the_same_values() {
    let found = explained(&policy(RULES), "mutates: ['workspace:/notes']", "");
    let value = serde_json::to_value(&found).unwrap();
    assert_eq!(value["outcome"], "ask");
    assert_eq!(value["ask"][0]["reason"], "mutates");
    assert_eq!(value["effects"]["writes"], true);
    let row = &value["capabilities"][0];
    assert_eq!(row["declared"], "workspace:/notes");
    assert_eq!(row["declared_by"], "contract");
    assert_eq!(row["rules"][0]["kind"], "grant");
    assert_eq!(row["rules"][0]["number"], 1);
    let blocked = explained(&policy(""), "mutates: ['workspace:/notes']", "");
    let value = serde_json::to_value(&blocked).unwrap();
    assert_eq!(value["capabilities"][0]["missing"]["code"], "no-rule");
    assert_eq!(value["capabilities"][0]["granted"], serde_json::json!([]));
}

#[test]
fn fewer_lines_have_the_tables_for_a_context_as_well() {
    let found = explained(
        &Policy::empty(),
        "requires: { network: [a.example, b.example] }\n\
         contextSchema: { type: object, properties: { tenant: { type: string } }, required: [tenant] }",
        "network: { egress: [a.example, b.example] }",
    );
    for lines in [&found.lines_to_add, &found.narrower_lines] {
        assert!(lines.contains("[[context]]"), "{lines}");
        assert!(lines.contains("env.\"tenant\""), "{lines}");
    }
    assert!(!found.narrower_lines.contains("b.example"), "{found}");
}
