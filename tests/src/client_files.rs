//! `mcp config --write`: a client's own file gets the entry after a person has typed a yes, and its
//! other text stays the same.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use serde_json::Value;

use crate::support::{Ended, Left, Machine, Session, tree};

/// The clients, each with its file in the home directory and the table in that file.
const CLIENTS: [(&str, &str, &str); 7] = [
    (
        "claude-desktop",
        ".config/Claude/claude_desktop_config.json",
        "mcpServers",
    ),
    ("claude-code", ".claude.json", "mcpServers"),
    ("cursor", ".cursor/mcp.json", "mcpServers"),
    ("vs-code", ".config/Code/User/mcp.json", "servers"),
    ("codex", ".codex/config.toml", "mcp_servers"),
    ("gemini", ".gemini/settings.json", "mcpServers"),
    ("zed", ".config/zed/settings.json", "context_servers"),
];

const QUESTION: &str = "Write this? [y/N] ";

fn config(client: &str, rest: &str) -> String {
    format!("mcp config {client} --write {rest}")
}

/// Runs the command at a terminal, and types these keys once it asks.
fn typed(machine: &Machine, command: &str, keys: &str) -> Left {
    let mut session = Session::start(machine.toolward(command).into_command(), 120, "y\ry\r");
    session.sees(QUESTION);
    session.types(keys);
    if keys == "y\r" && asks_for_approval(machine, command) {
        session.sees("+may_approve");
        session.types("n\r");
    }
    session.leaves()
}

/// Whether the command has a second question, about approvals through the client.
fn asks_for_approval(machine: &Machine, command: &str) -> bool {
    let config = machine.home().join(".config/toolward/toolward.toml");
    let config = fs::read_to_string(config).unwrap_or_default();
    !command.contains("--url") && !config.contains("may_approve")
}

/// Runs the command at a terminal. Its only question is whether the client may ask for approval,
/// and the answer is no.
fn declined(machine: &Machine, command: &str) -> Left {
    let mut session = Session::start(machine.toolward(command).into_command(), 120, "y\r");
    session.sees("+may_approve");
    session.types("n\r");
    session.leaves()
}

/// Runs the command at a terminal. It ends without a question about the client's file.
fn unasked(machine: &Machine, command: &str) -> Left {
    Session::start(machine.toolward(command).into_command(), 120, "y\r").leaves()
}

#[track_caller]
fn wrote(machine: &Machine, command: &str) -> Left {
    let left = typed(machine, command, "y\r");
    assert_eq!(left.code, Some(0), "{left:?}");
    assert!(left.stdout.contains("wrote "), "{left:?}");
    left
}

fn put(machine: &Machine, file: &str, text: &str) -> PathBuf {
    let path = machine.home().join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    path
}

fn text(machine: &Machine, file: &str) -> String {
    fs::read_to_string(machine.home().join(file)).unwrap()
}

/// Returns the server's entry as JSON, from a client's file in JSON or TOML.
fn entry(file: &str, text: &str, table: &str, name: &str) -> Value {
    let whole: Value = match file.ends_with(".toml") {
        true => {
            let table: toml::Table = text.parse().unwrap();
            serde_json::to_value(table).unwrap()
        }
        false => serde_json::from_str(text).unwrap(),
    };
    whole[table][name].clone()
}

#[track_caller]
fn refused(machine: &Machine, command: &str, code: &str, exit: i32) -> Left {
    let before = tree(&machine.home());
    let left = unasked(machine, command);
    assert_eq!(left.code, Some(exit), "{left:?}");
    assert!(left.screen.contains(&format!("error[{code}]")), "{left:?}");
    assert!(!left.screen.contains(QUESTION), "{left:?}");
    assert_eq!(tree(&machine.home()), before);
    left
}

#[test]
fn each_clients_file_is_made_where_it_is_missing_and_filled_where_it_is_empty() {
    for (client, file, table) in CLIENTS {
        for empty in [false, true] {
            let machine = Machine::new();
            if empty {
                put(&machine, file, "");
            }
            wrote(&machine, &config(client, "-- --defer-above 9"));
            let text = text(&machine, file);
            let entry = entry(file, &text, table, "toolward");
            assert!(
                entry["command"].as_str().unwrap().ends_with("/toolward"),
                "{text}"
            );
            assert_eq!(
                entry["args"],
                serde_json::json!(["serve", "--defer-above", "9"])
            );
            let backup = machine.home().join(format!("{file}.toolward-backup"));
            assert_eq!(backup.exists(), empty, "{client}");
            let mode = fs::metadata(machine.home().join(file))
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, if empty { 0o644 } else { 0o600 }, "{client}");
        }
    }
}

