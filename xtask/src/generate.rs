//! `examples` and `docs`: committed files that the project's own crates are the
//! source of. The work is done by a package that depends on those crates.

use std::ffi::OsStr;
use std::process::Command;

use crate::{Outcome, guests, process, program, repository};

/// The signed archives of the example bundles. Making them builds the drivers;
/// `check` compares them with their sources, and takes no compiler for drivers.
pub(crate) fn examples(check: bool) -> Outcome {
    if check {
        return run(&["examples-check".as_ref()]);
    }
    guests::build()?;
    let compiler = repository::read(&guests::toolchain_folder()?.join("compiler"))?;
    run(&["examples".as_ref(), compiler.trim().as_ref()])
}

/// The book's reference pages, made or compared. One of them is what the command says
/// of itself.
pub(crate) fn docs(check: bool) -> Outcome {
    let command = program::build("toolward")?;
    let chore = if check { "docs-check" } else { "docs" };
    run(&[chore.as_ref(), command.as_os_str()])
}

fn run(arguments: &[&OsStr]) -> Outcome {
    let program = program::build("xtask-generate")?;
    process::run(
        Command::new(program)
            .args(arguments)
            .current_dir(repository::root()?),
    )
}
