//! When a person is asked, and what replaces the person's approval.

use toolward_policy::{ApprovalClass, AskReason, Confirmed, Decision, Effects};

use crate::support::{allowed, ask, ask_reaching, driver, policy, reasons, tool};

const RULE: &str = "[[grant]]\npublisher = \"acme\"\nrequires = [\"tool:text.stats\"]\nmutates = [\"database:a\"]\n";

fn is_allowed(decision: &Decision) -> bool {
    matches!(decision, Decision::Allow(_))
}

#[test]
fn a_tool_that_only_computes_asks_nobody() {
    assert!(is_allowed(&ask(&policy(""), &tool(""), &driver(""))));
    let tool = tool("approval: on-mutate\nrisk_level: 1");
    assert!(is_allowed(&ask(&policy(""), &tool, &driver(""))));
}

#[test]
fn what_changes_something_asks() {
    let tool = tool("mutates: ['database:a']");
    let decision = ask(&policy(RULE), &tool, &driver(""));
    assert_eq!(reasons(&decision), [AskReason::Mutates]);
    assert_eq!(allowed(&decision).approval, ApprovalClass::OnMutate);
}

#[test]
fn a_contract_that_always_asks_is_asked_about() {
    let decision = ask(&policy(""), &tool("approval: always"), &driver(""));
    assert_eq!(reasons(&decision), [AskReason::Contract]);
    assert_eq!(allowed(&decision).approval, ApprovalClass::Always);
}

#[test]
fn risk_asks_from_two_on() {
    for (risk, asks) in [(0, false), (1, false), (2, true), (3, true)] {
        let tool = tool(&format!("risk_level: {risk}"));
        let decision = ask(&policy(""), &tool, &driver(""));
        assert_eq!(!is_allowed(&decision), asks, "{risk}");
        if asks {
            assert_eq!(reasons(&decision), [AskReason::Risk(risk)]);
        }
    }
}

#[test]
fn the_default_and_any_matching_rule_can_raise_the_class() {
    let default = policy("[defaults]\napproval = \"always\"");
    assert_eq!(
        reasons(&ask(&default, &tool(""), &driver(""))),
        [AskReason::Default]
    );
    let rule = policy("[[grant]]\npublisher = \"acme\"\napproval = \"always\"");
    let decision = ask(&rule, &tool(""), &driver(""));
    assert!(matches!(reasons(&decision), [AskReason::Rule(id)] if id.number == 1));
    let other = policy("[[grant]]\npublisher = \"acme\"\ntool = \"text.*\"\napproval = \"always\"");
    assert!(is_allowed(&ask(&other, &tool(""), &driver(""))));
}

#[test]
fn a_harmless_tool_launders_no_dangerous_one() {
    let caller = tool("requires: { tools: [text.stats] }");
    let reach = |effects| ask_reaching(&policy(RULE), &caller, &driver(""), effects);
    assert!(is_allowed(&reach(Effects::default())));
    let writes = Effects {
        writes: true,
        approval: ApprovalClass::OnMutate,
        ..Effects::default()
    };
    assert_eq!(reasons(&reach(writes)), [AskReason::ReachesMutation]);
    assert!(allowed(&reach(writes)).effects.writes);
    let risky = Effects {
        risk: 3,
        ..Effects::default()
    };
    assert_eq!(reasons(&reach(risky)), [AskReason::ReachesRisk(3)]);
    assert_eq!(allowed(&reach(risky)).effects.risk, 3);
    let always = Effects {
        approval: ApprovalClass::Always,
        ..Effects::default()
    };
    assert_eq!(reasons(&reach(always)), [AskReason::ReachesApproval]);
}

#[test]
fn a_yes_in_writing_stands_for_the_person_up_to_risk_two() {
    let yes = policy(&format!("{RULE}preapproved = true"));
    let changes = "mutates: ['database:a']";
    let decision = ask(
        &yes,
        &tool(&format!("{changes}\nrisk_level: 2")),
        &driver(""),
    );
    assert!(is_allowed(&decision));
    assert_eq!(allowed(&decision).preapproved.len(), 1);
    let risk = ask(
        &yes,
        &tool(&format!("{changes}\nrisk_level: 3")),
        &driver(""),
    );
    assert_eq!(reasons(&risk), [AskReason::Mutates, AskReason::Risk(3)]);
    let always = ask(
        &yes,
        &tool(&format!("{changes}\napproval: always")),
        &driver(""),
    );
    assert_eq!(reasons(&always), [AskReason::Contract, AskReason::Mutates]);
    let strict = policy(&format!("{RULE}preapproved = true\napproval = \"always\""));
    assert!(!is_allowed(&ask(&strict, &tool(changes), &driver(""))));
    let default = policy(&format!(
        "[defaults]\napproval = \"always\"\n{RULE}preapproved = true"
    ));
    assert!(!is_allowed(&ask(&default, &tool(changes), &driver(""))));
}

