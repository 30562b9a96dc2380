//! Reading `[[context]]`: what a table must contain, and what it may not.

use std::path::Path;

use toolward_contract::tool::Tool;
use toolward_policy::{ContextSource, Contract, Policy};

use crate::support::named_tool;

const RULE: &str =
    "[[context]]\npublisher = \"acme\"\ntool = \"mail.send@1\"\nprincipal = \"alice\"\n";

fn code(text: &str) -> &'static str {
    Policy::from_toml(text).expect_err(text).code()
}

#[test]
fn values_are_written_or_come_from_a_variable_or_a_file() {
    let policy = Policy::from_toml_in(
        &format!(
            "{RULE}values = {{ region = \"eu\", level = 3, on = true, list = [1.5, \"a\"] }}\n\
             env.tenant = \"TENANT\"\nfile.account = \"account.txt\"\n"
        ),
        "toolward.toml",
        "/etc/toolward".as_ref(),
    )
    .unwrap();
    let [rule] = policy.tables().contexts.as_slice() else {
        panic!("one rule");
    };
    assert_eq!(rule.principal.as_deref(), Some("alice"));
    assert_eq!(rule.driver_publisher, rule.publisher);
    let source = |name: &str| rule.values[name].source().clone();
    assert_eq!(source("level"), ContextSource::Written(3.into()));
    assert_eq!(source("tenant"), ContextSource::Env("TENANT".to_owned()));
    // The path is relative to the policy's file.
    let file = ContextSource::File("/etc/toolward/account.txt".to_owned());
    assert_eq!(source("account"), file);
    assert!(!rule.public && !rule.is_placeholder());
}

#[test]
fn a_table_that_does_not_say_whose_calls_it_is_for_is_refused() {
    let all = RULE.replace("\"alice\"", "\"*\"") + "values.a = 1\n";
    let policy = Policy::from_toml(&all).unwrap();
    assert_eq!(policy.tables().contexts[0].principal, None);
    for (text, expected) in [
        (
            RULE.replace("principal = \"alice\"\n", "values.a = 1\n"),
            "policy-missing-key",
        ),
        (RULE.to_owned(), "policy-context"),
        (
            format!("{RULE}values.a = 1\nenv.a = \"A\"\n"),
            "policy-context",
        ),
        (format!("{RULE}env.a = \"not a name\"\n"), "policy-context"),
        (format!("{RULE}file.a = \"\"\n"), "policy-wrong-value"),
        (format!("{RULE}values.a = 2026-01-01\n"), "policy-context"),
        (format!("{RULE}values.a = inf\n"), "policy-context"),
        (format!("{RULE}value.a = 1\n"), "policy-unknown-key"),
        (format!("{RULE}values = 1\n"), "policy-wrong-type"),
        (
            format!("{RULE}values.a = 1\ndriver_publisher = \"zeta\"\n"),
            "policy-context",
        ),
        (
            format!("{}values.a = 1\n", RULE.replace("mail.send@1", "mail.*")),
            "policy-context",
        ),
        (
            format!("{RULE}values.a = 1\n{RULE}values.a = 2\n"),
            "policy-duplicate",
        ),
        (
            format!("{RULE}values.a = {}1{}\n", "[".repeat(20), "]".repeat(20)),
            "policy-context",
        ),
    ] {
        assert_eq!(code(&text), expected, "{text}");
    }
}

#[test]
fn a_value_that_would_pin_a_driver_is_refused_where_it_is_written() {
    for table in ["values", "env", "file"] {
        let text = format!("{RULE}{table}.pinnedProvider = \"notes\"\n");
        let refused = Policy::from_toml(&text).expect_err(&text);
        assert_eq!(
            (refused.code(), refused.line()),
            ("policy-context", Some(5))
        );
    }
}

#[test]
fn a_context_that_no_tool_gets_a_value_from_is_named_with_its_place() {
    let text = format!("{RULE}values.a = 1\n");
    let policy = Policy::from_toml_in(&text, "p.toml", Path::new("/etc")).unwrap();
    let codes = |tools: &[&Tool]| {
        let contract = |tool| Contract {
            tool,
            publisher: "acme",
        };
        let contracts: Vec<_> = tools.iter().copied().map(contract).collect();
        let unused: Vec<String> = policy
            .unused_contexts(&contracts)
            .map(|unused| {
                assert!(
                    unused
                        .to_string()
                        .starts_with("[[context]] 1 (p.toml:1): mail.send@1 of acme: ")
                );
                unused.code().to_owned()
            })
            .collect();
        unused
    };
    let with = |lines: &str| named_tool("mail.send", lines);
    let (plain, contextual) = (with(""), with("contextSchema: { type: object }\n"));
    assert_eq!(codes(&[]), ["context-without-tool"]);
    assert_eq!(codes(&[&plain]), ["context-without-schema"]);
    assert!(codes(&[&plain, &contextual]).is_empty());
    let both = policy.clone().layer(Policy::empty()).unwrap();
    assert_eq!(both.unused_contexts(&[]).count(), 1);
}

#[test]
fn the_values_are_not_shown_by_debug() {
    let policy = Policy::from_toml(&format!("{RULE}env.tenant = \"TENANT\"\n")).unwrap();
    let policy = policy.with_contexts(&mut |_| Ok("a-secret".to_owned()));
    assert!(!format!("{policy:?}").contains("a-secret"));
}
