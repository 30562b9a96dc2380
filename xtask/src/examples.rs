//! `examples`: the signed archives of the example bundles, made or compared. The
//! work is done by a package that uses the project's own libraries.

use std::process::Command;

use crate::{Outcome, guests, process, repository};

/// Makes the archives; with `check` it compares them with their sources, which
/// takes no compiler for the drivers.
pub(crate) fn run(check: bool) -> Outcome {
    if !check {
        guests::build()?;
    }
    let root = repository::root()?;
    let mut command = Command::new(repository::cargo());
    command.args([
        "run",
        "--quiet",
        "--locked",
        "--package",
        "xtask-bundles",
        "--",
    ]);
    if check {
        command.arg("--check");
    }
    process::run(command.current_dir(root))
}