#[test]
fn other_entries_comments_and_indentation_stay_and_the_file_before_is_kept() {
    for (client, file, table) in CLIENTS {
        let machine = Machine::new();
        let before = match client {
            "codex" => {
                "# mine\nmodel = 'x'   # why\n\n[mcp_servers.other]\ncommand = \"x\"\n".to_owned()
            }
            "vs-code" | "zed" => {
                format!(
                    "// mine\n{{\n   \"{table}\": {{\n        \"other\": {{}}, // one\n   }},\n \"z\":1 }}\n"
                )
            }
            "gemini" => format!("/* mine */ {{\n\t\"{table}\": {{\n\t\t\"other\": {{}}\n\t}}\n}}"),
            _ => format!("{{ \"a\":\"b\",\n   \"{table}\" : {{\n        \"other\": {{}} }} }}\n\n"),
        };
        let path = put(&machine, file, &before);
        let left = wrote(&machine, &config(client, ""));
        let after = fs::read_to_string(path).unwrap();
        let same = before
            .bytes()
            .zip(after.bytes())
            .take_while(|(a, b)| a == b)
            .count();
        assert!(
            after.ends_with(before.get(same..).unwrap()),
            "{client}: {after}"
        );
        assert!(after.len() > before.len() + 40, "{client}: {after}");
        let backup = format!("{file}.toolward-backup");
        assert_eq!(text(&machine, &backup), before, "{client}");
        assert!(
            tree(&machine.home())[&backup].starts_with("600 "),
            "{client}"
        );
        // The added text and the path of the backup are shown before the question.
        let asked = left.screen.split(QUESTION).next().unwrap();
        assert!(asked.contains("+") && asked.contains(&backup), "{asked}");
        assert!(!asked.contains("mine"), "{asked}");
        // The entry exists, so the command does not ask about the client's file.
        let again = declined(&machine, &config(client, ""));
        assert_eq!(again.code, Some(0), "{again:?}");
        assert!(again.stdout.contains("has it already"), "{again:?}");
        // The command may replace an entry that it wrote, but no other entry.
        wrote(&machine, &config(client, "-- --defer-above 3"));
        let replaced = text(&machine, file);
        assert!(replaced.contains("--defer-above"), "{replaced}");
        assert_eq!(text(&machine, &backup), before, "{client}");
    }
}

#[test]
fn nothing_but_a_typed_yes_writes() {
    let machine = Machine::new();
    let file = CLIENTS[2].1;
    let before = "{\"mcpServers\": {}}";
    put(&machine, file, before);
    for keys in ["\r", "n\r", "\u{3}", "yy\r"] {
        let left = typed(&machine, &config("cursor", ""), keys);
        assert_eq!(left.code, Some(4), "{left:?}");
        assert!(
            left.screen.contains("error[change-unconfirmed]"),
            "{left:?}"
        );
        // The block is printed, so that a person can add it by hand.
        assert!(left.stdout.contains("\"mcpServers\""), "{left:?}");
        assert_eq!(text(&machine, file), before);
    }
    // Without a terminal, no flag or variable can answer.
    let ended = machine
        .toolward(&config("cursor", ""))
        .env("TOOLWARD_YES", "1")
        .stdin("y\ny\n")
        .ends(4);
    assert!(
        ended.stderr.contains("error[change-unconfirmed]"),
        "{ended}"
    );
    for flag in ["--yes", "-y", "--force"] {
        machine.toolward(&config("cursor", flag)).ends(2);
    }
    assert_eq!(text(&machine, file), before);
    assert_eq!(
        machine
            .toolward("doctor --json")
            .end()
            .stdout
            .matches("mcp config")
            .count(),
        0
    );
}

#[test]
fn an_entry_that_it_did_not_write_is_not_replaced() {
    for (client, file, table) in CLIENTS {
        let machine = Machine::new();
        let before = match client {
            "codex" => "[mcp_servers.toolward]\ncommand = \"mine\"\n".to_owned(),
            _ => format!("{{\"{table}\": {{\"toolward\": {{\"command\": \"mine\"}}}}}}\n"),
        };
        put(&machine, file, &before);
        let left = refused(&machine, &config(client, ""), "entry-foreign", 1);
        assert!(left.stdout.contains(table), "{left:?}");
        // Under another name there is no conflict.
        wrote(&machine, &config(client, "--name mine_2"));
        // An entry that the command wrote counts as foreign once someone has changed it.
        let text = text(&machine, file).replace("\"serve\"", "\"other\"");
        put(&machine, file, &text);
        refused(
            &machine,
            &config(client, "--name mine_2"),
            "entry-foreign",
            1,
        );
    }
}

