//! `[approval.NAME]`: the class that `approval: policy:NAME` stands for, the tools that may refer
//! to it, and the approvals that it never lowers.

use toolward_policy::{
    ApprovalClass, AskReason, Contract, Decision, DecisionContext, ExplainedOutcome, Explanation,
    Implementation, Policy, explain, routes,
};

use crate::support::{allowed, ask, ask_of, driver, machine, named_tool, policy, reasons, tool};

const RULE: &str = "[[grant]]\npublisher = \"acme\"\nmutates = [\"database:a\"]\n";

/// `[approval.corp]` with this class, for all tools of acme.
fn corp(approval: &str) -> String {
    format!("[approval.corp]\npublishers = [\"acme\"]\ntools = [\"*\"]\napproval = {approval:?}\n")
}

fn is_allowed(decision: &Decision) -> bool {
    matches!(decision, Decision::Allow(_))
}

/// The reasons as words. A reason of an approval policy has its name and class.
fn words(decision: &Decision) -> Vec<String> {
    let word = |reason: &AskReason| match reason {
        AskReason::Policy(reference) => {
            let known = if reference.known { "" } else { " unknown" };
            format!("{} {}{known}", reference.name, reference.approval)
        }
        other => format!("{other:?}"),
    };
    reasons(decision).iter().map(word).collect()
}

#[test]
fn it_gives_a_class_to_the_tools_that_it_names() {
    let refers = tool("approval: policy:corp");
    for (approval, asks) in [("auto", false), ("on-mutate", false), ("always", true)] {
        let decision = ask(&policy(&corp(approval)), &refers, &driver(""));
        assert_eq!(!is_allowed(&decision), asks, "{approval}");
        assert_eq!(allowed(&decision).approval.as_str(), approval);
    }
    let always = ask(&policy(&corp("always")), &refers, &driver(""));
    assert_eq!(words(&always), ["corp always"]);
}

#[test]
fn for_all_others_and_where_it_is_unknown_it_always_asks() {
    let refers = tool("approval: policy:corp");
    let of = |publishers: &str, tools: &str, name: &str| {
        policy(&format!(
            "[approval.{name}]\npublishers = [{publishers}]\ntools = [{tools}]\napproval = \"auto\"\n"
        ))
    };
    let corp = of("\"acme\"", "\"notes.*\"", "corp");
    assert!(is_allowed(&ask(&corp, &refers, &driver(""))));
    for other in [
        policy(""),
        of("\"acme\"", "\"notes.*\"", "other"),
        of("\"acme\"", "\"notes.*\"", "Corp"),
        of("\"labs\"", "\"notes.*\"", "corp"),
        of("\"acme\"", "\"text.*\"", "corp"),
        of("\"acme\"", "\"notes.append@2\"", "corp"),
    ] {
        let decision = ask(&other, &refers, &driver(""));
        assert_eq!(words(&decision), ["corp always unknown"], "{other:?}");
        assert_eq!(allowed(&decision).approval, ApprovalClass::Always);
    }
    // The contract's publisher counts, not the driver's.
    let decision = ask_of(&corp, (&refers, "labs"), (&driver(""), "acme"));
    assert_eq!(words(&decision), ["corp always unknown"]);
}

#[test]
fn it_lowers_nothing_that_somebody_else_demands() {
    let auto = corp("auto");
    let changes = tool("approval: policy:corp\nmutates: ['database:a']");
    let decision = ask(&policy(&format!("{auto}{RULE}")), &changes, &driver(""));
    assert_eq!(words(&decision), ["Mutates", "corp on-mutate"]);
    assert_eq!(allowed(&decision).approval, ApprovalClass::OnMutate);
    let risky = tool("approval: policy:corp\nrisk_level: 2");
    let decision = ask(&policy(&auto), &risky, &driver(""));
    assert_eq!(words(&decision), ["Risk(2)", "corp auto"]);
    let refers = tool("approval: policy:corp");
    let default = policy(&format!("[defaults]\napproval = \"always\"\n{auto}"));
    assert_eq!(
        words(&ask(&default, &refers, &driver(""))),
        ["Default", "corp auto"]
    );
    let rule = format!("{auto}[[grant]]\npublisher = \"acme\"\napproval = \"always\"\n");
    let decision = ask(&policy(&rule), &refers, &driver(""));
    assert_eq!(allowed(&decision).approval, ApprovalClass::Always);
    assert_eq!(words(&decision).len(), 2);
}

#[test]
fn a_yes_in_writing_stands_for_it_unless_it_always_asks() {
    let changes = tool("approval: policy:corp\nmutates: ['database:a']");
    for (approval, allowed) in [("auto", true), ("on-mutate", true), ("always", false)] {
        let text = format!("{}{RULE}preapproved = true\n", corp(approval));
        let decision = ask(&policy(&text), &changes, &driver(""));
        assert_eq!(is_allowed(&decision), allowed, "{approval}");
    }
    let unknown = policy(&format!("{RULE}preapproved = true\n"));
    assert!(!is_allowed(&ask(&unknown, &changes, &driver(""))));
}

