//! `toolward check`: diagnostics like those of a compiler, for people and for editors.

use std::collections::BTreeSet;

use crate::support::{EXAMPLES, Machine, root};

const TOOL_MD: &str = "b/tools/hostile.run/TOOL.md";

fn machine() -> Machine {
    let machine = Machine::new();
    crate::hostile::add(&machine, "b");
    machine
}

#[test]
fn every_example_is_clean() {
    let machine = Machine::new();
    for example in EXAMPLES {
        let folder = root().join("examples").join(example);
        let ended = machine
            .toolward("check --deny-warnings --json")
            .arg(folder)
            .ends(0);
        assert_eq!(ended.stdout, "", "{example}");
    }
    // All examples can also be checked at once.
    machine
        .toolward("check --deny-warnings")
        .arg(root().join("examples"))
        .ends(0);
}

#[test]
fn of_a_component_for_another_host_it_is_said_which() {
    let machine = machine();
    let name = "amplifier:modules/tool@1.0.0";
    let text = format!("(component (instance $i) (export \"{name}\" (instance $i)))");
    machine.write("theirs.wasm", wat::parse_str(text).unwrap());
    let shown = machine.toolward("inspect theirs.wasm").ends(0);
    let last = shown.stdout.lines().last().unwrap();
    assert!(last.starts_with("a module of Amplifier"), "{shown}");
    assert!(last.contains("only tools are run"), "{shown}");
    let shown = machine
        .toolward("inspect theirs.wasm --json")
        .ends(0)
        .json();
    assert_eq!(shown["world"], "amplifier", "{shown}");
    assert_eq!(shown["driver"], false, "{shown}");
}

#[test]
fn more_core_instances_than_a_host_takes_are_refused_with_the_number() {
    let machine = machine();
    let made = "(core instance (instantiate $m))".repeat(129);
    let component = wat::parse_str(format!("(component (core module $m) {made})")).unwrap();
    machine.write("b/drivers/hostile/driver.wasm", component);
    let lines = machine.toolward("check b --json").ends(1).json_lines();
    let said = "the component makes 129 core instances, the limit is 128";
    let refused = |line: &serde_json::Value| line["message"].as_str().unwrap().contains(said);
    assert!(lines.iter().any(refused), "{lines:#?}");
}

#[test]
fn each_line_of_json_is_one_diagnostic_with_its_place() {
    let machine = machine();
    let contract = machine
        .text(TOOL_MD)
        .replace("timeout_ms: 5000", "timeout_ms: 0")
        .replace("version: 1.0.0", "version: one")
        .replace("tags: [test]", "network: true");
    machine.write(TOOL_MD, &contract);
    let driver = machine.text("b/drivers/hostile/DRIVER.md");
    machine.write(
        "b/drivers/hostile/DRIVER.md",
        driver.replace("kind: component", "kind: 7"),
    );
    let lines = machine.toolward("check b --json").ends(1).json_lines();
    assert!(lines.len() >= 4, "{lines:#?}");
    for line in &lines {
        let keys: BTreeSet<&str> = line
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let known = [
            "code", "severity", "message", "file", "line", "column", "hint",
        ];
        assert!(keys.iter().all(|key| known.contains(key)), "{line}");
        let code = line["code"].as_str().unwrap();
        assert!(
            code.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
            "{line}"
        );
        assert!(["error", "warning", "note"].contains(&line["severity"].as_str().unwrap()));
        assert!(!line["message"].as_str().unwrap().is_empty());
        // The file exists, and the position is in it.
        let file = line["file"].as_str().unwrap();
        if file.ends_with(".wasm") {
            continue;
        }
        let text = machine.text(file);
        let number = line["line"].as_u64().unwrap();
        let found = text
            .lines()
            .nth(usize::try_from(number).unwrap() - 1)
            .unwrap();
        let column = line["column"].as_u64().unwrap();
        assert!(
            (1..=found.chars().count() as u64 + 1).contains(&column),
            "{line}"
        );
    }
    for (words, part) in [
        ("timeout_ms: 0", "timeout"),
        ("version: one", "version"),
        ("network: true", "network"),
    ] {
        let number = contract
            .lines()
            .position(|line| line.starts_with(words))
            .unwrap()
            + 1;
        let there = lines.iter().any(|line| {
            line["file"] == TOOL_MD && line["line"] == number && line.to_string().contains(part)
        });
        assert!(there, "nothing about line {number} ({words}) in {lines:#?}");
    }
}

#[test]
fn for_people_the_same_is_said_as_compilers_say_it() {
    let machine = machine();
    let contract = machine
        .text(TOOL_MD)
        .replace("timeout_ms: 5000", "timeout_ms: 0");
    let number = contract
        .lines()
        .position(|line| line.starts_with("timeout_ms"))
        .unwrap()
        + 1;
    machine.write(TOOL_MD, contract);
    let ended = machine.toolward("check b").ends(1);
    let there = ended
        .stdout
        .lines()
        .any(|line| line.starts_with(&format!("{TOOL_MD}:{number}:")) && line.contains(": error["));
    assert!(there, "{ended}");
    let shown = format!("\n  {number} | timeout_ms: 0\n");
    assert!(ended.stdout.contains(&shown), "{ended}");
    let caret = ended.stdout.split_once(&shown).unwrap().1;
    let caret = caret.lines().next().unwrap();
    let column = format!("  {number} | timeout_ms: ").len();
    assert_eq!(caret.trim_end().len(), column + 1, "{ended}");
    assert!(caret.ends_with('^'), "{ended}");
    assert!(ended.stderr.contains("1 error"), "{ended}");
}

