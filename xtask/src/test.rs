//! `test` and `long`: set up everything that the tests need, and run all tests. With `long`, tests
//! that can run longer run at their full size.

use std::process::Command;

use crate::{Outcome, bindings, book, embedding, guests, process, program, repository, suites};

/// The size of the tests that can run longer: the tests that read [`LONG`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// The size for every change.
    Short,
    /// The size for a release: a million calls, hours at most.
    Long,
}

/// Set for tests that run at their full size.
const LONG: &str = "TOOLWARD_LONG";

/// Runs cheap checks first, and the big build after them.
pub(crate) fn run(size: Size, arguments: &[String]) -> Outcome {
    let root = repository::root()?;
    book::run(true)?;
    bindings::run(true)?;
    // This check takes seconds. If it failed only after the build below, that time would be lost.
    embedding::same_packages(&root)?;
    guests::build()?;
    // The official clients that the end-to-end tests use, and amplifier-core.
    process::run(&mut Command::new(root.join("xtask/mcp-clients.sh")))?;
    process::run(&mut Command::new(root.join("xtask/amplifier.sh")))?;
    // The program that counts the instructions of a call.
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
    // One program runs at a time if tests have their full size, or if the number of test threads is
    // set.
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
