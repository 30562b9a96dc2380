//! Confines this process before it runs guests, and says so where it can't be.

use clap::Args;
use toolward_host::Broker;
use toolward_host::confine::{ConfineError, Confinement};

use crate::failure::{Exit, Failure};
use crate::output::Output;

/// Whether the process confines itself.
#[derive(Debug, Args)]
pub(crate) struct ConfineFlags {
    /// Leave this process its rights while it runs drivers: whoever escapes the
    /// sandbox then has yours
    #[arg(long)]
    no_confine: bool,
}

impl ConfineFlags {
    /// Gives up every right that `confinement` doesn't keep, but reading what
    /// the broker compiles. Call it with the host made, the broker started and the
    /// runtime not yet: threads that are there already would go free.
    pub(crate) fn apply(
        &self,
        confinement: Confinement,
        broker: &Broker,
        output: &Output,
    ) -> Result<(), Failure> {
        if self.no_confine {
            output.warning(
                "this process is not confined: whoever escapes the sandbox has all your rights",
            );
            return Ok(());
        }
        let confinement = match broker.artefacts() {
            Some(path) => confinement.read(path),
            None => confinement,
        };
        let confined = confinement.apply()?;
        if let Some(warning) = confined.warning() {
            output.warning(warning);
        }
        Ok(())
    }
}

impl From<ConfineError> for Failure {
    fn from(error: ConfineError) -> Self {
        let failure = Self::new(Exit::Failed, error.code(), &error);
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
