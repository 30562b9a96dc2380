//! The operator's grants, as the command reads, applies and shows them.

mod approval;
mod blocked;
mod contexts;
mod documents;
mod files;
mod for_one_call;
mod foreign;
mod forms;
mod granting;
mod layers;
mod looking;
mod partial;
mod promised;
mod requests;
mod resolving;
mod scratch;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Ended, Machine, Run, copy, root};

/// Copies an example to the work directory as a bundle under work: contracts and drivers, without a
/// signature.
fn under_work(machine: &Machine, example: &str) {
    let from = root().join("examples").join(example);
    for part in ["bundle.toml", "tools", "drivers"] {
        copy(
            &from.join(part),
            &machine.path(&format!("{example}/{part}")),
        );
    }
}

/// Returns the name of a bundle under work in policies.
fn dev(machine: &Machine, bundle: &str) -> String {
    let directory = machine.path(bundle).canonicalize().unwrap();
    format!("dev:{}", directory.display())
}

/// A machine with `notes.append` under work, and a directory for its notes.
pub(crate) fn notes() -> Machine {
    let machine = Machine::new();
    under_work(&machine, "notes-append");
    fs::create_dir(machine.path("my-notes")).unwrap();
    machine
}

/// Returns the policy that grants `notes.append` that directory.
pub(crate) fn notes_policy(machine: &Machine, more: &str) -> String {
    format!(
        "[[workspace]]\npath = \"/notes\"\ndirectory = {:?}\n\n\
         [[grant]]\npublisher = {:?}\ntool = \"notes.append\"\n\
         mutates = [\"workspace:/notes\"]\n{more}\n",
        machine.path("my-notes"),
        dev(machine, "notes-append")
    )
}

/// Calls `notes.append` to write to `journal`.
fn append(machine: &Machine, flags: &str, text: &str) -> Run {
    machine
        .toolward(&format!(
            "call notes.append --dev notes-append {flags} --input"
        ))
        .arg(json!({ "note": "journal", "text": text }).to_string())
}

/// Returns the names of the notes that were written, sorted.
fn written(machine: &Machine) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(machine.path("my-notes"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Returns the lines for a policy in a command's output for people: the lines after the hint,
/// without the narrower lines, or the whole output of `policy suggest`.
fn lines(text: &str) -> String {
    let start = text
        .find("[[")
        .unwrap_or_else(|| panic!("no lines in {text}"));
    let lines = text.split_at(start).1;
    let fewer = lines.split_once("\nor only this");
    fewer.map_or(lines, |(all, _)| all).to_owned()
}

/// Replaces every directory that waits for a choice by a directory below `chosen`, and creates it.
/// Choices of hosts and sources stay open.
fn chosen(lines: &str, chosen: &Path) -> String {
    const WAITS: &str = "/path/to/choose/";
    lines
        .lines()
        .map(|line| {
            let Some((before, after)) = line.split_once(WAITS) else {
                return format!("{line}\n");
            };
            let (name, _) = after.split_once('"').unwrap();
            let directory = chosen.join(name);
            fs::create_dir_all(&directory).unwrap();
            format!("{before}{}\"\n", directory.display())
        })
        .collect()
}

/// Returns the path of the user's own policy file.
fn users_file(machine: &Machine) -> PathBuf {
    machine.home().join(".config/toolward/toolward.toml")
}

/// Returns the state of a tool in `policy list`.
fn state(machine: &Machine, tool: &str, flags: &str) -> String {
    let lines = machine
        .toolward(&format!("policy list {flags} --json"))
        .ends(0)
        .json_lines();
    let line = lines
        .iter()
        .find(|line| line["tool"].as_str().unwrap().starts_with(tool))
        .unwrap_or_else(|| panic!("no {tool} in {lines:?}"));
    line["state"].as_str().unwrap().to_owned()
}

/// Returns the envelope of a call, after asserting that it was blocked before anything ran.
#[track_caller]
fn is_blocked(ended: &Ended) -> Value {
    assert_eq!(ended.code, Some(4), "{ended}");
    let envelope = ended.json();
    assert_eq!(envelope["error"]["code"], "unauthorised", "{ended}");
    assert_eq!(envelope["meta"]["attempts"], 0, "{ended}");
    envelope
}

/// Changes the contract of a bundle under work.
fn change(machine: &Machine, file: &str, from: &str, to: &str) {
    let before = machine.text(file);
    assert!(before.contains(from), "{file} has no {from:?}");
    machine.write(file, before.replacen(from, to, 1));
}

/// Signs a bundle under work with a new key. Writes `NAME.toolbundle` and `NAME.pub.pem`, and
/// returns the key's name in policies.
fn signed(machine: &Machine, bundle: &str, name: &str) -> String {
    let manifest = format!("{bundle}/bundle.toml");
    let before = machine.text(&manifest);
    let named = before.lines().map(|line| {
        if line.starts_with("publisher = ") {
            format!("publisher = {name:?}\n")
        } else {
            format!("{line}\n")
        }
    });
    machine.write(&manifest, named.collect::<String>());
    machine
        .toolward(&format!("publisher keys new --out {name}.pem"))
        .ends(0);
    machine
        .toolward(&format!(
            "pack {bundle} -o {name}.toolbundle --key {name}.pem"
        ))
        .ends(0);
    let words = format!("verify {name}.toolbundle --trust-key {name}.pub.pem --json");
    let verified = machine.toolward(&words).ends(0).json();
    verified["publisher"].as_str().unwrap().to_owned()
}
