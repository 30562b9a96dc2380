//! The server does every system call: the answers are those of the table that is checked
//! in, and nothing happened that must not.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::json;

use super::cases::{Addresses, LEFT_OUT, NEWEST, X32, all, names, path_for_32_bits};
use super::scene::{Scene, User, is_root};
use super::server::Server;
use super::tracee::{Answer, Tracee};
use super::{may_trace, skipped};

/// Writes the table anew, for a person to review.
const WRITE: &str = "TOOLWARD_TEST_WRITE_CALLS";

/// The calls of x32, and one that it does not have.
const OF_X32: u64 = 548;

const EPERM: i64 = -1;
const ENOSYS: i64 = -38;

fn outcome(answer: Answer) -> &'static str {
    match answer {
        Answer::Value(EPERM) => "refused",
        Answer::Value(ENOSYS) => "absent",
        Answer::Value(_) | Answer::Waits => "passes",
        Answer::Ended => "ended the process",
    }
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("outcomes.txt")
}

/// Makes a server do all calls. The outcomes, a line for each.
fn outcomes(user: User) -> String {
    let mut scene = Scene::new(user);
    let mut server = scene.serve();
    works(&mut server);
    let before = scene.state();
    let tracee = Tracee::stop(server.process());
    let at = Addresses::write(&tracee, server.process(), &scene);
    let names = names();
    let mut lines = Vec::new();
    for case in all(&at) {
        let answer = tracee.call(case.number, case.arguments);
        let name = names.get(&case.number).copied().unwrap_or("-");
        lines.push((case.number, name, case.what, outcome(answer)));
        if answer == Answer::Ended {
            panic!("{} {name} ended the process", case.number);
        }
    }
    lines.extend(LEFT_OUT.map(|(number, why)| (number, names[&number], "", why)));
    lines.sort_by_key(|(number, ..)| *number);
    let mut text = String::new();
    for (number, name, what, outcome) in lines {
        writeln!(text, "{number:>3} {name:<24} {what:<40} {outcome}").unwrap();
    }

    for number in 0..=OF_X32 {
        let answer = tracee.call(X32 | number, [u64::MAX; 6]);
        assert_eq!(outcome(answer), "refused", "x32: {number}");
    }
    chmod_of_32_bits(&tracee, &scene);

    tracee.release();
    let changed: Vec<_> = {
        let after = scene.state();
        let keys = before.keys().chain(after.keys()).cloned();
        let mut keys: Vec<String> = keys.collect();
        keys.dedup();
        keys.into_iter()
            .filter(|key| before.get(key) != after.get(key))
            .map(|key| (before.get(&key).cloned(), after.get(&key).cloned(), key))
            .collect()
    };
    assert!(changed.is_empty(), "{changed:#?}");
    works(&mut server);
    text
}

/// The calls of 32 bits have other numbers, and the same kernel behind them.
fn chmod_of_32_bits(tracee: &Tracee, scene: &Scene) {
    const CHMOD: u64 = 15;
    match tracee.call_of_32_bits(CHMOD, [path_for_32_bits(tracee, scene), 0o777, 0]) {
        Some(answer) => assert_eq!(outcome(answer), "refused"),
        None => skipped("this kernel has no system calls of 32 bits"),
    }
}

/// The server still does its work.
fn works(server: &mut Server) {
    let answer = server.call("text.stats", &json!({"text": "One two."}));
    assert_eq!(answer["isError"], false, "{answer}");
}

#[test]
fn each_system_call_is_answered_as_the_table_says_and_changes_nothing() {
    if !may_trace() {
        return;
    }
    assert!(names().last_key_value().unwrap().0 == &NEWEST);
    let found = outcomes(User::Ordinary);
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(path(), &found).unwrap();
    }
    let expected = std::fs::read_to_string(path()).unwrap();
    same(&found, &expected);
    if is_root() {
        same(&outcomes(User::Root), &expected);
    } else {
        skipped("the calls as root: the tests run as another user");
    }
}

/// The lines that differ, rather than both tables.
#[track_caller]
fn same(found: &str, expected: &str) {
    let lines = |text: &str, other: &str| -> Vec<String> {
        let other: Vec<&str> = other.lines().collect();
        let own = text.lines().filter(|line| !other.contains(line));
        own.map(str::to_owned).collect()
    };
    let (new, gone) = (lines(found, expected), lines(expected, found));
    assert!(
        found == expected,
        "found: {new:#?}\nbut {} has: {gone:#?}\nset {WRITE} to write it anew, and review it",
        path().display()
    );
}
