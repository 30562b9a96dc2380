//! The corpus of AIP-39, `corpus/aip-39`. Each document starts with comments: the rule that it
//! tests (`rule`), its diagnostics (`gives`: code and line), and, if the rules of AIP-39 alone give
//! another result (`schema`), the reason for the difference (`why`).
//!
//! [`crate::published`] has AIP-39's schema, which gives the second opinion on every ACTION.md here.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolward_contract::action::{Action, Implementor, Reference, ReferenceForm};
use toolward_contract::capability::CapabilitySet;
use toolward_contract::tool::{Approval, Tool};
use toolward_contract::{Diagnostic, NoScope, SchemaScope, Scope};

use crate::noted::{self, Document};
use crate::second_opinion::disagreements;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/aip-39")
}

fn documents() -> Vec<Document> {
    noted::documents(&corpus())
}

fn is_action(document: &Document) -> bool {
    document.name.ends_with(".action.md")
}

fn diagnostics(document: &Document) -> Vec<Diagnostic> {
    if is_action(document) {
        Action::parse("ACTION.md", &document.text).diagnostics
    } else {
        Tool::parse("tools/books.post/TOOL.md", &document.text, &Books).diagnostics
    }
}

/// The valid document whose name contains `name`.
fn document(name: &str) -> Document {
    let mut documents = documents().into_iter();
    let found = documents.find(|one| one.is_valid && one.name.contains(name));
    found.unwrap_or_else(|| panic!("no document {name}"))
}

/// A bundle with one action, which is part of a library.
struct Books;

impl SchemaScope for Books {}

impl Scope for Books {
    fn action(&self, reference: &Reference) -> Option<Arc<Action>> {
        let is_there = match reference {
            Reference::Id(id) => id == "ledger:post",
            Reference::Registry(registry) => {
                (&*registry.owner, &*registry.library, &*registry.action)
                    == ("books", "actions/standard", "ledger-post")
            }
            Reference::Path(path) => path == "actions/ledger-post/ACTION.md",
        };
        is_there.then(|| {
            let text = fs::read_to_string(corpus().join("scope/ledger-post.action.md"));
            let text = text.expect("the action is there");
            let parsed = Action::parse("ACTION.md", &text);
            Arc::new(parsed.into_result().expect("the action is valid"))
        })
    }
}

