//! The processes that compile drivers for the others: how they are started, and
//! what they do.

use std::path::Path;

use toolward_host::compile::broker::{run_broker, run_worker};
use toolward_host::{Broker, BrokerCommand};

use crate::failure::{Code, Failure, Kind, Result, own_program};
use crate::output::Output;

/// How this very program becomes a broker and its workers.
pub(crate) fn command() -> Result<BrokerCommand> {
    Ok(BrokerCommand {
        program: own_program()?,
        broker: vec!["internal-compile-broker".into()],
        worker: vec!["internal-compile-worker".into()],
    })
}

/// Says that the next call compiles its driver again, where the cache did not take it.
pub(crate) fn warn_if_not_kept(broker: &Broker, output: &Output) {
    if let Some(problem) = broker.not_kept() {
        let directory = broker.directory().unwrap_or(Path::new(""));
        output.warning(format!(
            "{}: compiled drivers are not kept: {problem}; make room there, or name another directory with \
             --cache-dir",
            directory.display()
        ));
    }
}

pub(crate) fn broker() -> Result {
    run_broker().map_err(ended)
}

pub(crate) fn worker() -> Result {
    run_worker().map_err(ended)
}

fn ended(error: std::io::Error) -> Failure {
    Failure::new(Kind::Failed, Code::BrokerUnavailable, error)
}
