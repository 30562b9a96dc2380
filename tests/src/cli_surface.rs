//! General behaviour of the command: help, usage, JSON, colours, completions.

use std::process::Command;

use serde_json::Value;

use crate::support::outside::have;
use crate::support::{Machine, Session, machine::toolward};

/// Returns the commands that the help lists, except `help`.
pub(crate) fn commands(help: &str) -> Vec<&str> {
    let listed = help.split_once("\nCommands:\n").unwrap().1;
    let listed = listed.split_once("\n\n").unwrap().0;
    // Continued lines are indented further.
    let names = listed.lines().filter_map(|line| line.strip_prefix("  "));
    let names = names.filter(|line| !line.starts_with(' '));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").collect()
}

#[test]
fn help_names_every_command_and_every_exit_code() {
    let machine = Machine::new();
    let help = machine.toolward("--help").ends(0).stdout;
    let commands = commands(&help);
    assert_eq!(commands.len(), 24, "{commands:?}");
    for (code, meaning) in [
        (0, "fine"),
        (1, "the tool or a check failed"),
        (2, "wrong usage"),
        (3, "verification refused"),
        (4, "denied by policy"),
    ] {
        let there = help
            .lines()
            .any(|line| line.trim_start().starts_with(&code.to_string()) && line.contains(meaning));
        assert!(there, "no exit code {code} in {help}");
    }
}

#[test]
fn every_command_explains_itself() {
    let machine = Machine::new();
    let help = machine.toolward("--help").ends(0).stdout;
    for command in commands(&help) {
        let help = machine.toolward(&format!("{command} --help")).ends(0);
        assert!(
            help.stdout.contains(&format!("Usage: toolward {command}")),
            "{help}"
        );
        assert!(help.stdout.contains("--json"), "{help}");
        assert_eq!(help.stderr, "");
        let short = machine.toolward(&format!("{command} -h")).ends(0).stdout;
        assert!(short.contains("Usage: "));
        for shown in [&help.stdout, &short] {
            let last = shown.rsplit_once("\nGlobal options:\n").unwrap().1;
            assert!(last.contains("--json"), "{shown}");
        }
        assert!(short.len() < help.stdout.len(), "{short}");
    }
}

#[test]
fn commands_are_shown_in_groups_and_with_examples() {
    let machine = Machine::new();
    let help = machine.toolward("--help").ends(0).stdout;
    let groups: Vec<&str> = help
        .lines()
        .filter(|line| line.starts_with(' ') && !line.starts_with("  "))
        .map(str::trim)
        .collect();
    assert_eq!(groups, ["use", "trust", "publish", "look"], "{help}");
    for words in [
        "call",
        "install",
        "trust add",
        "policy suggest",
        "ledger list",
    ] {
        let help = machine.toolward(&format!("{words} --help")).ends(0).stdout;
        let example = format!("Example:\n  toolward {words}");
        assert!(help.contains(&example), "{help}");
    }
}

