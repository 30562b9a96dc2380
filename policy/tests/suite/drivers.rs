//! The capabilities that a driver's own `requires` adds.

use toolward_policy::{DeclaredBy, Effects, Why};

use crate::support::{EVERYWHERE, ask, ask_of, denial, driver, granted, policy, tool};

const RULE: &str = "[[grant]]\npublisher = \"acme\"\nrequires = [\"tool:text.stats\"]\n";

#[test]
fn what_a_driver_adds_needs_a_rule_that_names_the_driver() {
    let driver = driver("requires: { tools: [text.stats] }");
    let decision = ask(&policy(RULE), &tool(""), &driver);
    let missing = &denial(&decision).missing;
    assert_eq!(missing.len(), 1);
    assert_eq!(missing[0].declared_by, DeclaredBy::Driver);
    assert_eq!(missing[0].why, Why::DriverNotNamed);
    let named = policy(&format!("{RULE}driver = \"acme.notes\""));
    assert_eq!(
        granted(&ask(&named, &tool(""), &driver)),
        ["tool text.stats"]
    );
}

#[test]
fn what_the_contract_declares_too_is_no_addition() {
    let driver = driver("requires: { tools: [text.stats] }");
    let tool = tool("requires: { tools: [text.stats] }");
    assert_eq!(
        granted(&ask(&policy(RULE), &tool, &driver)),
        ["tool text.stats"]
    );
}

#[test]
fn what_a_driver_adds_of_the_network_is_narrowed_to_its_egress() {
    let rule = policy(
        "[[grant]]\npublisher = \"acme\"\ndriver = \"acme.notes\"\nrequires = [\"network:*\"]",
    );
    let within =
        driver("requires: { network: [a.example, b.example] }\nnetwork: { egress: [a.example] }");
    assert_eq!(
        granted(&ask(&rule, &tool(""), &within)),
        ["GET, HEAD and OPTIONS to a.example by https"]
    );
    let without = driver("requires: { network: [a.example] }");
    assert!(granted(&ask(&rule, &tool(""), &without)).is_empty());
}

#[test]
fn secrets_that_a_driver_adds_are_those_of_its_publisher() {
    let policy = policy(
        r#"
        [[secret]]
        slug = "token"
        publisher = "acme"
        origin = "https://a.example"
        header = "x-key"
        [[grant]]
        publisher = "acme"
        driver_publisher = "other"
        driver = "acme.notes"
        requires = ["secret:token"]
        "#,
    );
    let driver = driver("requires: { secrets: [token] }");
    let tool = tool("");
    let decision = ask_of(&policy, (&tool, "acme"), (&driver, "other"));
    assert_eq!(denial(&decision).missing[0].why, Why::NoSecret);
}

#[test]
fn effects_count_what_the_driver_adds_and_uses() {
    let plain = tool("");
    assert_eq!(Effects::of(&plain, &driver("")), Effects::default());
    let adds = driver(
        "requires: { network: [a.example], secrets: [t] }\nnetwork: { egress: [a.example] }",
    );
    let effects = Effects::of(&plain, &adds);
    assert!(effects.network && effects.secrets && !effects.writes);
    // The contract's network, which this driver does not use.
    let network = tool("requires: { network: [a.example] }");
    assert!(!Effects::of(&network, &driver("")).network);
    assert!(Effects::of(&network, &driver(EVERYWHERE)).network);
    let writes = tool("mutates: ['gpu:x']\nrisk_level: 1\napproval: always");
    let effects = Effects::of(&writes, &driver(""));
    assert!(effects.writes);
    assert_eq!(effects.risk, 1);
    assert_eq!(effects.approval, toolward_policy::ApprovalClass::Always);
}
