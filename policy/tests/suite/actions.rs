//! Rules for an action: which tools they cover, and what they never grant.

use std::sync::Arc;

use toolward_contract::action::{Action, Reference};
use toolward_contract::tool::Tool;
use toolward_contract::{SchemaScope, Scope};
use toolward_policy::{Decision, Policy};

use crate::support::{allowed, ask, ask_of, driver, granted, policy};

/// The action `storage:commit`, in the contract's own bundle or in a library of another publisher.
struct Actions(Option<&'static str>);

impl SchemaScope for Actions {}

impl Scope for Actions {
    fn action(&self, _reference: &Reference) -> Option<Arc<Action>> {
        let text = "---\nschema: action/v1\nid: storage:commit\ndescription: Commits.\n---\n";
        Action::parse("ACTION.md", text).value.map(Arc::new)
    }

    fn library(&self, _reference: &Reference) -> Option<String> {
        self.0.map(str::to_owned)
    }
}

/// `notes.append` of a publisher, which opens a bucket and declares the actions that it implements.
fn implementing(implements: &str, library: Option<&'static str>, more: &str) -> Tool {
    let source = format!(
        "---\nid: notes.append\nname: A tool\ndescription: Does something.\nversion: 1.2.0\n\
         inputs: {{ type: object }}\noutputs: {{ type: object }}\n\
         requires: {{ database: [counters] }}\nimplements: {implements}\n{more}---\n"
    );
    let parsed = Tool::parse("TOOL.md", &source, &Actions(library));
    parsed
        .into_result()
        .unwrap_or_else(|found| panic!("{found:?}"))
}

fn rule(lines: &str) -> Policy {
    policy(&format!(
        "[[grant]]\npublisher = \"acme\"\naction = \"storage:commit\"\n{lines}\n\
         requires = [\"database:counters\"]\n"
    ))
}

fn is_given(policy: &Policy, tool: &Tool) -> bool {
    !matches!(ask(policy, tool, &driver("")), Decision::Deny(_))
}

#[test]
fn a_rule_covers_the_tools_that_implement_its_action_by_a_name_that_others_know() {
    let own = rule("");
    for implements in ["storage:commit", "\"@acme/notes/commit\""] {
        assert!(
            is_given(&own, &implementing(implements, None, "")),
            "{implements}"
        );
    }
    for implements in [
        "./actions/commit",
        "{ file: actions/commit }",
        "{ inline: { id: \"storage:commit\" } }",
    ] {
        assert!(
            !is_given(&own, &implementing(implements, None, "")),
            "{implements}"
        );
    }
    let other = policy(
        "[[grant]]\npublisher = \"acme\"\naction = \"storage:push\"\nrequires = [\"database:counters\"]\n",
    );
    assert!(!is_given(&other, &implementing("storage:commit", None, "")));
    // The rule does not cover tools that implement nothing, or that its `tool` leaves out, either.
    let plain = crate::support::tool("requires: { database: [counters] }");
    assert!(!is_given(&own, &plain));
    let narrower = rule("tool = \"text.*\"");
    assert!(!is_given(
        &narrower,
        &implementing("storage:commit", None, "")
    ));
}

#[test]
fn an_action_of_a_library_is_covered_where_the_rule_names_its_publisher() {
    let of_library = implementing("storage:commit", Some("verbs"), "");
    assert!(!is_given(&rule(""), &of_library));
    assert!(is_given(&rule("library = \"verbs\""), &of_library));
    assert!(!is_given(&rule("library = \"others\""), &of_library));
    // A library's action differs from the publisher's own action of this name.
    let own = implementing("storage:commit", None, "");
    assert!(!is_given(&rule("library = \"verbs\""), &own));
}

#[test]
fn a_rule_covers_tools_of_its_publisher_only() {
    let tool = implementing("storage:commit", Some("verbs"), "");
    let rule = rule("library = \"verbs\"");
    let decision = ask_of(&rule, (&tool, "mallory"), (&driver(""), "mallory"));
    assert!(matches!(decision, Decision::Deny(_)));
}

#[test]
fn a_rule_gives_what_stands_beside_it_and_a_person_is_still_asked() {
    let risky = implementing("storage:commit", None, "risk_level: 2\n");
    let decision = ask(&rule(""), &risky, &driver(""));
    assert!(matches!(decision, Decision::Ask(..)), "{decision:?}");
    assert_eq!(granted(&decision).len(), 1);
    assert!(allowed(&decision).preapproved.is_empty());
}

#[test]
fn nothing_is_given_to_a_tool_whose_effects_can_not_be_undone() {
    assert!(!is_given(
        &rule(""),
        &implementing("storage:commit", None, "risk_level: 3\n")
    ));
}

#[test]
fn what_a_rule_about_an_action_never_gives_is_refused() {
    for lines in [
        "preapproved = true",
        "reveal = [\"token\"]",
        "driver = \"acme.notes\"",
        "driver_publisher = \"labs\"",
        "plain_http = true",
        "addresses = [\"10.0.0.0/8\"]",
        "guest_headers = [\"cookie\"]",
        "names = [\"notes_append\"]",
        "confirms = [\"idempotent\"]",
        "prefer = true",
        "fallback = true",
    ] {
        let text = format!(
            "[[grant]]\npublisher = \"acme\"\naction = \"storage:commit\"\n{lines}\n\
             requires = [\"secret:token\"]\n"
        );
        let error = Policy::from_toml(&text).expect_err(lines);
        assert_eq!(error.code(), "policy-never-granted", "{lines}: {error}");
    }
    for (lines, code) in [
        ("library = \"verbs\"", "policy-missing-key"),
        ("action = \"Storage Commit\"", "policy-wrong-value"),
        ("action = \"@verbs/standard/commit\"", "policy-wrong-value"),
        ("action = \"*\"", "policy-wrong-value"),
    ] {
        let text = format!("[[grant]]\npublisher = \"acme\"\n{lines}\n");
        let error = Policy::from_toml(&text).expect_err(lines);
        assert_eq!(error.code(), code, "{lines}: {error}");
    }
    let error = Policy::from_toml("[[grant]]\naction = \"storage:commit\"\n").unwrap_err();
    assert_eq!(error.code(), "policy-missing-key");
}

#[test]
fn a_running_server_takes_over_no_rule_about_another_action() {
    let earlier = rule("library = \"verbs\"");
    assert!(earlier.narrows(&earlier).is_ok());
    assert!(rule("").narrows(&earlier).is_err());
    let all = policy("[[grant]]\npublisher = \"acme\"\nrequires = [\"database:counters\"]\n");
    assert!(all.narrows(&earlier).is_err());
    let none = policy("");
    assert!(none.narrows(&earlier).is_ok());
}

/// `storage:commit`, which changes a class that no host knows.
struct Changing;

impl SchemaScope for Changing {}

impl Scope for Changing {
    fn action(&self, _reference: &Reference) -> Option<Arc<Action>> {
        let text = "---\nschema: action/v1\nid: storage:commit\ndescription: Commits.\n\
                    mutates: [\"storage:*\", \"workspace:metadata\"]\napproval: on-mutate\n---\n";
        Action::parse("ACTION.md", text).value.map(Arc::new)
    }
}

#[test]
fn a_rule_accepts_the_unknown_classes_that_its_action_declares_and_no_others() {
    let tool = |mutates: &str| {
        let source = format!(
            "---\nid: notes.append\nname: A tool\ndescription: Does something.\nversion: 1.2.0\n\
             inputs: {{ type: object }}\noutputs: {{ type: object }}\n\
             implements: storage:commit\nmutates: [{mutates}]\n---\n"
        );
        Tool::parse("TOOL.md", &source, &Changing)
            .value
            .unwrap_or_else(|| panic!("{source}"))
    };
    let policy_of = |accepts: &str| {
        policy(&format!(
            "[[grant]]\npublisher = \"acme\"\naction = \"storage:commit\"\naccepts = [{accepts}]\n"
        ))
    };
    let both = policy_of("\"storage\", \"workspace\"");
    let declared = tool("\"storage:*\", \"workspace:metadata\"");
    assert!(is_given(&both, &declared));
    // The rule grants the sandbox nothing.
    assert!(granted(&ask(&both, &declared, &driver(""))).is_empty());
    assert!(!is_given(&policy_of("\"storage\""), &declared));
    // Capabilities that the tool adds to its action are not covered.
    let more = tool("\"storage:*\", \"workspace:metadata\", \"audit:log\"");
    let all = policy_of("\"storage\", \"workspace\", \"audit\"");
    assert!(!is_given(&all, &more));
}