#[test]
fn the_version_is_the_packages() {
    let machine = Machine::new();
    let version = machine.toolward("--version").ends(0);
    assert_eq!(
        version.stdout,
        format!("toolward {}\n", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn wrong_usage_ends_with_2_and_says_what_to_do() {
    let machine = Machine::new();
    for (words, next) in [
        ("", "Usage"),
        ("verfy", "verify"),
        ("verify", "<BUNDLE>"),
        ("verify b --trust-kee k", "--trust-key"),
        ("test a --dev c", "cannot be used with"),
        ("verify b --trust-key k --config c", "cannot be used with"),
        ("publisher sign b", "--key"),
        ("pack", "--key"),
        ("publisher keys", "Usage"),
        ("completions tcsh", "bash"),
        ("call a --dev d --timeout soon", "invalid value"),
    ] {
        let ended = machine.toolward(words).ends(2);
        assert_eq!(ended.stdout, "", "{ended}");
        assert!(ended.stderr.contains(next), "no {next:?} in {ended}");
        assert!(!ended.stderr.contains("panicked"), "{ended}");
    }
}

#[test]
fn an_unknown_command_gets_the_one_that_was_meant_and_no_hidden_one() {
    let machine = Machine::new();
    for (words, hint) in [
        ("run text.stats", "use `toolward call TOOL`"),
        ("why text.stats", "use `toolward show TOOL --drivers`"),
        ("policy explain a", "use `toolward show TOOL --policy`"),
        (
            "--color never push",
            "use `toolward publisher push BUNDLE REFERENCE`",
        ),
        ("verfy b", "a similar command exists: 'verify'"),
    ] {
        let ended = machine.toolward(words).ends(2);
        assert!(
            ended.stderr.starts_with("error: unknown command '"),
            "{ended}"
        );
        assert!(
            ended.stderr.contains(&format!("  hint: {hint}\n")),
            "{ended}"
        );
        let json = machine.toolward(&format!("{words} --json")).ends(2).json();
        let hints = json["error"]["hint"].as_str().unwrap();
        assert!(hints.starts_with(hint), "{json}");
    }
    for words in ["internal-name", "internal-man-page"] {
        let ended = machine.toolward(words).ends(2);
        assert!(!ended.stderr.contains("hint: "), "{ended}");
    }
}

#[test]
fn doctor_looks_at_this_machine() {
    let machine = Machine::new();
    let found = machine.toolward("doctor --json").ends(0).json();
    assert_eq!(found["ok"], true, "{found}");
    for name in [
        "version",
        "engine",
        "cache",
        "configuration",
        "guest-toolchain",
        "javascript",
        "python",
        "go",
        "c",
    ] {
        let checks = found["checks"].as_array().unwrap();
        let check = checks.iter().find(|check| check["name"] == name);
        let check = check.unwrap_or_else(|| panic!("no {name} in {found}"));
        assert!(!check["message"].as_str().unwrap().is_empty());
        assert_ne!(check["state"], "error", "{check}");
    }
    let shown = machine.toolward("doctor").ends(0);
    assert!(shown.stdout.contains("engine"), "{shown}");
    // Commands that only read create nothing.
    assert_eq!(crate::support::tree(&machine.home()).len(), 0);
}

#[test]
fn doctor_finds_what_is_wrong() {
    let machine = Machine::new();
    machine.configure("[[publisher]]\nname = \"acme\"\n");
    let found = machine.toolward("doctor --json").ends(1).json();
    assert_eq!(found["ok"], false);
    let checks = found["checks"].as_array().unwrap();
    let check = checks
        .iter()
        .find(|check| check["name"] == "configuration")
        .unwrap();
    assert_eq!(check["state"], "error", "{check}");
}

#[test]
fn completions_are_made_for_every_shell() {
    let machine = Machine::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = machine
            .toolward(&format!("completions {shell}"))
            .ends(0)
            .stdout;
        for word in ["toolward", "inspect", "trust-key"] {
            assert!(script.contains(word), "no {word} for {shell}");
        }
        if shell == "bash" && have("bash", &["--version"]) {
            machine.write("completion.bash", script);
            let read = Command::new("bash")
                .arg("-n")
                .arg(machine.path("completion.bash"))
                .status();
            assert!(read.unwrap().success());
        }
    }
}

/// Runs every command with `--json`, on a machine on which it works. `completions` is left out,
/// since it always writes a script for a shell.
#[test]
fn every_command_speaks_json() {
    let machine = Machine::with_example("text-stats");
    crate::hostile::add(&machine, "b");
    machine.write("pass.txt", "open sesame\n");
    machine.write("broad.toml", "[[grant]]\npublisher = \"acme\"\n");
    let trust = "--trust-key example.pub.pem";
    for words in [
        "publisher keys new --out acme.pem",
        "publisher keys show acme.pem",
        "publisher keys public acme.pem",
        "publisher keys public acme.pem --out again.pub.pem",
        "publisher keys encrypt acme.pem --out safe.pem --passphrase-file pass.txt",
        "new greeter --id text.greet",
        "pack b -o packed",
        "publisher sign packed --key acme.pem",
        "pack b -o b.toolbundle --key acme.pem",
        "inspect b",
        "inspect b.toolbundle",
        "inspect b/drivers/hostile/driver.wasm",
        "call hostile.run --dev b --set do=echo",
        "doctor",
        "policy list --dev b",
        "show hostile.run --policy --dev b",
        "policy suggest --dev b",
        "show hostile.run --drivers --dev b",
        "show hostile.run --as agent-tool --dev b",
        "show hostile.run --as mcp --dev b",
        "show hostile.run --as openai --dev b",
        "show hostile.run --as amplifier --dev b",
        "call hostile.run --dev b --set do=echo --format agent-tool",
        "call hostile.run --dev b --set do=echo --format amplifier",
        "policy check broad.toml",
        &format!("verify text-stats.toolbundle {trust}"),
        &format!("inspect text-stats.toolbundle {trust}"),
        &format!("call text.stats --bundle text-stats.toolbundle {trust} --set text=a"),
    ] {
        let ended = machine.toolward(&format!("{words} --json")).ends(0);
        assert!(ended.json().is_object(), "{ended}");
        assert_eq!(ended.stdout.lines().count(), 1, "{ended}");
    }
    for line in machine.toolward("test --dev b --json").ends(0).json_lines() {
        assert_eq!(line["ok"], true);
    }
    assert_eq!(
        machine.toolward("check b --json").ends(0).json_lines(),
        Vec::<Value>::new()
    );
}

#[test]
fn every_failure_speaks_json() {
    let machine = Machine::with_example("text-stats");
    crate::hostile::add(&machine, "b");
    machine.write("broken.toml", "[[publisher]]\n");
    machine.write("slip.toml", "[[grants]]\n");
    for (words, exit) in [
        ("publisher keys new --out example.pub.pem", 1),
        ("publisher keys show gone.pem", 2),
        ("publisher keys show b/bundle.toml", 1),
        ("new b", 1),
        ("build gone", 1),
        ("pack gone -o out", 1),
        ("pack b -o out.toolbundle", 2),
        ("publisher sign text-stats.toolbundle --key gone.pem", 2),
        ("verify text-stats.toolbundle", 2),
        ("verify text-stats.toolbundle --config broken.toml", 2),
        ("verify gone --trust-key example.pub.pem", 2),
        ("verify b --trust-key example.pub.pem", 3),
        ("inspect gone", 2),
        ("publisher sign gone --key example.pub.pem", 2),
        ("test gone --trust-key example.pub.pem", 2),
        ("call hostile.run --dev gone --set do=echo", 1),
        ("call hostile.run --dev b --set do=trap", 1),
        ("call hostile.run --dev b --set do", 2),
        ("call hostile.run --dev b --policy-file slip.toml", 2),
        ("policy check slip.toml", 1),
        ("policy check gone.toml", 2),
        ("show other.tool --policy --dev b", 1),
        ("show other.tool --drivers --dev b", 1),
        ("show other.tool --as agent-tool --dev b", 1),
        ("call hostile.run --dev b --input {", 1),
    ] {
        let ended = machine.toolward(&format!("{words} --json")).ends(exit);
        let error = ended.json();
        assert_eq!(error["ok"], false, "{ended}");
        for part in ["code", "message"] {
            assert!(
                !error["error"][part].as_str().unwrap().is_empty(),
                "no {part}: {ended}"
            );
        }
    }
}

/// Returns the output of a command on a terminal.
fn on_a_terminal(machine: &Machine, words: &str, no_colour: bool) -> String {
    let mut script = machine.program("script");
    script.args([
        "-qec",
        &format!("{} {words}", toolward().display()),
        "/dev/null",
    ]);
    script.env("TERM", "xterm-256color");
    if no_colour {
        script.env("NO_COLOR", "1");
    }
    String::from_utf8(script.output().unwrap().stdout).unwrap()
}

/// Adds a bundle `b` in which `check` finds an error.
fn spoiled(machine: &Machine) {
    crate::hostile::add(machine, "b");
    let name = "b/tools/hostile.run/TOOL.md";
    let contract = machine.text(name);
    machine.write(name, contract.replace("timeout_ms: 5000", "timeout_ms: 0"));
}

#[test]
fn colours_are_for_terminals_whose_owner_wants_them() {
    let machine = Machine::new();
    spoiled(&machine);
    for words in ["check b", "verify b", "verfy", "--help"] {
        let ended = machine.toolward(words).end();
        assert!(
            !ended.stdout.contains('\u{1b}') && !ended.stderr.contains('\u{1b}'),
            "{ended}"
        );
    }
    if !have("script", &["--version"]) {
        return;
    }
    assert!(on_a_terminal(&machine, "check b", false).contains("\u{1b}["));
    for words in ["check b", "verify b", "verfy", "--help"] {
        let plain = on_a_terminal(&machine, words, true);
        assert!(
            !plain.is_empty() && !plain.contains('\u{1b}'),
            "{words}: {plain:?}"
        );
    }
}

#[test]
fn a_flag_says_where_colours_go_whatever_the_stream_is() {
    let machine = Machine::new();
    spoiled(&machine);
    for words in ["check b --color always", "--color=always check b"] {
        let ended = machine.toolward(words).end();
        assert!(ended.stdout.contains("\u{1b}["), "{ended}");
    }
    let ended = machine.toolward("verfy --color always").ends(2);
    assert!(ended.stderr.contains("\u{1b}["), "{ended}");
    let ended = machine.toolward("check b --color always --json").end();
    assert!(!ended.stdout.contains('\u{1b}'), "{ended}");
    let never = machine.toolward("check b --color never").into_command();
    let shown = Session::showing_stdout(never).leaves();
    assert!(!shown.screen.contains('\u{1b}'), "{shown:?}");
    machine.toolward("check b --color sometimes").ends(2);
}

#[test]
fn each_stream_has_colours_only_where_it_is_a_terminal() {
    const COLOUR: char = '\u{1b}';
    let machine = Machine::new();
    spoiled(&machine);
    // The diagnostics of `check` go to standard output.
    let check = || machine.toolward("check b").into_command();
    let redirected = Session::start(check(), 100, "").leaves();
    assert!(redirected.stdout.contains("error["), "{redirected:?}");
    assert!(!redirected.stdout.contains(COLOUR), "{redirected:?}");
    let shown = Session::showing_stdout(check()).leaves();
    assert!(shown.screen.contains(COLOUR), "{shown:?}");
    // An error that stops a command goes to standard error.
    let verify = || machine.toolward("verify missing").into_command();
    let shown = Session::start(verify(), 100, "").leaves();
    assert!(shown.screen.contains(COLOUR), "{shown:?}");
    let redirected = Session::showing_stdout(verify()).leaves();
    assert!(redirected.stdout.contains("error["), "{redirected:?}");
    assert!(!redirected.stdout.contains(COLOUR), "{redirected:?}");
}
