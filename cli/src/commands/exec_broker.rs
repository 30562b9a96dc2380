//! The processes that run programs: how they are started, and what they do. Without the feature `programs` none is.

use toolward_host::HostBuilder;
use toolward_operator::doctor::Check;
use toolward_operator::granted::{Granted, PolicyFiles};
#[cfg(feature = "programs")]
use toolward_operator::programs;
use toolward_operator::trust::Trust;
#[cfg(feature = "programs")]
use toolward_programs::{ExecBroker, ExecCommand, run_broker, run_runner};

use crate::environment::Environment;
use crate::failure::Result;
#[cfg(feature = "programs")]
use crate::failure::{Code, Failure, Kind, own_program};

/// The broker of the policy's programs, if it names any.
#[derive(Clone, Default)]
pub(crate) struct Programs {
    #[cfg(feature = "programs")]
    broker: Option<ExecBroker>,
}

#[cfg(feature = "programs")]
impl Programs {
    pub(crate) fn start(granted: &Granted, environment: &Environment) -> Result<Self> {
        let broker = programs::start(&command()?, granted, &environment.operator)?;
        Ok(Self { broker })
    }

    /// Gives a host the broker.
    pub(crate) fn attach(&self, builder: HostBuilder) -> HostBuilder {
        match &self.broker {
            Some(broker) => builder.executor("exec", broker.executor()),
            None => builder,
        }
    }

    /// What `doctor` finds.
    pub(crate) fn checks(
        trust: &Trust,
        files: &PolicyFiles,
        environment: &Environment,
    ) -> Result<Vec<Check>> {
        Ok(programs::checks(
            &command()?,
            trust,
            files,
            &environment.operator,
        ))
    }
}

#[cfg(not(feature = "programs"))]
#[expect(clippy::unnecessary_wraps, reason = "as with the feature")]
impl Programs {
    pub(crate) fn start(_: &Granted, _: &Environment) -> Result<Self> {
        Ok(Self::default())
    }

    #[expect(clippy::unused_self, reason = "as with the feature")]
    pub(crate) fn attach(&self, builder: HostBuilder) -> HostBuilder {
        builder
    }

    pub(crate) fn checks(_: &Trust, _: &PolicyFiles, _: &Environment) -> Result<Vec<Check>> {
        Ok(Vec::new())
    }
}

/// Where the programs are: this one, started again.
#[cfg(feature = "programs")]
fn command() -> Result<ExecCommand> {
    Ok(ExecCommand {
        program: own_program()?,
        broker: vec!["internal-exec-broker".into()],
        runner: vec!["internal-exec-runner".into()],
    })
}

#[cfg(feature = "programs")]
pub(crate) fn broker() -> Result {
    run_broker().map_err(ended)
}

#[cfg(feature = "programs")]
pub(crate) fn runner() -> Result {
    run_runner().map_err(ended)
}

#[cfg(feature = "programs")]
fn ended(error: std::io::Error) -> Failure {
    Failure::new(Kind::Failed, Code::ExecBrokerUnavailable, error)
}
