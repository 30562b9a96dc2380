//! Rules with `partial`: a tool is served with some of its declared hosts and workspaces.

use toolward_contract::driver::Driver;
use toolward_contract::tool::Tool;
use toolward_policy::{Contract, Decision, ExplainedOutcome, Implementation, Policy, explain};

use crate::support::{
    EVERYWHERE, allowed, ask, denial, driver, granted, http_driver, missing, policy, reasons,
    suggested_for, tool,
};

const WORKSPACES: &str = r#"
    [[workspace]]
    path = "/notes"
    directory = "/srv/notes"

    [[workspace]]
    path = "/docs"
    directory = "/srv/docs"
"#;

/// A tool that reads two hosts and two workspaces.
fn reads_four() -> Tool {
    tool("requires: { network: [a.example, b.example], workspace: [/notes, /docs] }")
}

fn rule(lines: &str) -> Policy {
    policy(&format!(
        "{WORKSPACES}\n[[grant]]\npublisher = \"acme\"\ntool = \"notes.append\"\n{lines}\n"
    ))
}

fn without(decision: &Decision) -> Vec<String> {
    let partial = allowed(decision).partial.as_ref();
    let withheld = partial.map(|partial| partial.withheld.iter());
    withheld
        .into_iter()
        .flatten()
        .map(ToString::to_string)
        .collect()
}

#[test]
fn a_tool_gets_the_hosts_and_workspaces_that_are_given_and_no_other() {
    let policy = rule("requires = ['network:a.example', 'workspace:/notes']\npartial = true");
    let decision = ask(&policy, &reads_four(), &driver(EVERYWHERE));
    assert_eq!(
        granted(&decision),
        [
            "GET, HEAD and OPTIONS to a.example by https",
            "/notes read-only, /notes being /srv/notes",
        ]
    );
    assert_eq!(without(&decision), ["network:b.example", "workspace:/docs"]);
}

#[test]
fn without_partial_the_same_lines_block_the_tool() {
    let policy = rule("requires = ['network:a.example', 'workspace:/notes']");
    let decision = ask(&policy, &reads_four(), &driver(EVERYWHERE));
    assert_eq!(
        missing(&decision),
        [
            "`network:b.example`: no rule gives it",
            "`workspace:/docs`: no rule gives it",
        ]
    );
}

#[test]
fn nothing_is_left_out_where_all_is_given() {
    let all = "requires = ['network:a.example', 'network:b.example', 'workspace:/notes', 'workspace:/docs']";
    let (tool, driver) = (reads_four(), driver(EVERYWHERE));
    let partial = ask(&rule(&format!("{all}\npartial = true")), &tool, &driver);
    let whole = ask(&rule(all), &tool, &driver);
    assert!(allowed(&partial).partial.is_none());
    assert_eq!(partial, whole);
}

#[test]
fn a_wildcard_is_given_as_far_as_rules_say() {
    let tool = tool("requires: { network: ['*'], workspace: [/docs] }");
    let policy = rule(
        "requires = ['network:a.example', 'network:*.c.example:8080', 'workspace:/docs/public']\npartial = true",
    );
    let decision = ask(&policy, &tool, &driver(EVERYWHERE));
    // `*` means only the standard port.
    assert_eq!(
        granted(&decision),
        [
            "GET, HEAD and OPTIONS to a.example by https",
            "/docs/public read-only, /docs being /srv/docs",
        ]
    );
    assert_eq!(
        without(&decision),
        [
            "network:* but for network:a.example",
            "workspace:/docs but for workspace:/docs/public",
        ]
    );
}

#[test]
fn partial_adds_nothing_that_is_not_declared() {
    let policy = rule(
        "requires = ['network:a.example', 'network:other.example', 'workspace:/', 'database:x']\npartial = true",
    );
    let decision = ask(&policy, &reads_four(), &driver(EVERYWHERE));
    let all = granted(&decision).join("\n");
    assert!(
        !all.contains("other.example") && !all.contains("bucket"),
        "{all}"
    );
    assert_eq!(without(&decision), ["network:b.example"]);
}

#[test]
fn whatever_else_is_declared_blocks_the_tool_where_it_is_not_given() {
    for (declared, name) in [
        ("secrets: [token]", "secret:token"),
        ("tools: [text.stats]", "tool:text.stats"),
        ("database: [counters]", "database:counters"),
        ("user: [form]", "user:form"),
    ] {
        let tool = tool(&format!(
            "requires: {{ network: [a.example, b.example], {declared} }}"
        ));
        let policy = rule("requires = ['network:a.example']\npartial = true");
        let decision = ask(&policy, &tool, &driver(EVERYWHERE));
        let missing = missing(&decision).join("\n");
        assert!(
            missing.contains(name) && !missing.contains("b.example"),
            "{missing}"
        );
    }
    let tool =
        tool("requires: { network: [a.example] }\nmutates: ['external:mail', 'network:b.example']");
    let policy = rule("requires = ['network:a.example']\npartial = true");
    let decision = ask(&policy, &tool, &driver(EVERYWHERE));
    assert!(missing(&decision).join("\n").contains("external:mail"));
}

