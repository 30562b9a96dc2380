//! Compares the output forms of Toolward with the files in `tests/forms`: the JSON of each command,
//! messages of MCP, events, rows of the ledger and cassettes. With `TOOLWARD_GOLDEN=write` the
//! files are written instead. Values that differ from run to run are replaced by placeholders.

mod commands;
mod normal;
mod rows;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use serde_json::{Map, Value};

use crate::cli_surface::commands;
use crate::screens::writes_golden_files;
use crate::support::{Machine, root};
use normal::Placeholders;

/// Columns of a golden file. A value that fits is written on one line.
const COLUMNS: usize = 120;

/// The forms of one group, by file and by case.
#[derive(Default)]
struct Forms(BTreeMap<String, Map<String, Value>>);

impl Forms {
    fn add(&mut self, file: &str, case: &str, value: Value) {
        let cases = self.0.entry(file.to_owned()).or_default();
        let mut case = case.to_owned();
        while cases.contains_key(&case) {
            case += ", again";
        }
        cases.insert(case, value);
    }
}

/// The groups. Each has its own machines.
const GROUPS: [fn(&mut Forms); 9] = [
    commands::use_and_look,
    commands::trust,
    commands::publish,
    commands::registry,
    commands::policy,
    commands::others,
    rows::ledger,
    rows::events,
    wire::messages,
];

/// Returns the current text of each golden file.
fn texts() -> &'static BTreeMap<String, String> {
    static TEXTS: OnceLock<BTreeMap<String, String>> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let made = std::thread::scope(|scope| {
            let threads = GROUPS.map(|group| {
                scope.spawn(move || {
                    let mut forms = Forms::default();
                    group(&mut forms);
                    forms
                })
            });
            threads.map(|thread| thread.join().unwrap())
        });
        let mut all = Forms::default();
        for (file, cases) in made.into_iter().flat_map(|forms| forms.0) {
            for (case, value) in cases {
                all.add(&file, &case, value);
            }
        }
        let text = |(file, cases)| {
            let value = Placeholders::default().value(Value::Object(cases));
            (format!("{file}.json"), shown(&value, 0) + "\n")
        };
        all.0.into_iter().map(text).collect()
    })
}

/// Formats a value for a golden file, so that changed values are on changed lines.
fn shown(value: &Value, depth: usize) -> String {
    let flat = value.to_string();
    if depth > 0 && 2 * depth + flat.len() <= COLUMNS {
        return flat;
    }
    let inner = |value: &Value| shown(value, depth + 1);
    let (open, close, members): (_, _, Vec<String>) = match value {
        Value::Array(all) => ('[', ']', all.iter().map(inner).collect()),
        Value::Object(members) => {
            let member = |(key, value): (&String, &Value)| {
                format!("{}: {}", Value::from(key.as_str()), inner(value))
            };
            ('{', '}', members.iter().map(member).collect())
        }
        _ => return flat,
    };
    let indent = "  ".repeat(depth);
    let members = members.join(&format!(",\n{indent}  "));
    format!("{open}\n{indent}  {members}\n{indent}{close}")
}

fn directory() -> PathBuf {
    root().join("tests/forms")
}

/// Returns the lines of one text that the other text lacks, each with a mark.
fn only<'a>(mark: char, text: &'a str, other: &'a str) -> impl Iterator<Item = String> + 'a {
    let others: BTreeSet<&str> = other.lines().collect();
    let own = text.lines().filter(move |line| !others.contains(line));
    own.map(move |line| format!("{mark} {line}"))
}

#[test]
fn each_form_is_as_in_its_file() {
    let mut differences = Vec::new();
    for (name, text) in texts() {
        let file = directory().join(name);
        if writes_golden_files() {
            fs::create_dir_all(directory()).unwrap();
            fs::write(file, text).unwrap();
            continue;
        }
        let golden = fs::read_to_string(file).unwrap_or_default();
        if *text != golden {
            differences.push(format!("tests/forms/{name}:"));
            differences.extend(only('-', &golden, text).chain(only('+', text, &golden)));
        }
    }
    assert!(
        differences.is_empty(),
        "not as in the files (TOOLWARD_GOLDEN=write writes them):\n{}",
        differences.join("\n")
    );
}

#[test]
fn each_file_has_a_form() {
    for entry in fs::read_dir(directory()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let skipped = name == format!("{}.json", commands::OF_A_REGISTRY);
        if !texts().contains_key(&name) && !skipped {
            assert!(
                writes_golden_files(),
                "tests/forms/{name} has no form any more"
            );
            fs::remove_file(entry.path()).unwrap();
        }
    }
}

/// Returns all commands without subcommands, as the help lists them.
fn leaves() -> &'static BTreeSet<String> {
    static LEAVES: OnceLock<BTreeSet<String>> = OnceLock::new();
    LEAVES.get_or_init(|| {
        let machine = Machine::new();
        let mut leaves = BTreeSet::new();
        let mut open = vec![String::new()];
        while let Some(path) = open.pop() {
            let help = machine.toolward(&format!("{path} --help")).ends(0).stdout;
            assert!(help.contains("--json"), "{path}");
            match help.contains("\nCommands:\n") {
                true => {
                    let below = commands(&help).into_iter();
                    open.extend(below.map(|name| format!("{path} {name}").trim().to_owned()));
                }
                false => drop(leaves.insert(path)),
            }
        }
        leaves
    })
}

#[test]
fn each_command_with_json_has_a_form() {
    let missing: Vec<&String> = leaves()
        .iter()
        .filter(|leaf| !commands::WITHOUT_JSON.contains(&leaf.as_str()))
        .filter(|leaf| !texts().contains_key(&format!("{}.json", commands::file(leaf))))
        .collect();
    assert!(missing.is_empty(), "no form of {missing:?}");
    for command in commands::WITHOUT_JSON {
        assert!(leaves().contains(command), "there is no {command}");
    }
}
