//! The corpus of AIP-39, `corpus/aip-39`: each document begins with comments that say which rule it stands for
//! (`rule`), the diagnostics that it gives (`gives`: code and line), and, where the rules of AIP-39 alone would say
//! otherwise (`schema`), why this host does not (`why`).
//!
//! [`crate::published`] states what AIP-39's schema says. It is the second opinion on every ACTION.md here.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use toolward_contract::action::{Action, Form, Implementor, Reference};
use toolward_contract::capability::CapabilitySet;
use toolward_contract::schema::Schema;
use toolward_contract::tool::{Approval, Tool};
use toolward_contract::{Diagnostic, NoScope, Scope};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/aip-39")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// One document of the corpus.
struct Case {
    name: String,
    is_valid: bool,
    text: String,
    /// The comments at its head, by their first word.
    notes: BTreeMap<String, String>,
}

impl Case {
    fn read(path: &Path, is_valid: bool) -> Case {
        let text = read(path);
        let comments = text
            .lines()
            .skip(1)
            .map_while(|line| line.strip_prefix("# "));
        let notes = comments.map(|comment| {
            let (key, note) = comment.split_once(": ").expect("a comment is `key: text`");
            (key.to_owned(), note.to_owned())
        });
        Case {
            name: path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned(),
            is_valid,
            notes: notes.collect(),
            text,
        }
    }

    fn note(&self, key: &str) -> &str {
        self.notes.get(key).map_or("", String::as_str)
    }

    fn is_action(&self) -> bool {
        self.name.ends_with(".action.md")
    }

    fn diagnostics(&self) -> Vec<Diagnostic> {
        if self.is_action() {
            Action::parse("ACTION.md", &self.text).diagnostics
        } else {
            Tool::parse("tools/books.post/TOOL.md", &self.text, &Books).diagnostics
        }
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (folder, is_valid) in [("valid", true), ("invalid", false)] {
        let entries = fs::read_dir(corpus().join(folder)).expect("the corpus is there");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        cases.extend(paths.map(|path| Case::read(&path, is_valid)));
    }
    cases.sort_by(|a, b| (a.is_valid, &a.name).cmp(&(b.is_valid, &b.name)));
    cases
}

/// The valid case whose name holds `name`.
fn case(name: &str) -> Case {
    let mut cases = cases().into_iter();
    let found = cases.find(|case| case.is_valid && case.name.contains(name));
    found.unwrap_or_else(|| panic!("no case {name}"))
}

/// A bundle with one action, which is part of a library.
struct Books;

impl Scope for Books {
    fn schema(&self, _id: &str) -> Option<Value> {
        None
    }

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
            let text = read(&corpus().join("scope/ledger-post.action.md"));
            let parsed = Action::parse("ACTION.md", &text);
            Arc::new(parsed.into_result().expect("the action is valid"))
        })
    }
}

#[test]
fn every_document_of_the_action_corpus_gives_what_its_rule_says() {
    let mut wrong = Vec::new();
    for case in cases() {
        let found = case.diagnostics();
        let gives: Vec<String> = found
            .iter()
            .map(|one| format!("{}:{}", one.code, one.line))
            .collect();
        let refused = found.iter().any(Diagnostic::is_error);
        if refused == case.is_valid || gives.join(" ") != case.note("gives") {
            wrong.push(format!("{} ({}): {found:?}", case.name, case.note("gives")));
        }
        if case.note("rule").is_empty() {
            wrong.push(format!("{}: stands for no rule", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The front matter as JSON, read by the reader under test: as a part of a contract's metadata, which is kept as
/// it is written.
fn as_json(text: &str) -> Value {
    let inner = text
        .strip_prefix("---\n")
        .and_then(|rest| rest.split_once("\n---\n"));
    let (inner, _) = inner.expect("front matter");
    let indented: String = inner.lines().map(|line| format!("    {line}\n")).collect();
    let tool = format!(
        "---\nname: A\nid: a.b\ndescription: A.\nversion: 1.0.0\ninputs: {{ type: object }}\noutputs: {{}}\n\
         metadata:\n  document:\n{indented}---\n"
    );
    let tool = Tool::parse("TOOL.md", &tool, &NoScope).into_result();
    tool.unwrap_or_else(|found| panic!("{found:?}\n{text}"))
        .metadata["document"]
        .clone()
}

#[test]
fn the_rules_of_actions_alone_say_the_same_wherever_no_reason_is_given() {
    let rules = Schema::compile(&crate::published::ACTION.schema(), &NoScope);
    let rules = rules.expect("the rules are a schema");
    let mut wrong = Vec::new();
    for case in cases().iter().filter(|case| case.is_action()) {
        let expected = match case.note("schema") {
            "" => case.is_valid,
            "valid" => true,
            "invalid" => false,
            other => panic!("{}: {other}", case.name),
        };
        let found = rules.validate(&as_json(&case.text));
        if found.is_ok() != expected {
            wrong.push(format!("{}: {found:?}", case.name));
        }
        let differs = expected != case.is_valid;
        if differs == case.note("why").is_empty() {
            wrong.push(format!("{}: a reason goes with a difference", case.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_action_corpus_is_large_enough() {
    let cases = cases();
    let actions = cases.iter().filter(|case| case.is_action());
    let (valid, invalid): (Vec<_>, Vec<_>) = actions.partition(|case| case.is_valid);
    assert!(valid.len() >= 40 && invalid.len() >= 60);
}

fn action(name: &str) -> Action {
    let case = case(name);
    let parsed = Action::parse("ACTION.md", &case.text);
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
    assert_eq!(
        (found.verb.as_deref(), found.effective_verb()),
        (None, Some("post"))
    );
    assert_eq!(found.target_kind, None);
    assert_eq!(found.effective_target_kind(), Some("ledger"));
    // What is written holds.
    assert_eq!(
        action("host-prefix").effective_target_kind(),
        Some("ledger")
    );
    assert_eq!(action("verb-differs").effective_verb(), Some("append"));
    assert_eq!(action("empty-words").effective_verb(), Some("post"));
    assert_eq!(action("id-plain").effective_verb(), None);
}

fn tool(name: &str) -> Tool {
    let parsed = Tool::parse("tools/books.post/TOOL.md", &case(name).text, &Books);
    parsed
        .into_result()
        .unwrap_or_else(|found| panic!("{name}: {found:?}"))
}

#[test]
fn an_implemented_action_keeps_the_form_that_it_was_written_in() {
    for (name, form, reference) in [
        ("-id.tool", Form::Id, "ledger:post"),
        ("-ref-id.tool", Form::Id, "ledger:post"),
        (
            "-registry.tool",
            Form::Registry,
            "@books/actions/standard/ledger-post",
        ),
        ("-file.tool", Form::Path, "./actions/ledger-post/ACTION.md"),
        (
            "-dotted-path.tool",
            Form::Path,
            "./.actions/ledger-post/ACTION.md",
        ),
        ("-inline.tool", Form::Inline, "my.local-action"),
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