#[test]
fn what_is_confirmed_of_a_tool_changes_nothing_about_who_is_asked() {
    let confirms = |words: &str| {
        let policy = policy(&format!("{RULE}confirms = [{words}]"));
        ask(&policy, &tool("mutates: ['database:a']"), &driver(""))
    };
    for (words, idempotent, additive) in [
        ("", false, false),
        ("\"idempotent\"", true, false),
        ("\"additive\", \"idempotent\"", true, true),
    ] {
        let decision = confirms(words);
        assert_eq!(reasons(&decision), [AskReason::Mutates]);
        let confirmed = Confirmed {
            idempotent,
            additive,
        };
        assert_eq!(allowed(&decision).confirmed, confirmed);
        assert_eq!(allowed(&decision).grant, allowed(&confirms("")).grant);
    }
}

#[test]
fn a_yes_covers_what_its_own_rule_gives_and_no_more() {
    let other = "[[grant]]\npublisher = \"acme\"\nmutates = [\"database:b\"]\npreapproved = true\n";
    let policy = policy(&format!("{RULE}{other}"));
    let both = tool("mutates: ['database:a', 'database:b']");
    assert_eq!(
        reasons(&ask(&policy, &both, &driver(""))),
        [AskReason::Mutates]
    );
    let one = tool("mutates: ['database:b']");
    assert!(is_allowed(&ask(&policy, &one, &driver(""))));
}

#[test]
fn at_risk_two_everything_that_is_asked_for_needs_the_yes() {
    let reads = tool("requires: { database: [a] }\nrisk_level: 2");
    let unrelated =
        "[[grant]]\npublisher = \"acme\"\nmutates = [\"database:b\"]\npreapproved = true\n";
    let asks = ask(&policy(&format!("{RULE}{unrelated}")), &reads, &driver(""));
    assert_eq!(reasons(&asks), [AskReason::Risk(2)]);
    let standing = ask(
        &policy(&format!("{RULE}preapproved = true\n{unrelated}")),
        &reads,
        &driver(""),
    );
    assert!(is_allowed(&standing));
    let numbers: Vec<usize> = allowed(&standing)
        .preapproved
        .iter()
        .map(|id| id.number)
        .collect();
    assert_eq!(numbers, [1], "only the rule that gave something");
}

#[test]
fn where_nothing_is_asked_for_only_a_rule_that_names_the_tool_is_a_yes() {
    let yes = |pattern: &str| {
        let rule = "[[grant]]\npublisher = \"acme\"\npreapproved = true";
        policy(&format!("{rule}\ntool = \"{pattern}\""))
    };
    let nothing = tool("risk_level: 2");
    // Nothing is changed, since the driver reaches no host.
    let unused = tool("mutates: ['network:a.example']");
    for tool in [nothing, unused] {
        for (pattern, stands) in [
            ("*", false),
            ("*@1", false),
            ("*.*", false),
            ("notes.*", true),
            ("notes.append@1", true),
        ] {
            let decision = ask(&yes(pattern), &tool, &driver(""));
            assert_eq!(is_allowed(&decision), stands, "{pattern}");
        }
    }
}

#[test]
fn a_change_that_the_driver_makes_no_use_of_is_no_way_around_the_rest() {
    let tool = tool("requires: { database: [a] }\nmutates: ['network:a.example']");
    let rule = "[[grant]]\npublisher = \"acme\"\ntool = \"notes.*\"\n";
    let policy = policy(&format!("{RULE}{rule}preapproved = true"));
    assert!(!is_allowed(&ask(&policy, &tool, &driver(""))));
}

#[test]
fn a_yes_covers_reached_tools_only_where_its_rule_names_them() {
    let caller = tool("requires: { tools: [text.stats] }");
    let writes = Effects {
        writes: true,
        ..Effects::default()
    };
    let named = policy(&format!("{RULE}preapproved = true"));
    assert!(is_allowed(&ask_reaching(
        &named,
        &caller,
        &driver(""),
        writes
    )));
    let unnamed = policy(&format!(
        "{RULE}\n[[grant]]\npublisher = \"acme\"\npreapproved = true"
    ));
    assert!(!is_allowed(&ask_reaching(
        &unnamed,
        &caller,
        &driver(""),
        writes
    )));
}
