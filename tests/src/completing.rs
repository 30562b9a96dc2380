//! The scripts for bash, zsh and fish complete ids and names of the installation, and nothing else.
//! The script for bash is run; the script for fish is run if fish is installed.

use std::fs;

use crate::installing::{installed, release, ship, trusting};
use crate::support::machine::toolward;
use crate::support::outside::skipped;
use crate::support::{Machine, tree};

/// Returns the completions of bash for the last of these words, with the printed script loaded.
fn offered(machine: &Machine, line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let array: String = words.iter().map(|word| format!(" '{word}'")).collect();
    let (last, before) = (words.len() - 1, words.len() - 2);
    machine.write(
        "ask.bash",
        format!(
            "eval \"$(toolward completions bash)\"\n\
             [[ \"$(complete -p toolward)\" =~ -F\\ ([a-z_]+) ]]\n\
             COMP_WORDS=({array}) COMP_CWORD={last}\n\
             \"${{BASH_REMATCH[1]}}\" toolward \"${{COMP_WORDS[{last}]}}\" \"${{COMP_WORDS[{before}]}}\"\n\
             printf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
        ),
    );
    let folder = toolward().parent().unwrap().display().to_string();
    let mut bash = machine.program("bash");
    bash.args(["--norc", "ask.bash"])
        .env("PATH", format!("{folder}:/usr/bin:/bin"));
    let output = bash.output().unwrap();
    assert!(output.stderr.is_empty(), "{output:?}");
    let offered = String::from_utf8(output.stdout).unwrap();
    let lines = offered.lines().filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

#[test]
fn bash_completes_tools_bundles_and_publishers() {
    let (machine, _) = installed();
    for (line, names) in [
        ("toolward call te", &["text.stats"][..]),
        ("toolward call ", &["text.stats"]),
        ("toolward -q show text.s", &["text.stats"]),
        ("toolward show --policy-file p.toml te", &["text.stats"]),
        ("toolward policy grant ", &["text.stats"]),
        ("toolward remove ", &["text.stats", "text.stats-bundle"]),
        ("toolward update ", &["text.stats-bundle"]),
        ("toolward call -v te", &["text.stats"]),
        ("toolward trust show a", &["acme"]),
        ("toolward call other", &[]),
        // A pattern of the shell is not expanded.
        ("toolward call *", &[]),
    ] {
        assert_eq!(offered(&machine, line), names, "{line}");
    }
}

#[test]
fn bash_completes_what_is_in_the_store_that_the_line_names() {
    let (machine, one) = trusting();
    ship(&machine, &release(1), &one, "b.toolbundle");
    machine
        .toolward("install b.toolbundle --store-dir own")
        .ends(0);
    assert_eq!(offered(&machine, "toolward call te"), [""; 0]);
    for flag in ["--store-dir own", "--store-dir = own", "--store-dir=own"] {
        let line = format!("toolward call {flag} te");
        assert_eq!(offered(&machine, &line), ["text.stats"], "{flag}");
    }
}

/// Returns the lines of a script that request names, each with the kind of names.
fn asking(shell: &str) -> Vec<String> {
    let script = Machine::new()
        .toolward(&format!("completions {shell}"))
        .ends(0)
        .stdout;
    let lines = script.lines().filter(|line| {
        line.contains("toolward internal-names") || line.contains(":_toolward_names ")
    });
    lines.map(str::to_owned).collect()
}

#[test]
fn zsh_asks_for_names_where_an_argument_is_one() {
    let lines = asking("zsh");
    for (argument, kind) in [
        ("tool", "tools"),
        ("id", "bundles"),
        ("id", "installed"),
        ("name", "publishers"),
    ] {
        let ends = format!(":_toolward_names {kind}' \\");
        let found = lines.iter().any(|line| {
            line.starts_with(&format!("'::{argument} "))
                || line.starts_with(&format!("':{argument} ")) && line.ends_with(&ends)
        });
        assert!(found, "{kind} in {lines:#?}");
    }
    let asks = "command toolward internal-names \"$1\" 2>/dev/null </dev/null";
    assert!(lines.iter().any(|line| line.contains(asks)), "{lines:#?}");
}

#[test]
fn fish_asks_for_names_where_an_argument_is_one() {
    let lines = asking("fish");
    for (words, kind) in [
        ("call\"", "tools"),
        ("policy; and __fish_seen_subcommand_from grant\"", "tools"),
        ("update\"", "bundles"),
        ("remove\"", "installed"),
        (
            "trust; and __fish_seen_subcommand_from show\"",
            "publishers",
        ),
    ] {
        let line = format!(
            "complete -c toolward -n \"__fish_toolward_using_subcommand {words} -f -a \
             \"(command toolward internal-names {kind} 2>/dev/null </dev/null)\""
        );
        assert!(lines.contains(&line), "{line} in {lines:#?}");
    }
}

#[test]
fn fish_completes_tools_bundles_and_publishers() {
    let (machine, _) = installed();
    let folder = toolward().parent().unwrap().display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    for (line, expected) in [
        ("toolward call te", "text.stats"),
        ("toolward policy grant te", "text.stats"),
        ("toolward remove text.stats-", "text.stats-bundle"),
        ("toolward trust show a", "acme"),
    ] {
        let mut fish = machine.program("fish");
        fish.args(["--no-config", "--private", "-c"])
            .arg(format!(
                "toolward completions fish | source; complete -C '{line}'"
            ))
            .env("PATH", format!("{folder}:{path}"));
        let Ok(output) = fish.output() else {
            skipped("fish is not installed");
            return;
        };
        let offered = String::from_utf8(output.stdout).unwrap();
        let first = offered
            .lines()
            .next()
            .and_then(|line| line.split('\t').next());
        assert_eq!(first, Some(expected), "{line}: {offered}");
    }
}

#[test]
fn bash_completes_flags_and_commands_as_before() {
    let (machine, _) = installed();
    assert_eq!(offered(&machine, "toolward comp"), ["completions"]);
    assert_eq!(
        offered(&machine, "toolward call --timeo"),
        ["--timeout"],
        "a flag"
    );
    let offered = offered(&machine, "toolward call text.stats te");
    assert!(!offered.contains(&"text.stats".to_owned()), "{offered:?}");
}

#[test]
fn nothing_is_written_and_nothing_is_said_where_nothing_is() {
    let machine = Machine::new();
    for kind in ["tools", "bundles", "installed", "publishers"] {
        let ended = machine.toolward(&format!("internal-names {kind}")).ends(0);
        assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
    }
    assert_eq!(tree(&machine.home()).len(), 0);

    let (machine, _) = installed();
    let before = tree(&machine.home());
    let ended = machine.toolward("internal-names installed").ends(0);
    assert_eq!(ended.stdout, "text.stats\ntext.stats-bundle\n");
    assert_eq!(tree(&machine.home()), before);
}

#[test]
fn a_stored_name_that_is_no_id_is_not_completed() {
    let (machine, _) = installed();
    let state = machine.home().join(".local/state/toolward/trust/trust.db");
    let sql = rusqlite::Connection::open(&state).unwrap();
    for (number, id) in ["text.$(touch pwned)", "text.a\ntext.b", "text.`id`", "-te"]
        .into_iter()
        .enumerate()
    {
        let changed = sql.execute(
            "INSERT INTO tool (bundle, major_id, id, title, description, tags)
             SELECT bundle, ?1, ?2, title, description, tags FROM tool LIMIT 1",
            rusqlite::params![format!("other{number}@1"), id],
        );
        assert_eq!(changed.unwrap(), 1);
    }
    drop(sql);
    assert_eq!(offered(&machine, "toolward call "), ["text.stats"]);
    assert!(!machine.path("pwned").exists());
}

#[test]
fn a_spoiled_record_completes_nothing() {
    let (machine, _) = installed();
    let state = machine.home().join(".local/state/toolward/trust/trust.db");
    fs::write(state, "not a database").unwrap();
    let ended = machine.toolward("internal-names tools").ends(0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
}
