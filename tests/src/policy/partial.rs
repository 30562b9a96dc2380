//! A grant with `partial`, as the commands show it and as calls run under it.

use super::{append, change, notes, notes_policy, written};
use crate::support::Machine;

/// `notes.append` under work, which also declares a host and a second workspace.
fn greedy() -> Machine {
    let machine = notes();
    change(
        &machine,
        "notes-append/tools/notes.append/TOOL.md",
        "mutates: [\"workspace:/notes\"]\n",
        "requires: { network: [stats.example], workspace: [/private] }\nmutates: [\"workspace:/notes\"]\n",
    );
    change(
        &machine,
        "notes-append/drivers/notes-append/DRIVER.md",
        "component: driver.wasm\n",
        "component: driver.wasm\nnetwork: { egress: [stats.example] }\n",
    );
    machine
}

#[test]
fn a_tool_runs_without_what_is_left_out_only_where_the_rule_says_partial() {
    let machine = greedy();
    machine.configure(&notes_policy(&machine, "preapproved = true"));
    append(&machine, "", "a").ends(4).says("unauthorised");
    assert_eq!(written(&machine), [""; 0]);
    let listed = machine.toolward("policy list --dev notes-append").ends(0);
    assert!(listed.stdout.starts_with("BLOCKED"), "{listed}");

    machine.configure(&notes_policy(
        &machine,
        "preapproved = true\npartial = true",
    ));
    append(&machine, "", "a").ends(0);
    assert_eq!(written(&machine), ["journal.md"]);
}

#[test]
fn each_command_that_shows_a_tool_names_what_is_left_out() {
    let machine = greedy();
    machine.configure(&notes_policy(
        &machine,
        "preapproved = true\npartial = true",
    ));
    let shown = |command: &str| {
        let ended = machine.toolward(&format!("{command} --dev notes-append"));
        ended.ends(0).stdout
    };
    let both = "network:stats.example, workspace:/private";
    for (command, words) in [
        ("policy list", format!("(without {both})")),
        ("show notes.append --drivers", format!("without {both}")),
        ("show notes.append", format!("not given  {both}")),
        (
            "policy suggest",
            format!("a grant says `partial`, and notes-append is used without {both}"),
        ),
        (
            "show notes.append --policy",
            "partial left out: no rule gives it".to_owned(),
        ),
        (
            "show notes.append --as mcp",
            format!(", not given: {both}] Adds a paragraph"),
        ),
    ] {
        let stdout = shown(command);
        assert!(stdout.contains(&words), "{command}: {stdout}");
    }
    assert!(
        shown("policy suggest").contains("# No line is missing."),
        "nothing to add"
    );
    let mcp = machine
        .toolward("show notes.append --as mcp --dev notes-append --json")
        .ends(0)
        .json();
    assert_eq!(mcp["annotations"]["openWorldHint"], false, "{mcp}");
    assert_eq!(mcp["annotations"]["readOnlyHint"], false, "{mcp}");
    let driver = &mcp["_meta"]["toolward/tool"]["drivers"][0];
    assert_eq!(
        driver["without"],
        serde_json::json!(["network:stats.example", "workspace:/private"])
    );
    let json = machine
        .toolward("show notes.append --drivers --dev notes-append --json")
        .ends(0)
        .json();
    assert_eq!(
        json["tools"][0]["candidates"][0]["without"][0], "network:stats.example",
        "{json}"
    );
}

#[test]
fn each_command_that_prints_lines_prints_fewer_as_well() {
    let machine = greedy();
    machine.configure("");
    let call = append(&machine, "", "a").ends(4).stderr;
    let run = |command: &str, exit: i32| {
        let ended = machine.toolward(&format!("{command} --dev notes-append"));
        let ended = ended.ends(exit);
        format!("{}{}", ended.stdout, ended.stderr)
    };
    let directory = machine.path("chosen");
    std::fs::create_dir_all(&directory).unwrap();
    let chosen = format!(
        "policy grant notes.append --workspace /notes={0}/notes --workspace /private={0}/private",
        directory.display()
    );
    for folder in ["notes", "private"] {
        std::fs::create_dir_all(directory.join(folder)).unwrap();
    }
    for (command, text) in [
        ("call", call),
        ("explain", run("show notes.append --policy", 0)),
        ("suggest", run("policy suggest", 0)),
        ("grant", run("policy grant notes.append", 4)),
        ("grant without a terminal", run(&chosen, 4)),
    ] {
        let text = text.to_lowercase();
        let (_, fewer) = text.split_once("or only this").expect(command);
        assert!(fewer.contains("partial = true"), "{command}: {text}");
        assert!(fewer.contains("network:stats.example"), "{command}: {text}");
        assert!(!fewer.contains("/private"), "{command}: {text}");
    }
}
