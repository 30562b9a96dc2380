//! `embedding`: the example application in `embedding/`, which has a workspace of its
//! own, built with the dependencies that the workspace has compiled already, and run.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Outcome, process, program, repository};

/// What both programs are called with, and what their answers have to hold.
const INPUT: &[u8] = b"{\"text\": \"one two two\"}\n";
const ANSWER: &str = "\"words\":3";

/// Checks that both lock files name the same versions, builds the example and runs it.
/// The drivers of the examples have to be there.
pub(crate) fn run() -> Outcome {
    let root = repository::root()?;
    let command = absolute(&program::build("toolward")?)?;
    same_versions(&root)?;
    let programs = build(&root)?;

    let call = output(
        Command::new(programs.join("call"))
            .arg(root.join("examples/bundles/text-stats.toolbundle"))
            .arg(root.join("examples/keys/example.pub.pem")),
    )?;
    expect("call", &call)?;

    let home = installed(&root, &command)?;
    let served = output(at_home(&programs.join("serve"), &home).arg("text.stats"))?;
    expect("serve", &served)?;
    println!("embedding: the application calls a bundle's tool, and an installed one");
    Ok(())
}

/// Fails where a package of the example has another version than in this workspace: it
/// would be compiled for the example alone.
fn same_versions(root: &Path) -> Outcome {
    let ours = repository::read(&root.join("Cargo.lock"))?;
    let theirs = repository::read(&root.join("embedding/Cargo.lock"))?;
    let ours = packages(&ours);
    let others: Vec<String> = packages(&theirs)
        .difference(&ours)
        .map(|(name, version)| format!("{name} {version}"))
        .collect();
    if others.is_empty() {
        return Ok(());
    }
    Err(format!(
        "embedding/Cargo.lock has other versions than Cargo.lock ({}); copy Cargo.lock over it, \
         and run `cargo metadata` there",
        others.join(", ")
    ))
}

/// The packages of a lock file that come from a registry, with their versions.
fn packages(lock: &str) -> BTreeSet<(&str, &str)> {
    lock.split("[[package]]")
        .skip(1)
        .filter(|package| value(package, "source").is_some())
        .filter_map(|package| Some((value(package, "name")?, value(package, "version")?)))
        .collect()
}

fn value<'a>(package: &'a str, key: &str) -> Option<&'a str> {
    package.lines().find_map(|line| {
        let (name, value) = line.split_once(" = ")?;
        (name == key).then(|| value.trim_matches('"'))
    })
}

/// Builds the example in the target folder of this workspace; says where the programs are.
fn build(root: &Path) -> Outcome<PathBuf> {
    let target = repository::target()?;
    process::run(
        Command::new(repository::cargo())
            .args(["build", "--locked", "--manifest-path"])
            .arg(root.join("embedding/Cargo.toml"))
            .arg("--target-dir")
            .arg(&target),
    )?;
    Ok(target.join("debug"))
}

/// A user's home with the text statistics installed, signed by a publisher whom that
/// user trusts.
fn installed(root: &Path, command: &Path) -> Outcome<PathBuf> {
    let home = absolute(&repository::target()?.join("embedding-home"))?;
    let config = home.join(".config/toolward");
    let describe = |error| format!("{}: {error}", home.display());
    if home.exists() {
        std::fs::remove_dir_all(&home).map_err(describe)?;
    }
    std::fs::create_dir_all(&config).map_err(describe)?;
    let toolward =
        |arguments: &[&str]| output(at_home(command, &home).args(arguments).current_dir(&config));
    toolward(&["keys", "new", "--out", "acme.pem"])?;
    let trust = "[[publisher]]\nname = \"toolward-examples\"\nkey_files = [\"acme.pub.pem\"]\n\
                 prefixes = [\"text\", \"text-stats\"]\n";
    std::fs::write(config.join("toolward.toml"), trust).map_err(describe)?;
    let source = root.join("examples/text-stats");
    let source = source.to_str().ok_or("the checkout's path is not UTF-8")?;
    toolward(&["pack", source, "-o", "b.toolbundle", "--key", "acme.pem"])?;
    toolward(&["install", "b.toolbundle"])?;
    Ok(home)
}

/// The path from anywhere: the target folder may be named from the current directory.
fn absolute(path: &Path) -> Outcome<PathBuf> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// A program for the user whose home this is.
fn at_home(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", home);
    command
}

/// Runs a program on [`INPUT`]; returns what it printed.
fn output(command: &mut Command) -> Outcome<String> {
    let shown = format!("{command:?}");
    let failed = |error: std::io::Error| format!("{shown}: {error}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        // A program that reads no input may be gone by now.
        let _ = input.write_all(INPUT);
    }
    let output = child
        .wait_with_output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("{shown} failed ({})", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn expect(program: &str, printed: &str) -> Outcome {
    if printed.contains(ANSWER) {
        return Ok(());
    }
    Err(format!("embedding: `{program}` printed {printed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_a_registry_are_compared_by_name_and_version() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n\
                    source = \"registry\"\n\n[[package]]\nname = \"own\"\nversion = \"0.1.0\"\n";
        assert_eq!(packages(lock), BTreeSet::from([("a", "1.0.0")]));
    }
}
