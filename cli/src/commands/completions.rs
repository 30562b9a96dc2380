//! `completions`: a script that completes this command's arguments.

use clap::Args;
use clap_complete::Shell;

use crate::failure::Result;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments, mut command: clap::Command) -> Result {
    // Into memory first: the generator panics when its output is gone.
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "toolward", &mut script);
    crate::output::raw(&script)
}
