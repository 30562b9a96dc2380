//! `policy list`, `suggest` and `check`, `show --policy`, and `doctor`'s part of it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::{append, change, chosen, dev, lines, notes, notes_policy, state, under_work, written};
use crate::support::Machine;

#[test]
fn what_suggest_writes_is_all_that_a_bundle_needs_and_then_it_writes_nothing() {
    for (example, tool) in [
        ("files-search", "files.search"),
        ("http-fetch", "http.fetch"),
        ("kv-counter", "kv.counter"),
        ("notes-append", "notes.append"),
        ("text-digest", "text.digest"),
    ] {
        let machine = Machine::new();
        under_work(&machine, example);
        let suggest = format!("policy suggest --dev {example}");
        let first = machine.toolward(&suggest).ends(0);
        machine.configure(&chosen(&first.stdout, &machine.path("chosen")));
        machine.toolward("policy check").ends(0);
        assert_ne!(
            state(&machine, tool, &format!("--dev {example}")),
            "blocked"
        );
        let again = machine.toolward(&suggest).ends(0);
        assert!(again.stdout.contains("# No line is missing."), "{again}");
        assert!(
            again.stdout.lines().all(|line| line.starts_with('#')),
            "{again}"
        );
        // Without the added lines, the same lines are suggested again.
        let whole = machine
            .toolward(&suggest)
            .env("HOME", machine.path("no-home"))
            .ends(0);
        assert_eq!(lines(&whole.stdout), lines(&first.stdout));
    }
}

#[test]
fn suggest_tells_which_lines_wait_and_which_calls_ask() {
    let machine = notes();
    let suggested = machine
        .toolward("policy suggest --dev notes-append")
        .ends(0)
        .stdout;
    for part in [
        "# choose",
        "waits for your decision",
        "`preapproved = true`",
    ] {
        assert!(suggested.contains(part), "no {part:?} in {suggested}");
    }
    let json = machine
        .toolward("policy suggest notes.append@1 --dev notes-append --json")
        .ends(0)
        .json();
    assert!(
        json["lines"].as_str().unwrap().contains("[[workspace]]"),
        "{json}"
    );
    machine
        .toolward("policy suggest other.tool --dev notes-append")
        .ends(1)
        .says("tool-missing");
}

#[test]
fn explain_shows_declaration_rule_grant_and_reason_together() {
    let machine = notes();
    let explain = |flags: &str| {
        machine
            .toolward(&format!(
                "show notes.append --policy --dev notes-append {flags}"
            ))
            .ends(0)
    };
    let blocked = explain("").stdout;
    for part in [
        "blocked",
        "workspace:/notes",
        "no rule gives it",
        "[[grant]]",
    ] {
        assert!(blocked.contains(part), "no {part:?} in {blocked}");
    }
    machine.configure(&notes_policy(&machine, ""));
    let asks = explain("").stdout;
    let directory = machine.path("my-notes");
    for part in [
        "once a person has said yes",
        "the contract changes it",
        "toolward.toml:5",
        "read-write",
        directory.to_str().unwrap(),
        "asks because it changes something",
    ] {
        assert!(asks.contains(part), "no {part:?} in {asks}");
    }
    let json = explain("--json").json();
    let driver = &json["drivers"][0];
    assert_eq!(driver["outcome"], "ask", "{json}");
    assert_eq!(driver["capabilities"][0]["declared"], "workspace:/notes");
    assert_eq!(driver["capabilities"][0]["rules"][0]["line"], 5);
    assert_eq!(driver["lines_to_add"], "");
    // The line number is that of the rule.
    let file = fs::read_to_string(super::users_file(&machine)).unwrap();
    assert_eq!(file.lines().nth(4), Some("[[grant]]"));
}

