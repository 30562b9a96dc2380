//! `internal-man-pages`: a manual page of each command, for packages.

use std::path::PathBuf;

use clap::Args;

use crate::failure::{Code, Failure, Kind, Result};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// An existing directory
    directory: PathBuf,
}

pub(crate) fn run(arguments: &Arguments, command: clap::Command) -> Result {
    clap_mangen::generate_to(command, &arguments.directory).map_err(|error| {
        let directory = arguments.directory.display();
        let message = format!("the manual pages can't be written to {directory}: {error}");
        Failure::new(Kind::Failed, Code::OutputUnwritable, message)
    })
}
