//! `examples` and `docs`: committed files that follow from the project's own crates. A package that
//! depends on these crates makes them.

use std::ffi::OsStr;
use std::process::Command;

use crate::{Outcome, guests, process, program, repository};

/// Makes the signed archives of the example bundles, which builds the drivers. With `check` it
/// compares them with their sources, which needs no compiler for drivers.
pub(crate) fn examples(check: bool) -> Outcome {
    if check {
        return run(&["examples-check".as_ref()]);
    }
    guests::build()?;
    let compiler = repository::read(&guests::toolchain_folder()?.join("compiler"))?;
    run(&["examples".as_ref(), compiler.trim().as_ref()])
}

/// Makes or compares the book's reference pages. One of them is the command's help.
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
