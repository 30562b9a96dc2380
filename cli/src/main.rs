//! The `toolward` command: parses arguments, calls libraries, and prints results. Everything that a
//! library can do is in a library.
//!
//! Exit codes: 0 fine; 1 the tool or a check failed; 2 wrong usage; 3 verification refused; 4
//! denied by policy. The exit code does not change if the reader closes the pipe.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod approve;
mod codes;
mod commands;
mod environment;
mod failure;
mod flags;
mod help;
mod helper;
mod logging;
mod output;
mod prelude;
mod progress;
mod stderr;
mod usage;
mod wrap;

use std::process::ExitCode;

use crate::commands::{Cli, Style};
use crate::environment::{Colours, Environment};
use crate::failure::Exit;
use crate::helper::Helper;
use crate::output::{Context, Look};

fn main() -> ExitCode {
    // Makes a write beyond the limit on a file's size fail, and not end the process. If the system
    // refuses, such a write ends the process, as in any other program.
    let _ = toolward_support::helper::survive_file_limit();
    let exit = match Helper::of_process() {
        Some(helper) => helper.run(),
        None => command(),
    };
    stderr::finish();
    exit.into()
}

/// Runs the command of a person or a client.
fn command() -> Exit {
    #[cfg(feature = "adapters")]
    if let Err(error) = toolward_adapters::amplifier::WORLD.register() {
        stderr::write(format!("{error}\n"));
        return Exit::Failed;
    }
    let cli = Cli::of_process();
    let environment = Environment::read();
    let colour = cli.style.color.unwrap_or_default();
    let colours = environment.colours.wanted(colour);
    let Style { json, quiet, .. } = cli.style;
    // Output for a program has no colours.
    let colours = if json { Colours::default() } else { colours };
    let look = Look {
        json,
        quiet,
        colours,
    };
    let context = Context::new(look, environment);
    match commands::run(cli.command, &context) {
        Ok(exit) => exit,
        Err(failure) => context.failure(&failure),
    }
}
