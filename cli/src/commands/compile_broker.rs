//! The processes that compile drivers for the others: how they are started, and
//! what they do.

use toolward_host::BrokerCommand;
use toolward_host::compile::broker::{run_broker, run_worker};

use crate::failure::{Exit, Failure, Kind};

/// How this very program becomes a broker and its workers.
pub(crate) fn command() -> Result<BrokerCommand, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        Failure::new(
            Kind::Failed,
            "broker-unavailable",
            format!("this program's own file can't be found: {error}"),
        )
    })?;
    Ok(BrokerCommand {
        program,
        broker: vec!["internal-compile-broker".into()],
        worker: vec!["internal-compile-worker".into()],
    })
}

pub(super) fn broker() -> Result<Exit, Failure> {
    ended(run_broker())
}

pub(super) fn worker() -> Result<Exit, Failure> {
    ended(run_worker())
}

fn ended(result: std::io::Result<()>) -> Result<Exit, Failure> {
    match result {
        Ok(()) => Ok(Exit::Fine),
        Err(error) => Err(Failure::new(Kind::Failed, "broker-unavailable", error)),
    }
}
