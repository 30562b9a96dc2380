//! The processes that compile drivers for the others: how they are started, and
//! what they do.

use toolward_host::BrokerCommand;
use toolward_host::compile::broker::{run_broker, run_worker};

use crate::failure::{Code, Failure, Kind, Result, own_program};

/// How this very program becomes a broker and its workers.
pub(crate) fn command() -> Result<BrokerCommand> {
    Ok(BrokerCommand {
        program: own_program()?,
        broker: vec!["internal-compile-broker".into()],
        worker: vec!["internal-compile-worker".into()],
    })
}

pub(super) fn broker() -> Result {
    run_broker().map_err(ended)
}

pub(super) fn worker() -> Result {
    run_worker().map_err(ended)
}

fn ended(error: std::io::Error) -> Failure {
    Failure::new(Kind::Failed, Code::BrokerUnavailable, error)
}
