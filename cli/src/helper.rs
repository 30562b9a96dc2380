//! The processes that this program starts of itself. A server waits for two of them, so they start without the
//! description of all commands and without what a person's environment says.

use clap::{Parser, Subcommand as _};

use crate::commands::{compile_broker, exec_broker, recorder};
use crate::environment::Colours;
use crate::failure::{Exit, Result};
use crate::output::{Look, Output};

/// What a process of this program does for the one that started it.
#[derive(Debug, Parser)]
#[command(name = "toolward")]
pub(crate) enum Helper {
    /// Has drivers compiled
    InternalCompileBroker,
    /// Compiles one driver, for the broker
    InternalCompileWorker,
    /// Records calls
    InternalRecorder(recorder::Arguments),
    /// Has programs run
    InternalExecBroker,
    /// Becomes a program, for the broker
    InternalExecRunner,
}

impl Helper {
    /// What this process was started for, if it is a helper.
    pub(crate) fn of_process() -> Option<Self> {
        let word = std::env::args_os().nth(1)?;
        Self::has_subcommand(word.to_str()?).then(Self::parse)
    }

    /// Does it, and says what went wrong.
    pub(crate) fn run(self) -> Exit {
        match self.done() {
            Ok(()) => Exit::Fine,
            Err(failure) => {
                let mut output = Output::new(&Look {
                    json: false,
                    quiet: false,
                    colours: Colours::default(),
                });
                output.failure(&failure)
            }
        }
    }

    fn done(self) -> Result {
        match self {
            Self::InternalCompileBroker => compile_broker::broker(),
            Self::InternalCompileWorker => compile_broker::worker(),
            Self::InternalRecorder(arguments) => recorder::recorder(&arguments),
            Self::InternalExecBroker => exec_broker::broker(),
            Self::InternalExecRunner => exec_broker::runner(),
        }
    }
}
