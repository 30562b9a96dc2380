//! `examples` and `docs`: committed files that the project's own crates are the
//! source of. The work is done by a package that depends on those crates.

use std::process::Command;

use crate::{Outcome, guests, process, program, repository};

/// The signed archives of the example bundles. Making them builds the drivers;
/// `check` compares them with their sources, and takes no compiler for drivers.
pub(crate) fn examples(check: bool) -> Outcome {
    if check {
        return run(&["examples-check"]);
    }
    guests::build()?;
    let compiler = repository::read(&guests::toolchain_folder()?.join("compiler"))?;
    run(&["examples", compiler.trim()])
}

/// The book's pages that list codes, made or compared.
pub(crate) fn docs(check: bool) -> Outcome {
    run(if check { &["docs-check"] } else { &["docs"] })
}

fn run(arguments: &[&str]) -> Outcome {
    let program = program::build("xtask-generate")?;
    process::run(
        Command::new(program)
            .args(arguments)
            .current_dir(repository::root()?),
    )
}
