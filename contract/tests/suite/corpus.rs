//! The golden corpus: next to every file are its expected diagnostics, one per line as
//! `code severity line:column message`. `BLESS=1 cargo test` writes them; review the difference.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use toolward_contract::action::{Action, Reference};
use toolward_contract::driver::{Driver, ForeignWorld};
use toolward_contract::index::Index;
use toolward_contract::prompt::Prompt;
use toolward_contract::resource::Resource;
use toolward_contract::tool::Tool;
use toolward_contract::{Diagnostic, NoScope, Parsed, SchemaScope, Scope, define_tool, diagnostic};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A scope with `corpus/scope` as the rest of the bundle.
struct Bundle;

impl SchemaScope for Bundle {
    fn schema(&self, id: &str) -> Option<Value> {
        let text = fs::read_to_string(corpus().join(format!("scope/schemas/{id}.json"))).ok()?;
        serde_json::from_str(&text).ok()
    }
}

impl Scope for Bundle {
    fn action(&self, reference: &Reference) -> Option<Arc<Action>> {
        let known = match reference {
            Reference::Id(id) => id == "storage:commit",
            Reference::Registry(registry) => {
                registry.to_string() == "@examples/actions/storage-commit"
            }
            Reference::Path(path) => path == "actions/storage-commit/ACTION.md",
        };
        known.then(|| {
            let source = read(&corpus().join("scope/actions/storage-commit.action.md"));
            let parsed = Action::parse("ACTION.md", &source);
            Arc::new(parsed.into_result().expect("the action is valid"))
        })
    }

    fn is_action_elsewhere(&self, reference: &Reference) -> bool {
        matches!(reference, Reference::Registry(registry) if registry.owner == "elsewhere")
    }
}

fn contract() -> Tool {
    scoped("image.create")
}

fn scoped(id: &str) -> Tool {
    let source = read(&corpus().join(format!("scope/{id}.tool.md")));
    Tool::parse("TOOL.md", &source, &NoScope)
        .into_result()
        .expect("the contract is valid")
}

/// The diagnostics of the attachments of a version 1 document, with its contracts.
fn attached(name: &str, text: &str) -> Vec<Diagnostic> {
    let index = Index::parse(name, text.as_bytes(), &Bundle)
        .into_result()
        .expect("the index alone is valid");
    let contracts = index.contracts();
    let pairs = index.tools.iter().zip(&contracts);
    pairs
        .filter_map(|(entry, contract)| entry.driver(contract, name)?.err())
        .collect()
}

/// The diagnostics of a file, read as the format of its name's ending.
fn diagnostics(name: &str, text: &str) -> Vec<Diagnostic> {
    fn of<T>(parsed: Parsed<T>) -> Vec<Diagnostic> {
        let refused = parsed.diagnostics.iter().any(Diagnostic::is_error);
        assert_eq!(
            parsed.value.is_none(),
            refused,
            "a value comes exactly without errors"
        );
        parsed.diagnostics
    }
    if name.ends_with(".tool.md") {
        of(Tool::parse(name, text, &Bundle))
    } else if name.ends_with(".pair.driver.md") {
        let driver = Driver::parse(name, text)
            .into_result()
            .expect("the driver alone is valid");
        let mut found = driver.check_against(&contract(), name);
        found.extend(driver.check_against(&scoped("item.read"), name));
        found
    } else if name.ends_with(".driver.md") {
        of(Driver::parse(name, text))
    } else if name.ends_with(".action.md") {
        of(Action::parse(name, text))
    } else if name.ends_with(".prompt.md") {
        of(Prompt::parse(name, text))
    } else if name.ends_with(".resource.md") {
        of(Resource::parse(name, text))
    } else if name.ends_with(".attach.tools.json") {
        attached(name, text)
    } else if name.ends_with(".agree.tools.json") {
        let index = Index::parse(name, text.as_bytes(), &Bundle)
            .into_result()
            .expect("the index alone is valid");
        let source = read(&corpus().join("scope/image-driver.driver.md"));
        let driver = Driver::parse("DRIVER.md", &source)
            .into_result()
            .expect("the driver is valid");
        index
            .agrees(name, &[(&contract(), &[&driver])])
            .err()
            .unwrap_or_default()
    } else if name.ends_with(".tools.json") {
        of(Index::parse(name, text.as_bytes(), &Bundle))
    } else if name.ends_with(".define.json") {
        of(define_tool(
            &serde_json::from_str(text).expect("a definition is JSON"),
        ))
    } else {
        panic!("{name}: no parser for this ending")
    }
}

fn lines(found: &[Diagnostic]) -> String {
    let line = |d: &Diagnostic| {
        let hint = d
            .hint
            .as_ref()
            .map(|hint| format!(" [{hint}]"))
            .unwrap_or_default();
        format!(
            "{} {} {}:{} {}{hint}\n",
            d.code,
            d.severity,
            d.line,
            d.column,
            d.message.replace('\n', " ")
        )
    };
    found.iter().map(line).collect()
}

fn cases(folder: &str) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(corpus().join(folder)).expect("the corpus is there");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut cases: Vec<(String, PathBuf)> = paths
        .map(|path| {
            (
                path.file_name()
                    .expect("a name")
                    .to_string_lossy()
                    .into_owned(),
                path,
            )
        })
        .filter(|(name, _)| !name.ends_with(".expected"))
        .collect();
    cases.sort();
    cases
}