#[test]
fn a_tool_that_reaches_one_asks_by_what_it_stands_for() {
    let caller = named_tool("text.other", "requires: { tools: [notes.append] }");
    let called = tool("approval: policy:corp");
    let tools = [&caller, &called].map(|tool| Contract {
        tool,
        publisher: "acme",
    });
    let driver = driver("");
    let drivers = [Implementation {
        driver: &driver,
        publisher: "acme",
    }];
    let grant = "[[grant]]\npublisher = \"acme\"\nrequires = [\"tool:notes.append\"]\n";
    for (table, asks) in [
        (String::new(), true),
        (corp("always"), true),
        (corp("auto"), false),
    ] {
        let policy = policy(&format!("{table}{grant}"));
        let found = routes(&tools, &drivers, &policy, &machine()).expect("different ids");
        let decision = &found[0].routes[0].decision;
        assert_eq!(!is_allowed(decision), asks, "{table}");
    }
}

#[test]
fn an_explanation_names_it_whatever_came_of_it() {
    let explained = |text: &str, tool: &toolward_contract::tool::Tool| -> Explanation {
        let driver = driver("");
        let contract = Contract {
            tool,
            publisher: "acme",
        };
        let implementation = Implementation {
            driver: &driver,
            publisher: "acme",
        };
        explain(
            &contract,
            &implementation,
            &policy(text),
            &DecisionContext::default(),
        )
    };
    let refers = tool("approval: policy:corp");
    let known = explained(&corp("auto"), &refers);
    assert_eq!(known.outcome, ExplainedOutcome::Allow);
    let text = known.to_string();
    assert!(
        text.contains("refers to the approval policy `corp`, which is auto"),
        "{text}"
    );
    let unknown = explained("", &refers);
    assert_eq!(unknown.outcome, ExplainedOutcome::Ask);
    let text = unknown.to_string();
    assert!(
        text.contains("`corp`, which [approval] does not have for it"),
        "{text}"
    );
    assert_eq!(text.matches("`corp`").count(), 1, "{text}");
    let json = serde_json::to_value(&known).expect("JSON");
    assert_eq!(json["approval_policy"]["approval"], "auto");
    assert!(explained("", &tool("")).approval_policy.is_none());
}

#[test]
fn a_table_is_whole_and_there_once() {
    let whole = corp("auto");
    for (text, code) in [
        (
            "[approval.corp]\npublishers = [\"acme\"]\ntools = [\"*\"]\n",
            "policy-missing-key",
        ),
        (
            "[approval.corp]\ntools = [\"*\"]\napproval = \"auto\"\n",
            "policy-missing-key",
        ),
        (
            "[approval.corp]\npublishers = [\"acme\"]\napproval = \"auto\"\n",
            "policy-missing-key",
        ),
        (
            "[approval.corp]\npublishers = []\ntools = [\"*\"]\napproval = \"auto\"\n",
            "policy-wrong-value",
        ),
        (
            "[approval.corp]\npublishers = [\"*\"]\ntools = [\"*\"]\napproval = \"auto\"\n",
            "policy-publisher",
        ),
        (
            "[approval.corp]\npublishers = [\"acme\"]\ntools = [\"*\"]\napproval = \"never\"\n",
            "policy-wrong-value",
        ),
        (
            "[approval.\"a b\"]\npublishers = [\"acme\"]\ntools = [\"*\"]\napproval = \"auto\"\n",
            "policy-wrong-value",
        ),
        (
            "[approval.corp]\npublishers = [\"acme\"]\ntools = [\"*\"]\napproval = \"auto\"\nmore = 1\n",
            "policy-unknown-key",
        ),
        ("[approval]\ncorp = \"auto\"\n", "policy-wrong-type"),
        ("approval = 1\n", "policy-wrong-type"),
    ] {
        let refused = Policy::from_toml(text).unwrap_err();
        assert_eq!(refused.code(), code, "{text}: {refused}");
        assert!(refused.line().is_some(), "{text}: {refused}");
    }
    let named = whole.replace("corp", "\"team/x\"");
    let refers = tool("approval: policy:team/x");
    assert!(is_allowed(&ask(&policy(&named), &refers, &driver(""))));
    let twice = policy(&whole).layer(policy(&whole)).unwrap_err();
    assert_eq!(twice.code(), "policy-duplicate");
}

#[test]
fn a_policy_without_one_is_narrower_and_with_another_is_not() {
    let (auto, always) = (corp("auto"), corp("always"));
    assert!(policy("").narrows(&policy(&auto)).is_ok());
    assert!(policy(&auto).narrows(&policy("")).is_err());
    assert!(policy(&always).narrows(&policy(&auto)).is_err());
    assert!(policy(&auto).narrows(&policy(&auto)).is_ok());
}
