//! `toolward demo`: a hostile tool is stopped, an agent gets the tools with the printed block, and
//! everything is removed again.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::mcp::names::listed;
use crate::mcp::raw::Raw;
use crate::mistakes::granting;
use crate::support::{Machine, tree};

fn directory(machine: &Machine) -> PathBuf {
    machine.home().join(".local/state/toolward-demo")
}

/// Makes the demo, and returns its JSON.
fn made(machine: &Machine) -> Value {
    machine.toolward("demo --json").ends(0).json()
}

#[test]
fn each_attempt_of_the_hostile_tool_is_stopped_by_what_has_to_stop_it() {
    let machine = Machine::new();
    let demo = made(&machine);
    let canary = fs::read_to_string(directory(&machine).join("canary.txt")).unwrap();
    assert!(!demo.to_string().contains(canary.trim()), "{demo}");
    let attempts = demo["attempts"].as_array().unwrap();
    let stopped: Vec<(&str, &str)> = attempts
        .iter()
        .map(|attempt| {
            assert_eq!(attempt["stopped"], true, "{attempt}");
            let text = |name: &str| attempt[name].as_str().unwrap();
            (text("title"), text("stopped_by"))
        })
        .collect();
    for (attempt, by) in [
        (canary_file(&machine).as_str(), "not in the sandbox"),
        ("/inbox/../canary.txt", "recorded: path"),
        ("/inbox/link.txt", "recorded: path"),
        ("https://collector.example/", "recorded: network"),
        ("http://127.0.0.1:", "recorded: network"),
        ("run for ever", "timeout"),
        ("take all memory", "toolward:memory_exceeded"),
    ] {
        let met = stopped
            .iter()
            .any(|(title, stopped_by)| title.contains(attempt) && stopped_by.contains(by));
        assert!(met, "{attempt} by {by}: {stopped:?}");
    }
    assert_eq!(stopped.len(), 7);
}

fn canary_file(machine: &Machine) -> String {
    directory(machine).join("canary.txt").display().to_string()
}

#[test]
fn all_of_it_lies_in_one_private_directory_and_the_key_in_none() {
    let machine = Machine::new();
    made(&machine);
    let below = tree(&machine.home());
    let state = ".local/state/toolward-demo/";
    assert_eq!(below[state], "700");
    for name in below.keys() {
        assert!(state.starts_with(name) || name.starts_with(state), "{name}");
    }
    // The cache's own key, which signs compiled drivers, is in its private folder.
    let files = below.keys().filter(|name| !name.ends_with('/'));
    for name in files.filter(|name| !name.contains("/cache/private/")) {
        let bytes = fs::read(machine.home().join(name)).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("PRIVATE KEY"), "{name}");
    }
    // The user's own installation does not contain the demo.
    machine.toolward("call demo.words --set text=a").ends(2);
    machine
        .toolward("trust list --json")
        .end()
        .stdout
        .lines()
        .for_each(|line| assert!(!line.contains("toolward-demo"), "{line}"));
}

#[test]
fn an_agent_gets_the_tools_by_the_printed_block_alone() {
    let machine = Machine::new();
    let demo = made(&machine);
    let block: Value = serde_json::from_str(demo["block"].as_str().unwrap()).unwrap();
    let entry = &block["mcpServers"]["toolward-demo"];
    let mut command = machine.program(entry["command"].as_str().unwrap());
    command.args(
        entry["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|flag| flag.as_str().unwrap()),
    );
    let mut agent = Raw::open(command, json!({}));
    let tools = listed(&mut agent);
    let mut names: Vec<&str> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["demo_note", "demo_thief", "demo_words"]);
    agent.call(1, "demo_words", &json!({"text": "one two"}));
    let answer = agent.answer(1);
    assert_eq!(
        answer["result"]["structuredContent"]["words"], 2,
        "{answer}"
    );
    // A change needs a person, and this client can't ask one.
    agent.call(2, "demo_note", &json!({"text": "Tea"}));
    let answer = agent.answer(2);
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(!directory(&machine).join("notes/notes.md").exists());
    drop(agent);
    // The agent's calls are recorded in the demo's directory.
    assert!(!machine.home().join(".local/state/toolward").exists());
}

#[test]
fn a_second_demo_is_refused_and_changes_nothing() {
    let machine = Machine::new();
    made(&machine);
    let before = tree(&directory(&machine));
    let refused = machine.toolward("demo").ends(1);
    let refused = refused.says("demo-exists");
    assert!(
        refused.stderr.contains("toolward demo --remove"),
        "{refused}"
    );
    assert_eq!(tree(&directory(&machine)), before);
}