/// Runs a folder; returns the codes seen and the differences from the expectations.
fn run(folder: &str) -> (BTreeSet<&'static str>, Vec<String>) {
    let (mut codes, mut wrong) = (BTreeSet::new(), Vec::new());
    for (name, path) in cases(folder) {
        let found = diagnostics(&name, &read(&path));
        codes.extend(found.iter().map(|d| d.code));
        let refused = found.iter().any(Diagnostic::is_error);
        if refused != (folder == "invalid") {
            wrong.push(format!(
                "{folder}/{name}: refused is {refused}\n{}",
                lines(&found)
            ));
        }
        let errors: BTreeSet<&str> = found
            .iter()
            .filter(|d| d.is_error())
            .map(|d| d.code)
            .collect();
        if errors.len() > 1 {
            wrong.push(format!("{folder}/{name}: one rule each, found {errors:?}"));
        }
        let expectation = path.with_file_name(format!("{name}.expected"));
        if std::env::var_os("BLESS").is_some() {
            fs::write(&expectation, lines(&found)).expect("an expectation can be written");
        }
        match fs::read_to_string(&expectation) {
            Ok(expected) if expected == lines(&found) => {}
            Ok(expected) => wrong.push(format!(
                "{folder}/{name}:\n  expected {expected}  found    {}",
                lines(&found)
            )),
            Err(_) => wrong.push(format!(
                "{folder}/{name}: no expectation {}",
                expectation.display()
            )),
        }
    }
    (codes, wrong)
}

/// Cases too large to keep as files: code, ending, text.
fn generated() -> Vec<(&'static str, &'static str, String)> {
    let head = "---\nname: Sample\nid: sample.tool\ndescription: Does something small.\nversion: 1.0.0\noutputs: { type: object }\n";
    let index = |schema: Value| {
        let entry = json!({
            "id": "sample", "description": "Sample.", "transport": { "kind": "exec", "command": "/bin/true" },
            "input_schema": schema, "result_schema": {},
        });
        json!({ "version": 1, "tools": [entry] }).to_string()
    };
    let numbers: Vec<u32> = (0..10_001).collect();
    let fan: serde_json::Map<String, Value> = (0..40)
        .map(|step| {
            let next = json!({ "$ref": format!("#/$defs/d{}", (step + 1).min(39)) });
            let schema = if step < 39 {
                json!({ "allOf": [next, next] })
            } else {
                json!({})
            };
            (format!("d{step}"), schema)
        })
        .collect();
    vec![
        (
            "file-too-large",
            "x.tool.md",
            format!(
                "{head}inputs: {{ type: object }}\n---\n{}",
                "x".repeat(1 << 20)
            ),
        ),
        (
            "front-matter-too-large",
            "x.tool.md",
            format!(
                "{head}inputs: {{ type: object }}\n#{}\n---\n",
                "x".repeat(1 << 16)
            ),
        ),
        (
            "schema-too-large",
            "x.tools.json",
            index(json!({ "enum": numbers })),
        ),
        (
            "schema-cost",
            "x.tools.json",
            index(json!({ "$ref": "#/$defs/d0", "$defs": fan })),
        ),
        ("json-too-large", "x.tools.json", " ".repeat((1 << 20) + 1)),
        (
            "json-too-many",
            "x.tools.json",
            format!("[{}0]", "0,".repeat(250_000)),
        ),
    ]
}

/// The world of another host that the cases name, as its adapter registers it.
static WORLD: ForeignWorld = ForeignWorld {
    name: "amplifier-tool",
    interfaces: "amplifier:modules/",
    functions: &["amplifier:modules/tool@1.0.0#execute"],
    word: "amplifier",
    component: "a module of Amplifier",
    tool: "a tool of Amplifier",
    unusable: "",
    output: |_| unreachable!("nothing is called"),
};

#[test]
fn every_case_gives_its_expected_diagnostics_and_every_code_has_a_case() {
    WORLD.register().unwrap();
    let (mut codes, mut wrong) = run("invalid");
    let (warned, differ) = run("valid");
    codes.extend(warned);
    wrong.extend(differ);
    for (code, ending, text) in generated() {
        let found = diagnostics(ending, &text);
        match found.as_slice() {
            [only] if only.code == code => {
                codes.insert(only.code);
            }
            _ => wrong.push(format!("generated {code}: found {}", lines(&found))),
        }
    }
    for info in diagnostic::codes() {
        if !codes.contains(info.code) {
            wrong.push(format!("no case for the code {}", info.code));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn the_corpus_is_large_enough_and_complete() {
    assert!(cases("invalid").len() >= 60);
    for folder in ["valid", "invalid"] {
        let expectations = fs::read_dir(corpus().join(folder)).expect("the corpus is there");
        let count = expectations
            .filter(|entry| {
                entry
                    .as_ref()
                    .is_ok_and(|entry| entry.path().extension().is_some_and(|e| e == "expected"))
            })
            .count();
        assert_eq!(
            count,
            cases(folder).len(),
            "{folder}: an expectation without a case"
        );
    }
}