#[test]
fn warnings_fail_only_when_asked_to() {
    let machine = machine();
    std::fs::rename(
        machine.path("b/tools/hostile.run"),
        machine.path("b/tools/another"),
    )
    .unwrap();
    let ended = machine.toolward("check b --json").ends(0);
    assert_eq!(ended.json_lines()[0]["code"], "folder-name", "{ended}");
    machine.toolward("check b --deny-warnings").ends(1);
}

#[test]
fn one_file_is_checked_as_part_of_its_bundle() {
    let machine = machine();
    let contract = machine
        .text(TOOL_MD)
        .replace("timeout_ms: 5000", "timeout_ms: 0");
    machine.write(TOOL_MD, contract);
    let lines = machine
        .toolward(&format!("check {TOOL_MD} --json"))
        .ends(1)
        .json_lines();
    assert_eq!(lines[0]["file"], TOOL_MD);
    machine
        .toolward("check b/drivers/hostile/DRIVER.md")
        .ends(0);
}

#[test]
fn a_packed_bundle_is_checked_too() {
    let machine = machine();
    machine.toolward("pack b -o packed").ends(0);
    machine.toolward("check packed").ends(0);
    machine.write("packed/tools.json", "{\"version\": 2, \"tools\": []}");
    let lines = machine.toolward("check packed --json").ends(1).json_lines();
    assert_eq!(lines[0]["code"], "index-entry-missing", "{lines:?}");
}

#[test]
fn what_is_not_there_can_not_be_checked() {
    let machine = machine();
    std::fs::create_dir(machine.path("empty")).unwrap();
    for path in ["empty", "gone", "b/gone.md"] {
        let lines = machine
            .toolward(&format!("check {path} --json"))
            .ends(1)
            .json_lines();
        assert_eq!(lines[0]["severity"], "error", "{path}: {lines:?}");
    }
}

#[test]
fn hostile_text_in_a_contract_reaches_no_terminal() {
    let machine = machine();
    let contract = machine
        .text(TOOL_MD)
        .replace("tags: [test]", "\"\\e[2Jevil\\u202e\": 1");
    machine.write(TOOL_MD, contract);
    for flag in ["", "--json"] {
        let ended = machine.toolward(&format!("check b {flag}")).ends(1);
        assert!(!ended.stdout.contains(['\u{1b}', '\u{202e}']), "{ended}");
    }
}

#[test]
fn a_code_is_explained_wherever_it_comes_from() {
    let machine = Machine::new();
    for code in [
        "unknown-field",
        "component-missing",
        "aml-type-unknown",
        "policy-unknown-key",
        "digest-mismatch",
        "nobody-trusted",
        "key-missing",
    ] {
        let shown = machine.toolward(&format!("check --explain {code}")).ends(0);
        let title = format!("error[{code}]: ");
        assert!(shown.stdout.starts_with(&title), "{shown}");
        let line = machine
            .toolward(&format!("check --explain {code} --json"))
            .ends(0)
            .json();
        assert_eq!(line["code"], code);
        assert!(
            shown
                .stdout
                .contains(line["meaning"].as_str().unwrap().trim_end_matches('.'))
        );
        if let Some(advice) = line["advice"].as_str() {
            assert!(shown.stdout.contains(advice), "{shown}");
        }
    }
    let refused = machine
        .toolward("check --explain digest-mismatsh --json")
        .ends(2)
        .json();
    assert_eq!(refused["error"]["code"], "code-unknown");
    assert_eq!(refused["error"]["hint"], "did you mean `digest-mismatch`?");
    machine.toolward("check --explain unknown-field b").ends(2);
}

#[test]
fn a_release_is_compared_with_the_one_before() {
    let machine = machine();
    machine.toolward("pack b -o old").ends(0);
    machine.toolward("check b --against old").ends(0);

    // An input that callers sent is no longer allowed.
    let contract = machine.text(TOOL_MD);
    let narrower = contract.replacen("type: object", "type: object\n  maxProperties: 3", 1);
    assert_ne!(narrower, contract);
    machine.write(TOOL_MD, &narrower);
    let lines = machine
        .toolward("check b --against old --json")
        .ends(1)
        .json_lines();
    let found = lines
        .iter()
        .find(|line| line["code"] == "contract-narrowed");
    let found = found.unwrap_or_else(|| panic!("{lines:#?}"));
    assert_eq!(found["file"], TOOL_MD);
    let place = narrower
        .lines()
        .position(|line| line.contains("maxProperties"));
    assert_eq!(found["line"], place.unwrap() + 1, "{found}");
    let hint = found["hint"].as_str().unwrap();
    assert!(hint.contains("2.0.0"), "{hint}");
    machine.toolward("check b").ends(0);

    // With a new major version it is a different contract.
    machine.write(
        TOOL_MD,
        narrower.replace("version: 1.0.0", "version: 2.0.0"),
    );
    let lines = machine
        .toolward("check b --against old --json")
        .end()
        .json_lines();
    assert!(
        !lines.iter().any(|line| line["code"] == "contract-narrowed"),
        "{lines:#?}"
    );

    let other = root().join("examples/bundles/text-stats.toolbundle");
    let refused = machine
        .toolward("check b --json --against")
        .arg(other)
        .ends(2)
        .json();
    assert_eq!(refused["error"]["code"], "bundle-other");
    machine.toolward("check b --against gone").ends(2);
}