#[test]
fn a_file_that_others_reach_or_that_is_elsewhere_is_left_alone() {
    for (client, file, table) in CLIENTS {
        let machine = Machine::new();
        let before = if client == "codex" { "a = 1\n" } else { "{}" };
        let elsewhere = machine.path("elsewhere");
        fs::write(&elsewhere, before).unwrap();
        let path = put(&machine, file, before);

        fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).unwrap();
        let left = refused(&machine, &config(client, ""), "file-unfit", 1);
        assert!(left.screen.contains("chmod go-w"), "{left:?}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();

        fs::hard_link(&path, machine.path("second")).unwrap();
        refused(&machine, &config(client, ""), "file-unfit", 1);
        fs::remove_file(&path).unwrap();

        symlink(&elsewhere, &path).unwrap();
        let left = refused(&machine, &config(client, ""), "file-unfit", 1);
        assert!(left.stdout.contains(table), "{left:?}");
        assert_eq!(fs::read_to_string(&elsewhere).unwrap(), before);

        fs::remove_file(&path).unwrap();
        put(
            &machine,
            file,
            if client == "codex" {
                "a ="
            } else {
                "{\"a\": }"
            },
        );
        refused(&machine, &config(client, ""), "client-file-invalid", 1);
    }
    let machine = Machine::new();
    fs::create_dir_all(machine.path("elsewhere")).unwrap();
    symlink(machine.path("elsewhere"), machine.home().join(".cursor")).unwrap();
    refused(&machine, &config("cursor", ""), "file-unfit", 1);
    assert_eq!(fs::read_dir(machine.path("elsewhere")).unwrap().count(), 0);
    for (client, variable) in [("codex", "CODEX_HOME"), ("zed", "XDG_CONFIG_HOME")] {
        let command = machine.toolward(&config(client, ""));
        let ended = command.env(variable, machine.path("elsewhere")).ends(1);
        assert!(ended.stderr.contains(variable), "{ended}");
    }
}

#[test]
fn what_gives_more_than_the_configuration_says_is_not_written() {
    let machine = Machine::new();
    fs::create_dir(machine.path("d")).unwrap();
    machine.write("k.pem", "");
    for flags in [
        "-- --no-confine",
        "-- --trust-client",
        "-- --dev d",
        "-- --dev=d",
        "-- --bundle d --trust-key k.pem",
        "--url http://ada:secret@127.0.0.1:8000/mcp",
        "--url http://127.0.0.1:8000/mcp?token=secret",
    ] {
        refused(&machine, &config("cursor", flags), "flag-refused", 2);
    }
    // `serve` does not even have this flag.
    refused(
        &machine,
        &config("cursor", "-- --grant network:a.example"),
        "usage-invalid",
        2,
    );
    refused(
        &machine,
        &config("cursor", "-- --bundel d"),
        "usage-invalid",
        2,
    );
    refused(
        &machine,
        &config("cursor", "--name a.b"),
        "setting-invalid",
        2,
    );
    // Without --write the block is printed with any flags.
    machine
        .toolward("mcp config cursor -- --no-confine")
        .ends(0);
}

#[test]
fn a_token_is_named_and_never_written() {
    let url = "--url http://127.0.0.1:8000/mcp";
    for (client, file, table) in CLIENTS {
        let machine = Machine::new();
        if ["claude-desktop", "vs-code", "zed"].contains(&client) {
            refused(&machine, &config(client, url), "flag-refused", 2);
            continue;
        }
        wrote(&machine, &config(client, url));
        let text = text(&machine, file);
        let entry = entry(file, &text, table, "toolward").to_string();
        assert!(entry.contains("TOOLWARD_TOKEN"), "{entry}");
        assert!(!entry.contains("PUT THE TOKEN"), "{entry}");
    }
}

#[test]
fn doctor_and_the_next_server_tell_of_what_was_written() {
    let machine = Machine::with_example("text-stats");
    let left = typed(&machine, &config("cursor", "--json"), "y\r");
    let value: Value = serde_json::from_str(&left.stdout).unwrap();
    let file = machine.home().join(CLIENTS[2].1);
    assert_eq!(
        value,
        serde_json::json!({"ok": true, "state": "written", "file": file, "backup": null})
    );
    let changes = |ended: &Ended| ended.stdout.matches("`mcp config --write` wrote").count();
    assert_eq!(changes(&machine.toolward("doctor").end()), 1);
    let serve = "serve -q --bundle text-stats.toolbundle --trust-key example.pub.pem";
    let told = machine.toolward(serve).ends(0);
    assert!(
        told.stderr
            .contains("`mcp config --write` wrote the entry `toolward`"),
        "{told}"
    );
    let silent = machine.toolward(serve).ends(0);
    assert!(!silent.stderr.contains("mcp config"), "{silent}");
    assert_eq!(changes(&machine.toolward("doctor").end()), 1);
}
