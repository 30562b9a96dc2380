//! `test` and `long`: one command that sets up what the tests need and runs them
//! all; `long` gives those that can run longer their full size.

use std::process::Command;

use crate::{Outcome, bindings, book, embedding, guests, process, program, repository, suites};

/// How much the tests do that can do more: those that read [`LONG`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// What every change is tested with.
    Short,
    /// What a release is tested with: a million calls, hours at most.
    Long,
}

/// Set for tests that run at their full size.
const LONG: &str = "TOOLWARD_LONG";

/// Cheap checks first, the big build after them.
pub(crate) fn run(size: Size, arguments: &[String]) -> Outcome {
    let root = repository::root()?;
    book::run(true)?;
    bindings::run(true)?;
    // Fails in seconds here, and after the whole build below.
    embedding::same_packages(&root)?;
    guests::build()?;
    // The official clients that the end-to-end tests call with, and amplifier-core.
    process::run(&mut Command::new(root.join("xtask/mcp-clients.sh")))?;
    process::run(&mut Command::new(root.join("xtask/amplifier.sh")))?;
    // What counts the instructions of a call.
    process::run(&mut Command::new(root.join("xtask/valgrind.sh")))?;

    println!("tests of the example drivers, on this machine:");
    process::run(
        repository::cargo()
            .args(["test", "--quiet", "--locked", "--manifest-path"])
            .arg(root.join("examples/Cargo.toml"))
            .arg("--target-dir")
            .arg(repository::target()?.join("examples")),
    )?;

    println!("other people's readers of our ledgers:");
    process::run(
        repository::cargo()
            .args(["test", "--quiet", "--locked", "--manifest-path"])
            .arg(root.join("ledger/readers/Cargo.toml"))
            .arg("--target-dir")
            .arg(repository::target()?),
    )?;

    // The end-to-end tests run the command itself, which `cargo test` does not
    // build for other packages.
    program::build("toolward")?;

    println!("tests of the workspace:");
    let mut tests = repository::cargo();
    tests
        .args(["test", "--locked", "--workspace"])
        .args(["--features", program::GENERATE])
        .env_remove(LONG)
        .current_dir(&root);
    if size == Size::Long {
        tests.env(LONG, "1");
    }
    // Nothing else runs while tests have their full size, or where it is set how many run.
    let apart = size == Size::Long || std::env::var_os(suites::THREADS).is_some();
    suites::run(&mut tests, arguments, if apart { 1 } else { 2 })?;

    println!("the command without what is optional:");
    process::run(
        repository::cargo()
            .args(["check", "--locked", "--package", "toolward-cli"])
            .arg("--no-default-features")
            .current_dir(&root),
    )?;

    println!("the example application:");
    embedding::run()
}