#[test]
fn every_document_of_the_action_corpus_gives_what_its_rule_says() {
    let wrong = noted::wrong(&documents(), diagnostics);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_rules_of_actions_alone_say_the_same_wherever_no_reason_is_given() {
    let documents = documents();
    let actions = documents.iter().filter(|one| is_action(one));
    let wrong = disagreements(actions, &crate::published::ACTION.schema());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_action_corpus_is_large_enough() {
    let documents = documents();
    let actions = documents.iter().filter(|one| is_action(one));
    let (valid, invalid): (Vec<_>, Vec<_>) = actions.partition(|one| one.is_valid);
    assert!(valid.len() >= 40 && invalid.len() >= 60);
}

fn action(name: &str) -> Action {
    let parsed = Action::parse("ACTION.md", &document(name).text);
    parsed
        .into_result()
        .unwrap_or_else(|found| panic!("{name}: {found:?}"))
}

#[test]
fn every_field_of_an_action_is_read() {
    let action = action("every-field.action");
    assert_eq!(action.id, "ledger:post");
    assert_eq!(action.name, None);
    assert_eq!(
        action.description.as_deref(),
        Some("Writes one entry into a ledger.")
    );
    assert_eq!(action.version, semver::Version::new(3, 0, 1));
    assert_eq!(action.category.as_deref(), Some("bookkeeping"));
    assert_eq!(action.verb.as_deref(), Some("post"));
    assert_eq!(action.target_kind.as_deref(), Some("ledger"));
    assert_eq!(
        action.mutates.to_string(),
        "[network:books.example.com, database:ledger]"
    );
    assert_eq!(
        action.requires.capabilities.to_string(),
        "[network:books.example.com, secret:books-key, tool:ledger.read]"
    );
    assert_eq!(
        (action.approval, action.risk_level),
        (Approval::OnMutate, 2)
    );
    assert_eq!(action.fires_events, ["ledger.opened", "ledger.posted"]);
    let hints = action.implementations.iter();
    let hints: Vec<_> = hints.map(|hint| (hint.kind, &*hint.reference)).collect();
    assert_eq!(
        hints,
        [
            (Implementor::Tool, "books.post"),
            (Implementor::Driver, "@books/drivers/http")
        ]
    );
    assert_eq!(action.tags, ["money", "books"]);
    let [example] = action.examples.as_slice() else {
        panic!("{:?}", action.examples)
    };
    assert_eq!(example.name, "An invoice is paid");
    assert!(example.scenario.starts_with("The bank"));
    assert_eq!(example.note.as_deref(), Some("Nobody is asked twice."));
    assert_eq!(action.metadata["books.example"]["colour"], "blue");
    assert!(action.body.contains("One more row."));
}

#[test]
fn what_an_action_does_not_say_is_its_default_or_its_id() {
    let found = action("minimal.action");
    assert_eq!(found.version, semver::Version::new(1, 0, 0));
    assert_eq!(
        (found.approval.clone(), found.risk_level),
        (Approval::Auto, 0)
    );
    assert!(found.mutates.is_empty() && found.requires.is_empty());
    assert_eq!((&found.verb, &found.target_kind), (&None, &None));
    assert_eq!(found.effective_target_kind(), Some("ledger"));
    // A written `target_kind` takes precedence over the id.
    assert_eq!(
        action("host-prefix").effective_target_kind(),
        Some("ledger")
    );
}

fn tool(name: &str) -> Tool {
    let parsed = Tool::parse("tools/books.post/TOOL.md", &document(name).text, &Books);
    parsed
        .into_result()
        .unwrap_or_else(|found| panic!("{name}: {found:?}"))
}

#[test]
fn an_implemented_action_keeps_the_form_that_it_was_written_in() {
    for (name, form, reference) in [
        ("-id.tool", ReferenceForm::Id, "ledger:post"),
        ("-ref-id.tool", ReferenceForm::Id, "ledger:post"),
        (
            "-registry.tool",
            ReferenceForm::Registry,
            "@books/actions/standard/ledger-post",
        ),
        (
            "-file.tool",
            ReferenceForm::Path,
            "./actions/ledger-post/ACTION.md",
        ),
        (
            "-dotted-path.tool",
            ReferenceForm::Path,
            "./.actions/ledger-post/ACTION.md",
        ),
        ("-inline.tool", ReferenceForm::Inline, "my.local-action"),
    ] {
        let implements = tool(name).implements.expect(name);
        assert_eq!((implements.form, &*implements.reference), (form, reference));
    }
}

#[test]
fn a_tool_and_its_action_merge_to_the_stricter_of_both() {
    let set = |text: &str| -> CapabilitySet {
        let parts = text.split(' ');
        parts
            .map(|one| one.parse().expect("a capability"))
            .collect()
    };
    let floor = "network:books.example.com secret:books-key tool:ledger.read";
    let inherits = tool("-inherits.tool");
    assert_eq!(inherits.mutates, set("database:ledger"));
    assert_eq!(inherits.requires.capabilities, set(floor));
    assert_eq!(
        (inherits.approval, inherits.risk_level),
        (Approval::OnMutate, 1)
    );
    assert_eq!(inherits.fires_events, ["ledger.posted", "ledger.read"]);

    let narrows = tool("-narrows.tool");
    assert_eq!(narrows.mutates, set("database:ledger database:archive"));
    assert_eq!(
        narrows.requires.capabilities,
        set(&format!(
            "{floor} network:mirror.example.com secret:mirror-key"
        ))
    );
    assert_eq!(
        (narrows.approval, narrows.risk_level),
        (Approval::Always, 3)
    );
    assert_eq!(narrows.fires_events, ["ledger.posted", "ledger.mirrored"]);
}

#[test]
fn a_policy_of_a_tool_never_stands_in_for_what_its_action_asks() {
    let merged = |floor: &str, own: &str| {
        let text = format!(
            "---\nname: A\nid: a.b\ndescription: A.\nversion: 1.0.0\ninputs: {{ type: object }}\noutputs: {{}}\n\
             implements: {{ inline: {{ id: \"a:b\", approval: \"{floor}\" }} }}\napproval: \"{own}\"\n---\n"
        );
        let tool = Tool::parse("TOOL.md", &text, &NoScope).into_result();
        tool.expect("it narrows").approval.to_string()
    };
    assert_eq!(merged("always", "policy:mine"), "always");
    assert_eq!(merged("policy:theirs", "policy:mine"), "always");
    assert_eq!(merged("policy:theirs", "policy:theirs"), "policy:theirs");
    assert_eq!(merged("policy:theirs", "always"), "always");
    assert_eq!(merged("on-mutate", "policy:mine"), "policy:mine");
    assert_eq!(merged("auto", "on-mutate"), "on-mutate");
}