#[test]
fn explain_knows_what_tools_of_the_bundle_do_that_a_tool_calls() {
    let machine = Machine::new();
    crate::hostile::add(&machine, "b");
    let reads = machine.text("b/tools/hostile.run/TOOL.md");
    let calls = reads.replace(
        "idempotent: true",
        "idempotent: true\nrequires: { tools: [hostile.other] }",
    );
    machine.write("b/tools/hostile.run/TOOL.md", calls);
    let other = reads
        .replace("id: hostile.run", "id: hostile.other")
        .replace(
            "idempotent: true",
            "idempotent: false\nmutates: [\"database:d\"]\nrisk_level: 2",
        );
    machine.write("b/tools/hostile.other/TOOL.md", other);
    change(
        &machine,
        "b/drivers/hostile/DRIVER.md",
        "implements:\n",
        "implements:\n  - tool: hostile.other\n    version: \"^1.0.0\"\n",
    );
    let publisher = dev(&machine, "b");
    machine.configure(&format!(
        "[[grant]]\npublisher = {publisher:?}\nrequires = [\"tool:hostile.other\"]\n\
         mutates = [\"database:d\"]\n"
    ));
    let words = "show hostile.run --policy --dev b --json";
    let json = machine.toolward(words).ends(0).json();
    let driver = &json["drivers"][0];
    assert_eq!(driver["outcome"], "ask", "{json}");
    let reasons: Vec<&Value> = driver["ask"].as_array().unwrap().iter().collect();
    let named: Vec<&str> = reasons
        .iter()
        .map(|reason| reason["reason"].as_str().unwrap())
        .collect();
    assert_eq!(named, ["reaches-mutation", "reaches-risk"], "{json}");
    // A call behaves as shown.
    let ended = machine
        .toolward("call hostile.run --dev b --set do=echo")
        .ends(4);
    ended.says("toolward:approval_denied");
    assert!(
        ended
            .stderr
            .contains("a tool that it can call changes something"),
        "{ended}"
    );
}

#[test]
fn list_says_of_each_tool_what_became_of_it() {
    let machine = notes();
    let list = |flags: &str| {
        machine
            .toolward(&format!("policy list --dev notes-append {flags}"))
            .ends(0)
            .stdout
    };
    assert!(list("").starts_with("BLOCKED  notes.append@1 with notes-append: "));
    machine.configure(&notes_policy(&machine, ""));
    assert!(list("").starts_with("asks     notes.append@1 with notes-append: "));
    machine.configure(&notes_policy(&machine, "preapproved = true"));
    assert_eq!(list(""), "allowed  notes.append@1 with notes-append\n");
}

#[test]
fn check_counts_what_is_there_and_warns_of_slips() {
    let machine = notes();
    machine
        .toolward("publisher keys new --out acme.pem")
        .ends(0);
    machine.write(
        "p.toml",
        "[[publisher]]\nname = \"acme\"\nkey_files = [\"acme.pub.pem\"]\nprefixes = [\"acme\"]\n\n\
         [[grant]]\npublisher = \"acme\"\n\n[[grant]]\npublisher = \"amce\"\n\n\
         [[workspace]]\npath = \"/notes\"\ndirectory = \"gone\"\n",
    );
    let ended = machine.toolward("policy check p.toml").ends(0);
    assert!(ended.stdout.contains("2 grants, 1 workspace"), "{ended}");
    ended.warns("about amce, and no [[publisher]] has that name");
    ended.warns("is not there");
    let json = machine
        .toolward("policy check p.toml --json")
        .ends(0)
        .json();
    assert_eq!(json["counts"]["grant"], 2);
    assert_eq!(json["warnings"].as_array().unwrap().len(), 2, "{json}");
    machine.write("p.toml", "[network]\nca_file = \"acme.pem\"\n");
    machine
        .toolward("policy check p.toml")
        .ends(1)
        .says("ca-file-invalid");
}

/// The checks of `doctor` with one of these names.
fn doctor(machine: &Machine, name: &str) -> Vec<Value> {
    let report = machine
        .toolward("doctor --json")
        .env("MY_TOKEN", "the-value-itself")
        .end();
    for text in [&report.stdout, &report.stderr] {
        assert!(!text.contains("the-value"), "{report}");
    }
    let checks = report.json()["checks"].as_array().unwrap().clone();
    checks
        .into_iter()
        .filter(|check| check["name"] == name)
        .collect()
}