#[test]
fn a_rule_that_gives_nothing_of_a_tool_leaves_it_blocked() {
    let policy = rule("requires = ['network:c.example', 'workspace:/other']\npartial = true");
    let decision = ask(&policy, &reads_four(), &driver(EVERYWHERE));
    assert_eq!(denial(&decision).missing.len(), 4);
}

#[test]
fn a_deny_of_what_is_left_out_blocks_the_tool() {
    for denied in ["network:b.example", "workspace:/docs/private", "network:*"] {
        let text = format!(
            "{WORKSPACES}\n[[grant]]\npublisher = \"acme\"\n\
             requires = ['network:a.example', 'workspace:/notes']\npartial = true\n\
             [[deny]]\ncapabilities = [\"{denied}\"]\n"
        );
        let decision = ask(&policy(&text), &reads_four(), &driver(EVERYWHERE));
        assert!(
            missing(&decision).join("\n").contains("denied by"),
            "{denied}"
        );
    }
}

#[test]
fn a_given_workspace_without_a_table_blocks_the_tool() {
    let text = "[[grant]]\npublisher = \"acme\"\n\
                requires = ['network:a.example', 'workspace:/notes']\npartial = true\n";
    let decision = ask(&policy(text), &reads_four(), &driver(EVERYWHERE));
    assert_eq!(
        missing(&decision),
        ["`workspace:/notes`: no [[workspace]] maps the path to a directory"]
    );
}

#[test]
fn effects_and_questions_follow_from_what_is_given() {
    let tool =
        tool("requires: { network: [a.example] }\nmutates: ['workspace:/docs']\nrisk_level: 1");
    let driver = driver(EVERYWHERE);
    let network_only = ask(
        &rule("requires = ['network:a.example']\npartial = true"),
        &tool,
        &driver,
    );
    assert!(matches!(network_only, Decision::Allow(_)));
    let effects = allowed(&network_only).effects;
    assert!(effects.network && !effects.writes && effects.risk == 1);

    let files_only = ask(
        &rule("mutates = ['workspace:/docs']\npartial = true"),
        &tool,
        &driver,
    );
    assert_eq!(reasons(&files_only).len(), 1);
    let effects = allowed(&files_only).effects;
    assert!(!effects.network && effects.writes);
}

#[test]
fn leave_to_read_is_no_leave_to_change() {
    let tool = tool("mutates: ['workspace:/docs', 'workspace:/notes']");
    let policy =
        rule("requires = ['workspace:/docs']\nmutates = ['workspace:/notes']\npartial = true");
    let decision = ask(&policy, &tool, &driver(EVERYWHERE));
    assert_eq!(
        granted(&decision),
        ["/notes read-write, /notes being /srv/notes"]
    );
    assert_eq!(without(&decision), ["workspace:/docs (to change it)"]);
}

#[test]
fn what_is_read_below_a_change_that_is_left_out_is_given_for_reading() {
    let tool = tool("requires: { network: [a.example, b.example] }\nmutates: ['network:*']");
    let policy =
        rule("requires = ['network:a.example']\nmutates = ['network:c.example']\npartial = true");
    let decision = ask(&policy, &tool, &driver(EVERYWHERE));
    assert_eq!(
        granted(&decision),
        [
            "all methods to c.example by https",
            "GET, HEAD and OPTIONS to a.example by https",
        ]
    );
    assert_eq!(
        without(&decision),
        [
            "network:* (to change it) but for network:c.example",
            "network:b.example",
        ]
    );
}

#[test]
fn only_a_rule_that_names_the_driver_leaves_out_what_the_driver_adds() {
    let tool = tool("requires: { workspace: [/notes] }");
    let adding = driver("network: { egress: ['*'] }\nrequires: { network: [telemetry.example] }");
    let unnamed = ask(
        &rule("requires = ['workspace:/notes']\npartial = true"),
        &tool,
        &adding,
    );
    assert!(missing(&unnamed).join("\n").contains("telemetry.example"));
    let named = ask(
        &rule("driver = 'acme.notes'\nrequires = ['workspace:/notes']\npartial = true"),
        &tool,
        &adding,
    );
    assert_eq!(without(&named), ["network:telemetry.example"]);
    assert_eq!(
        granted(&named),
        ["/notes read-only, /notes being /srv/notes"]
    );
}

#[test]
fn the_host_of_a_declarative_driver_is_never_left_out() {
    let tool = tool("requires: { network: [api.example], workspace: [/notes] }");
    let policy = rule("requires = ['workspace:/notes']\npartial = true");
    let decision = ask(&policy, &tool, &http_driver("endpoint: /, method: GET"));
    assert_eq!(
        missing(&decision),
        ["`network:api.example`: no rule gives it, and the driver's request goes there"]
    );
    // The suggested lines let it run.
    let lines = suggested_for(
        &policy,
        std::slice::from_ref(&tool),
        (&http_driver("endpoint: /, method: GET"), "acme"),
        None,
    );
    assert!(lines.contains("network:api.example"), "{lines}");
}

