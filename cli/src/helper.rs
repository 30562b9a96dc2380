//! Helper processes: this program, started again for one task. A server waits for two of them, so their command line is
//! parsed without the description of all commands, and nothing of a person's environment is looked up.

use clap::{Parser, Subcommand as _};

#[cfg(feature = "programs")]
use crate::commands::exec_broker;
use crate::commands::{compile_broker, recorder};
use crate::failure::Exit;
use crate::output::{Look, Output};

/// What a process of this program does for its parent.
#[derive(Debug, Parser)]
#[command(name = "toolward")]
pub(crate) enum Helper {
    /// Has drivers compiled
    #[command(name = "internal-compile-broker")]
    CompileBroker,
    /// Compiles one driver, for the broker
    #[command(name = "internal-compile-worker")]
    CompileWorker,
    /// Records calls
    #[command(name = "internal-recorder")]
    Recorder(recorder::Arguments),
    /// Has programs run
    #[cfg(feature = "programs")]
    #[command(name = "internal-exec-broker")]
    ExecBroker,
    /// Becomes a program, for the broker
    #[cfg(feature = "programs")]
    #[command(name = "internal-exec-runner")]
    ExecRunner,
}

impl Helper {
    /// What this process was started for, if it is a helper.
    pub(crate) fn of_process() -> Option<Self> {
        let word = std::env::args_os().nth(1)?;
        Self::has_subcommand(word.to_str()?).then(Self::parse)
    }

    /// Does it, and reports a failure on standard error.
    pub(crate) fn run(self) -> Exit {
        let done = match self {
            Self::CompileBroker => compile_broker::broker(),
            Self::CompileWorker => compile_broker::worker(),
            Self::Recorder(arguments) => recorder::recorder(&arguments),
            #[cfg(feature = "programs")]
            Self::ExecBroker => exec_broker::broker(),
            #[cfg(feature = "programs")]
            Self::ExecRunner => exec_broker::runner(),
        };
        match done {
            Ok(()) => Exit::Fine,
            Err(failure) => Output::new(&Look::default()).failure(&failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn flags_of_helpers_contradict_each_other_nowhere() {
        Helper::command().debug_assert();
    }
}
