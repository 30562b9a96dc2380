//! Compares the screens that a person sees on terminals of 80 and 120 columns, with and without
//! colours, with the files in `golden/screens`. With `TOOLWARD_GOLDEN=write` the files are written
//! instead. The files are screens of real runs, so they contain the values of the run that wrote
//! them.

mod recorded;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::installing::web::Web;
use crate::installing::{installed, release, ship, trusting};
use crate::policy::{notes, notes_policy};
use crate::support::machine::toolward;
use crate::support::outside::skipped;
use crate::support::varying::DIRECTORY;
use crate::support::{Left, Machine, Session, root};

const WIDTHS: [u16; 2] = [80, 120];

/// The screens whose lines fit. Only the terminal breaks messages with commands and paths, so that
/// people can copy them whole.
const FITTING: [&str; 4] = ["held-update", "list", "list-held", "show"];

/// The only line of these screens that is not broken, since it is a command.
const COMMAND: &str = "accept it with: ";

/// The text before each command.
const PROMPT: &str = "$ ";

/// Removes a line on which progress was shown.
const CLEARED: &str = "\r\u{1b}[2K";

/// Replaces the escape character in a file, since editors hide that character.
const ESCAPE: &str = "\u{241b}";

/// Whether this run writes the golden files.
pub(crate) fn writes_golden_files() -> bool {
    std::env::var_os("TOOLWARD_GOLDEN").is_some_and(|value| value == "write")
}

fn golden(name: &str) -> PathBuf {
    root().join("tests/golden/screens").join(name)
}

/// A command for a terminal. Colours are the default of a terminal.
fn command(machine: &Machine, words: &str, colours: bool) -> Command {
    let mut command = machine.toolward(words).into_command();
    command.env("TERM", "xterm-256color");
    if !colours {
        command.env("NO_COLOR", "1");
    }
    command
}

fn at(machine: &Machine, words: &str, columns: u16, colours: bool) -> Session {
    Session::showing_both(command(machine, words, colours), columns)
}

/// Compares the screen at each width, with and without colours. `show` also returns the words after
/// `toolward`.
fn compare(name: &str, machine: &Machine, show: impl Fn(u16, bool) -> (String, Left)) {
    let mut differences = Vec::new();
    for columns in WIDTHS {
        for colours in [false, true] {
            let suffix = if colours { "-colours" } else { "" };
            let file = golden(&format!("{name}-{columns}{suffix}.txt"));
            let recorded = fs::read_to_string(&file).unwrap_or_default();
            let (words, left) = show(columns, colours);
            let typed = format!("{PROMPT}toolward {words}\n{}", left.screen);
            let screen = recorded::replaced(&plain(&typed, machine), &recorded);
            if !colours {
                assert!(!screen.contains(ESCAPE), "{name}: colours in {screen}");
                let prose = screen.lines().filter(|line| !line.starts_with(COMMAND));
                let widest = prose.map(|line| line.chars().count()).max();
                assert!(
                    !FITTING.contains(&name) || widest.unwrap_or_default() <= usize::from(columns),
                    "{name}: wider than {columns} columns:\n{screen}"
                );
            }
            if writes_golden_files() {
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(&file, &screen).unwrap();
            } else if screen != recorded {
                differences.push(format!("{}:\n{screen}", file.display()));
            }
        }
    }
    assert!(
        differences.is_empty(),
        "not as in the file (TOOLWARD_GOLDEN=write writes it):\n{}",
        differences.join("\n")
    );
}

/// Returns the screen in the form of its file, with a fixed command path and processor.
fn plain(screen: &str, machine: &Machine) -> String {
    let directory = machine.work();
    let directory = directory.parent().unwrap().to_str().unwrap();
    assert!(directory.starts_with(DIRECTORY), "{directory}");
    let shown: String = screen.split_inclusive('\n').map(left_on_line).collect();
    shown
        .replace("\r\n", "\n")
        .replace('\u{1b}', ESCAPE)
        .replace(&toolward().display().to_string(), "/usr/bin/toolward")
        .replace(std::env::consts::ARCH, "x86_64")
}

/// Returns the rest of a line after progress was shown on it.
fn left_on_line(line: &str) -> &str {
    line.rsplit(CLEARED).next().unwrap_or(line)
}

/// Runs a command to its end.
fn ended(machine: &Machine, words: &str, columns: u16, colours: bool) -> (String, Left) {
    let left = at(machine, words, columns, colours).leaves();
    (words.to_owned(), left)
}

