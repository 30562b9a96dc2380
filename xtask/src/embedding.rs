//! `embedding`: builds and runs the example application in `embedding/`, and a host without network
//! and SQLite. They have a separate workspace, but use the dependencies that this workspace has
//! compiled already.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Outcome, process, program, repository};

/// The input of the text statistics, and a part of the expected answer.
const INPUT: &[u8] = b"{\"text\": \"one two two\"}\n";
const ANSWER: &str = "\"words\":3";

/// The expected parts of the output of a host without network and SQLite.
const PURE: [&str; 3] = [
    ANSWER,
    "\"network-missing\"",
    "the host has no key-value store",
];

/// Packages that such a host must not link.
const UNWANTED: [&str; 4] = ["hyper-util ", "ring ", "rusqlite ", "rustls "];

/// Checks that nothing is compiled twice, builds the programs and runs them. The example drivers
/// must exist.
pub(crate) fn run() -> Outcome {
    let root = repository::root()?;
    same_packages(&root)?;
    let command = absolute(&program::build("toolward")?)?;
    let (bundles, key) = (
        root.join("examples/bundles"),
        root.join("examples/keys/example.pub.pem"),
    );

    let programs = build(&root, "embedding")?;
    let bundle = bundles.join("text-stats.toolbundle");
    let call = output(Command::new(programs.join("call")).args([&bundle, &key]))?;
    expect("call", &call, &[ANSWER])?;

    let home = installed(&root, &command)?;
    let served = output(at_home(&programs.join("serve"), &home).arg("text.stats"))?;
    expect("serve", &served, &[ANSWER])?;
    println!("embedding: the application calls a bundle's tool, and an installed one");

    let linked = tree(&root.join("embedding/Cargo.toml"), &["--package", "pure"])?;
    let unwanted = |line: &&str| UNWANTED.iter().any(|name| line.starts_with(name));
    if let Some(package) = linked.lines().find(unwanted) {
        return Err(format!("embedding: `pure` links {package}"));
    }
    let pure = build(&root, "pure")?.join("pure");
    let called = output(Command::new(pure).args([&bundles, &key]))?;
    expect("pure", &called, &PURE)?;
    println!("embedding: a host without network and SQLite calls a tool, and refuses two");
    Ok(())
}

/// Fails if a program needs a package in another version or with other features than this
/// workspace, since the package would then be compiled twice.
pub(crate) fn same_packages(root: &Path) -> Outcome {
    let ours = tree(&root.join("Cargo.toml"), &["--workspace"])?;
    let ours = packages(&ours);
    for program in ["embedding", "pure"] {
        let theirs = tree(&root.join("embedding/Cargo.toml"), &["--package", program])?;
        let others: Vec<&str> = packages(&theirs).difference(&ours).copied().collect();
        if !others.is_empty() {
            return Err(format!(
                "`{program}` would have packages compiled once more:\n{}\nIf they have other \
                 versions, copy Cargo.lock to embedding and run `cargo metadata` there; if they \
                 have other features, name these in the program's Cargo.toml",
                others.join("\n")
            ));
        }
    }
    Ok(())
}

/// Returns the packages that are compiled for some packages, one on each line, with version and
/// features.
fn tree(manifest: &Path, packages: &[&str]) -> Outcome<String> {
    let tree = process::output(
        repository::cargo()
            .args(["tree", "--locked", "--edges", "normal,build"])
            .args(["--prefix", "none", "--format", "{p} {f}"])
            .args(packages)
            .arg("--manifest-path")
            .arg(manifest),
    )?;
    Ok(String::from_utf8_lossy(&tree).into_owned())
}

/// Returns the lines of a [`tree`] about packages of a registry.
fn packages(tree: &str) -> BTreeSet<&str> {
    tree.lines()
        .map(|line| line.trim_end_matches(" (*)"))
        .filter(|line| !line.contains("(/"))
        .collect()
}

/// Builds one package in the target folder of this workspace, with the features that it requests.
/// Returns the folder of the programs.
fn build(root: &Path, package: &str) -> Outcome<PathBuf> {
    let target = repository::target()?;
    process::run(
        repository::cargo()
            .args(["build", "--locked", "--package", package, "--manifest-path"])
            .arg(root.join("embedding/Cargo.toml"))
            .arg("--target-dir")
            .arg(&target),
    )?;
    Ok(target.join("debug"))
}

/// Makes a user's home with the text statistics installed. Their publisher is one that the user
/// trusts.
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
    toolward(&["publisher", "keys", "new", "--out", "acme.pem"])?;
    let trust = "[[publisher]]\nname = \"toolward-examples\"\nkey_files = [\"acme.pub.pem\"]\n\
                 prefixes = [\"text\", \"text-stats\"]\n";
    std::fs::write(config.join("toolward.toml"), trust).map_err(describe)?;
    let source = root.join("examples/text-stats");
    let source = source.to_str().ok_or("the checkout's path is not UTF-8")?;
    toolward(&["pack", source, "-o", "b.toolbundle", "--key", "acme.pem"])?;
    toolward(&["install", "b.toolbundle"])?;
    Ok(home)
}

/// Makes a path absolute, since the target folder may be relative to the current directory.
fn absolute(path: &Path) -> Outcome<PathBuf> {
    std::path::absolute(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns a command that runs a program with this home and no other variables.
fn at_home(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("HOME", home);
    command
}

/// Runs a program with [`INPUT`], and returns its output.
fn output(command: &mut Command) -> Outcome<String> {
    let shown = format!("{command:?}");
    let failed = |error: std::io::Error| format!("{shown}: {error}");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        // A program that reads no input may have ended by now.
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

fn expect(program: &str, printed: &str, answers: &[&str]) -> Outcome {
    if answers.iter().all(|answer| printed.contains(answer)) {
        return Ok(());
    }
    Err(format!("embedding: `{program}` printed {printed}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_a_registry_are_compared_by_version_and_features() {
        let tree = "a v1.0.0 default,std\nown v0.1.0 (/work/own) default\na v1.0.0 default,std (*)";
        assert_eq!(packages(tree), BTreeSet::from(["a v1.0.0 default,std"]));
    }
}
