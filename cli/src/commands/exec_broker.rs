//! The processes that run programs: how they are started, and what they do.

use toolward_host::HostBuilder;
use toolward_host::exec::{ExecBroker, ExecCommand, run_broker, run_runner};
use toolward_operator::granted::Granted;
use toolward_operator::processes;

use crate::environment::Environment;
use crate::failure::{Code, Failure, Kind, Result, own_program};

/// Starts the broker of the policy's programs, if it names any.
pub(crate) fn start(granted: &Granted, environment: &Environment) -> Result<Option<ExecBroker>> {
    processes::start_programs(&command()?, granted, &environment.operator)
}

/// Where the programs are: this one, started again.
pub(crate) fn command() -> Result<ExecCommand> {
    Ok(ExecCommand {
        program: own_program()?,
        broker: vec!["internal-exec-broker".into()],
        runner: vec!["internal-exec-runner".into()],
    })
}

/// Gives a host the broker, if there is one.
pub(crate) fn given(builder: HostBuilder, programs: Option<&ExecBroker>) -> HostBuilder {
    match programs {
        Some(programs) => builder.programs(programs.clone()),
        None => builder,
    }
}

pub(crate) fn broker() -> Result {
    run_broker().map_err(ended)
}

pub(crate) fn runner() -> Result {
    run_runner().map_err(ended)
}

fn ended(error: std::io::Error) -> Failure {
    Failure::new(Kind::Failed, Code::ExecBrokerUnavailable, error)
}