#[test]
fn approval() {
    let machine = notes();
    machine.configure(&notes_policy(&machine, ""));
    compare("approval", &machine, |columns, colours| {
        let words = "call notes.append --dev notes-append --set note=list --set text=Tea";
        let mut session = at(&machine, words, columns, colours);
        session.sees("? [y/N] ");
        session.types("n\r");
        (words.to_owned(), session.leaves())
    });
}

#[test]
fn held_update() {
    let (machine, one) = installed();
    ship(
        &machine,
        &crate::installing::reworded(release(2)),
        &one,
        "b.toolbundle",
    );
    compare("held-update", &machine, |columns, colours| {
        ended(&machine, "update", columns, colours)
    });
    compare("list-held", &machine, |columns, colours| {
        ended(&machine, "list", columns, colours)
    });
}

#[test]
fn list() {
    let (machine, _) = installed();
    compare("list", &machine, |columns, colours| {
        ended(&machine, "list", columns, colours)
    });
}

#[test]
fn show() {
    let (machine, _) = installed();
    compare("show", &machine, |columns, colours| {
        ended(&machine, "show text.stats", columns, colours)
    });
}

#[test]
fn errors_and_verify() {
    let (machine, _) = installed();
    machine.write("slip.toml", "[[grants]]\n");
    for (name, words) in [
        ("error-unknown-tool", "call text.stat --set text=a"),
        (
            "error-input",
            "call text.stats --set text=1 --set top=0 --set more=1",
        ),
        ("error-policy", "policy check slip.toml"),
        ("verify", "verify b.toolbundle"),
        ("error-usage", "call text.stats --inpt {}"),
    ] {
        compare(name, &machine, |columns, colours| {
            ended(&machine, words, columns, colours)
        });
    }
}

/// Replaces a bar that is about half full by one that is exactly half full. A bar at 50 % may be a
/// chunk longer or shorter.
fn half(bar: &str) -> String {
    let full = bar.matches('█').count();
    let all = full + bar.matches('░').count();
    assert!((2 * full).abs_diff(all) <= 3, "{bar}");
    let mut at = 0;
    let halved = bar.chars().map(|one| match one {
        '█' | '░' => {
            at += 1;
            if 2 * at <= all { '█' } else { '░' }
        }
        other => other,
    });
    halved.collect()
}

#[test]
fn progress() {
    let (machine, one) = trusting();
    machine.configure("[trust]\nmax_age_days = 90\n");
    ship(&machine, &release(1), &one, "b.toolbundle");
    compare("progress", &machine, |columns, colours| {
        let web = Web::halfway(machine.read("b.toolbundle"));
        let words = format!("install {} --plain-http", web.url("b.toolbundle"));
        let mut session = at(&machine, &words, columns, colours);
        session.shows(" 50% ");
        web.answer();
        let mut left = session.leaves();
        assert_eq!(left.code, Some(0), "{}", left.screen);
        let mut frames = left.screen.rsplit(CLEARED);
        let bar = frames.find(|frame| frame.contains(" 50% ")).unwrap();
        let (bar, seconds) = bar.split_at(bar.len() - "  0s".len());
        assert!(seconds.ends_with('s'), "{seconds}");
        left.screen = format!("{}  0s\n{}", half(bar), left.screen);
        machine.toolward("remove text.stats-bundle").ends(0);
        (words, left)
    });
}

#[test]
fn demo() {
    let machine = Machine::new();
    compare("demo", &machine, |columns, colours| {
        let ended = ended(&machine, "demo", columns, colours);
        machine.toolward("demo --remove").ends(0);
        ended
    });
}

#[test]
fn doctor() {
    let (machine, _) = installed();
    let machine = machine.with_own_cache();
    let kernel = ["engine", "memory-reset", "confinement", "system-calls"];
    let checks = machine.toolward("doctor --json").end().json();
    let mut checks = checks["checks"].as_array().unwrap().iter();
    if checks
        .any(|check| kernel.iter().any(|name| check["name"] == *name) && check["state"] != "ok")
    {
        skipped("this kernel lacks what the screens of `doctor` show");
        return;
    }
    compare("doctor", &machine, |columns, colours| {
        let mut command = command(&machine, "doctor", colours);
        // Hides all compilers of this machine.
        command.env("PATH", machine.path("no-programs"));
        let left = Session::showing_both(command, columns).leaves();
        ("doctor".to_owned(), left)
    });
}
