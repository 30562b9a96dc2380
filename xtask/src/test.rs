//! `test`: one command that sets up what the tests need and runs them all.

use std::process::Command;

use crate::{Outcome, bindings, book, guests, process, repository};

/// Cheap checks first, the big build last: it ends with cargo's own results.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let root = repository::root()?;
    book::run(true)?;
    bindings::run(true)?;
    guests::build()?;
    // The official clients that the end-to-end tests call with.
    process::run(&mut Command::new(root.join("xtask/mcp-clients.sh")))?;

    println!("tests of the example drivers, on this machine:");
    process::run(
        Command::new(repository::cargo())
            .args(["test", "--quiet", "--locked", "--manifest-path"])
            .arg(root.join("examples/Cargo.toml"))
            .arg("--target-dir")
            .arg(repository::target()?.join("examples")),
    )?;

    // The end-to-end tests run the command itself, which `cargo test` does not
    // build for other packages.
    process::run(
        Command::new(repository::cargo())
            .args(["build", "--locked", "--package", "toolward"])
            .current_dir(&root),
    )?;

    println!("tests of the workspace:");
    process::run(
        Command::new(repository::cargo())
            .args(["test", "--locked", "--workspace"])
            .args(arguments)
            .current_dir(&root),
    )
}