#[test]
fn doctor_looks_behind_every_grant_and_shows_no_secret() {
    let machine = notes();
    let secret = |slug: &str, source: &str| {
        format!(
            "[[secret]]\nslug = {slug:?}\npublisher = \"acme\"\n{source}\n\
             origin = \"https://api.example\"\nheader = \"authorization\"\n"
        )
    };
    machine.configure(&format!(
        "[limits]\nfuel = 1000\n{}{}{}{}{}[[workspace]]\npath = \"/gone\"\ndirectory = {:?}\n",
        notes_policy(&machine, ""),
        secret("set", "env = \"MY_TOKEN\""),
        secret("unset", "env = \"MY_OTHER\""),
        secret("open", "file = \"open.txt\""),
        secret("own", ""),
        machine.path("no-directory"),
    ));
    let file = super::users_file(&machine).with_file_name("open.txt");
    fs::write(&file, "the-value-itself").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let state = |found: &[Value], part: &str| -> String {
        let check = found
            .iter()
            .find(|check| check["message"].as_str().unwrap().contains(part))
            .unwrap_or_else(|| panic!("no {part} in {found:?}"));
        check["state"].as_str().unwrap().to_owned()
    };
    let secrets = doctor(&machine, "secret");
    assert_eq!(
        state(
            &secrets,
            "set of acme, from the variable MY_TOKEN, has a value"
        ),
        "ok"
    );
    assert_eq!(state(&secrets, "unset of acme"), "warning");
    assert_eq!(state(&secrets, "open of acme"), "error");
    assert_eq!(state(&secrets, "own of acme"), "note");
    let workspaces = doctor(&machine, "workspace");
    assert_eq!(state(&workspaces, "/notes"), "ok");
    assert_eq!(state(&workspaces, "/gone"), "warning");
    assert_eq!(
        state(&doctor(&machine, "limits"), "fuel at most 1000"),
        "ok"
    );
    assert_eq!(state(&doctor(&machine, "policy"), "[[grant]]: 1"), "ok");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(state(&doctor(&machine, "secret"), "open of acme"), "ok");
}

#[test]
fn doctor_finds_a_workspace_that_no_guest_may_have() {
    let machine = notes();
    let inside = super::users_file(&machine).with_file_name("notes");
    let policy = notes_policy(&machine, "");
    let directory = machine.path("my-notes");
    machine.configure(&policy.replace(directory.to_str().unwrap(), inside.to_str().unwrap()));
    let found = doctor(&machine, "workspaces");
    assert_eq!(found[0]["state"], "error", "{found:?}");
    machine.configure("tols = 1\n");
    assert_eq!(doctor(&machine, "policy")[0]["state"], "error");
    machine.configure(&policy);
    assert_eq!(doctor(&machine, "workspaces"), Vec::<Value>::new());
}

#[test]
fn doctor_checks_the_files_that_it_is_told_of() {
    let machine = notes();
    let policy = notes_policy(&machine, "");
    let directory = machine.path("my-notes");
    let within = machine.path("conf/trust/notes");
    machine.write("conf/toolward.toml", "");
    machine.write(
        "layer.toml",
        policy.replace(directory.to_str().unwrap(), within.to_str().unwrap()),
    );
    let words = "doctor --config conf/toolward.toml --policy-file layer.toml --json";
    let told = machine.toolward(words).ends(1).json();
    let checks = told["checks"].as_array().unwrap();
    let state = |name: &str| {
        let mut found = checks.iter().filter(|check| check["name"] == name);
        found.next().map(|check| check["state"].as_str().unwrap())
    };
    assert_eq!(state("policy"), Some("ok"), "{told}");
    assert_eq!(state("workspaces"), Some("error"), "{told}");
    machine.toolward("doctor --json").ends(0);
    machine.toolward("doctor --config none.toml --json").ends(1);
}

#[test]
fn looking_changes_nothing() {
    let machine = notes();
    machine.configure(&notes_policy(&machine, "preapproved = true"));
    let before = crate::support::tree(&machine.home());
    for words in [
        "policy list --dev notes-append",
        "show notes.append --policy --dev notes-append",
        "policy suggest --dev notes-append",
        "policy check",
        "doctor",
    ] {
        machine.toolward(words).ends(0);
    }
    assert_eq!(crate::support::tree(&machine.home()), before);
    assert_eq!(written(&machine), [""; 0]);
    append(&machine, "", "a").ends(0);
}