#[test]
fn a_change_that_is_left_out_needs_no_approval_in_advance() {
    let tool = tool("mutates: ['workspace:/docs', 'workspace:/notes']");
    let policy = rule("mutates = ['workspace:/notes']\npartial = true\npreapproved = true");
    let decision = ask(&policy, &tool, &driver(EVERYWHERE));
    assert!(matches!(decision, Decision::Allow(_)), "{decision:?}");
}

#[test]
fn more_parts_than_can_be_told_apart_leave_the_tool_blocked() {
    let tool = tool("requires: { network: ['*', '*:8080'] }");
    let given = |count: usize| {
        let hosts: Vec<String> = (0..count)
            .map(|n| format!("'network:h{n}.example'"))
            .collect();
        rule(&format!(
            "requires = [{}]\npartial = true",
            hosts.join(", ")
        ))
    };
    let driver = driver(EVERYWHERE);
    let some = ask(&given(1000), &tool, &driver);
    assert_eq!(allowed(&some).grant.network().len(), 1000);
    let text = |number: usize| {
        let hosts: Vec<String> = (0..700)
            .map(|n| format!("'network:h{number}-{n}.example'"))
            .collect();
        format!(
            "[[grant]]\npublisher = \"acme\"\nrequires = [{}]\npartial = true\n",
            hosts.join(", ")
        )
    };
    let many = ask(&policy(&(text(0) + &text(1))), &tool, &driver);
    assert!(missing(&many).join("\n").contains("network:*"));
}

#[test]
fn a_rule_with_partial_gives_a_host_or_a_workspace_and_names_no_action() {
    for (lines, code) in [
        ("partial = true", "policy-wrong-value"),
        (
            "requires = ['database:x']\npartial = true",
            "policy-wrong-value",
        ),
        (
            "action = 'a:b'\nrequires = ['network:a.example']\npartial = true",
            "policy-never-granted",
        ),
        (
            "requires = ['network:a.example']\npartial = 1",
            "policy-wrong-type",
        ),
    ] {
        let text = format!("[[grant]]\npublisher = \"acme\"\n{lines}\n");
        let error = Policy::from_toml(&text).expect_err(lines);
        assert_eq!(error.code(), code, "{lines}");
    }
}

#[test]
fn a_running_server_takes_over_neither_partial_nor_a_smaller_grant_beside_it() {
    let whole = "requires = ['network:a.example', 'workspace:/notes']";
    let plain = rule(whole);
    let partial = rule(&format!("{whole}\npartial = true"));
    let less = rule("requires = ['network:a.example']\npartial = true");
    assert!(partial.narrows(&plain).is_err());
    assert!(partial.narrows(&partial).is_ok());
    assert!(plain.narrows(&partial).is_ok());
    assert!(less.narrows(&partial).is_err());
}

#[test]
fn an_explanation_says_what_is_left_out() {
    let policy =
        rule("requires = ['network:a.example', 'workspace:/notes/public']\npartial = true");
    let (tool, driver): (Tool, Driver) = (reads_four(), driver(EVERYWHERE));
    let explanation = explain(
        &Contract {
            tool: &tool,
            publisher: "acme",
        },
        &Implementation {
            driver: &driver,
            publisher: "acme",
        },
        &policy,
        &Default::default(),
    );
    assert_eq!(explanation.outcome, ExplainedOutcome::Allow);
    assert_eq!(
        explanation.to_string(),
        "notes.append@1 of acme: allowed\n  driver acme.notes of acme\n  \
         network:a.example: the contract requires it\n    \
         policy  [[grant]] 1 (line 10): tools notes.append of acme\n    \
         grant   GET, HEAD and OPTIONS to a.example by https\n  \
         network:b.example: the contract requires it\n    \
         partial left out: no rule gives it\n  \
         workspace:/docs: the contract requires it\n    \
         partial left out: no rule gives it\n  \
         workspace:/notes: the contract requires it\n    \
         policy  [[grant]] 1 (line 10): tools notes.append of acme\n    \
         grant   /notes/public read-only, /notes being /srv/notes\n    \
         partial the rest is left out: no rule gives it\n"
    );
    let json = serde_json::to_value(&explanation).expect("JSON");
    let rows = json["capabilities"].as_array().expect("rows");
    let withheld: Vec<&str> = rows
        .iter()
        .filter(|row| row["withheld"]["code"] == "no-rule")
        .filter_map(|row| row["declared"].as_str())
        .collect();
    assert_eq!(
        withheld,
        ["network:b.example", "workspace:/docs", "workspace:/notes"]
    );
}