#[test]
fn removing_leaves_nothing_and_then_there_is_nothing_to_remove() {
    let machine = Machine::new();
    made(&machine);
    fs::write(directory(&machine).join("notes/mine.md"), "mine").unwrap();
    let removed = machine.toolward("demo --remove --json").ends(0).json();
    assert_eq!(removed["state"], "removed");
    assert_eq!(removed["clients"], json!([]));
    assert!(!directory(&machine).exists());
    let left: Vec<String> = tree(&machine.home()).into_keys().collect();
    assert_eq!(left, [".local/", ".local/state/"]);
    let again = machine.toolward("demo --remove --json").ends(0).json();
    assert_eq!(again["state"], "absent");
    made(&machine);
}

#[test]
fn removing_follows_no_links_and_keeps_what_the_demo_did_not_make() {
    let machine = Machine::new();
    made(&machine);
    let directory = directory(&machine);
    machine.write("precious/file.txt", "precious");
    symlink(machine.path("precious"), directory.join("notes/folder")).unwrap();
    fs::remove_dir_all(directory.join("inbox")).unwrap();
    symlink(machine.path("precious"), directory.join("inbox")).unwrap();
    fs::write(directory.join("mine.txt"), "mine").unwrap();
    machine
        .toolward("demo --remove")
        .ends(0)
        .warns("mine.txt stays: the demo did not make it");
    assert_eq!(machine.text("precious/file.txt"), "precious");
    let left: Vec<String> = tree(&directory).into_keys().collect();
    assert_eq!(left, ["made.txt", "mine.txt"]);
}

#[test]
fn a_list_that_the_demo_did_not_write_removes_nothing() {
    let machine = Machine::new();
    made(&machine);
    let directory = directory(&machine);
    for list in ["../toolward-demo-2\n", "notes\n/etc\n", "notes\n..\n", "\n"] {
        fs::write(directory.join("made.txt"), list).unwrap();
        let before = tree(&directory);
        machine
            .toolward("demo --remove")
            .ends(1)
            .says("demo-unknown");
        assert_eq!(tree(&directory), before, "{list:?}");
    }
    // A link to another directory is not followed.
    let moved = machine.path("moved");
    fs::rename(&directory, &moved).unwrap();
    symlink(&moved, &directory).unwrap();
    let before = tree(&moved);
    machine.toolward("demo --remove").ends(1);
    assert_eq!(tree(&moved), before);
}

#[test]
fn removing_names_the_clients_that_still_have_the_block() {
    let machine = Machine::new();
    let cursor = machine.home().join(".cursor");
    fs::create_dir(&cursor).unwrap();
    let demo = machine
        .toolward("demo --client cursor --json")
        .ends(0)
        .json();
    fs::write(cursor.join("mcp.json"), demo["block"].as_str().unwrap()).unwrap();
    machine
        .toolward("demo --remove")
        .ends(0)
        .warns(".cursor/mcp.json still has the demo's entry");
}

#[test]
fn the_installed_command_needs_nothing_beside_it() {
    let machine = Machine::new().with_own_cache();
    let alone = machine.path("bin/toolward");
    fs::create_dir(alone.parent().unwrap()).unwrap();
    fs::copy(crate::support::machine::toolward(), &alone).unwrap();
    fs::set_permissions(&alone, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(&alone);
    let ended = command
        .arg("demo")
        .current_dir(machine.work())
        .env_clear()
        .env("HOME", machine.home())
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&ended.stdout);
    assert!(
        ended.status.success(),
        "{shown}{}",
        String::from_utf8_lossy(&ended.stderr)
    );
    assert_eq!(shown.matches("\n  stopped: ").count(), 7, "{shown}");
}

#[test]
fn no_tool_of_the_user_is_given_what_the_demo_keeps() {
    let machine = Machine::new();
    made(&machine);
    machine.add_example("notes-append");
    for folder in ["config", "bundles", "installed", "state", "cache", "ledger"] {
        let mapped = directory(&machine).join(folder);
        assert!(mapped.is_dir(), "{folder}");
        machine.configure("");
        machine.configure(&granting(&machine, mapped.to_str().unwrap()));
        let call = "call notes.append --bundle notes-append.toolbundle --trust-key example.pub.pem";
        let ended = machine
            .toolward(&format!("{call} --set note=a --set text=b"))
            .end();
        assert_eq!(ended.code, Some(2), "{folder}: {ended}");
        ended.says("workspace-refused");
        assert!(ended.stderr.contains("is the demo's directory"), "{ended}");
    }
}
