//! `test` and `long`: set up everything that the tests need, and run all tests. With `long`, tests
//! that can run longer run at their full size.

use std::process::Command;

use crate::{Outcome, bindings, book, embedding, guests, process, program, repository};

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
    // The official clients that the end-to-end tests call with, and amplifier-core.
    process::run(&mut Command::new(root.join("xtask/mcp-clients.sh")))?;
    process::run(&mut Command::new(root.join("xtask/amplifier.sh")))?;
    // The program that counts the instructions of a call.
    process::run(&mut Command::new(root.join("xtask/valgrind.sh")))?;

    println!("tests of the example drivers, on this machine:");
    process::run(
        Command::new(repository::cargo())
            .args(["test", "--quiet", "--locked", "--manifest-path"])
            .arg(root.join("examples/Cargo.toml"))
            .arg("--target-dir")
            .arg(repository::target()?.join("examples")),
    )?;

    println!("other people's readers of our ledgers:");
    process::run(
        Command::new(repository::cargo())
            .args(["test", "--quiet", "--locked", "--manifest-path"])
            .arg(root.join("ledger/readers/Cargo.toml"))
            .arg("--target-dir")
            .arg(repository::target()?),
    )?;

    // The end-to-end tests run the command itself, which `cargo test` does not
    // build for other packages.
    program::build("toolward")?;

    println!("tests of the workspace:");
    let mut tests = Command::new(repository::cargo());
    tests
        .args(["test", "--locked", "--workspace"])
        .args(["--features", program::GENERATE])
        .args(arguments)
        .env_remove(LONG)
        .current_dir(&root);
    // Tests that start processes spend a quarter of their time waiting.
    if std::env::var_os("RUST_TEST_THREADS").is_none() {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        tests.env("RUST_TEST_THREADS", (2 * processors).to_string());
    }
    if size == Size::Long {
        tests.env(LONG, "1");
    }
    process::run(&mut tests)?;

    println!("the command without what is optional:");
    process::run(
        Command::new(repository::cargo())
            .args(["check", "--locked", "--package", "toolward-cli"])
            .arg("--no-default-features")
            .current_dir(&root),
    )?;

    println!("the example application:");
    embedding::run()
}
