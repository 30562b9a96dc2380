//! The process that records calls: how it is started, and what it does.

use std::process::Stdio;

use clap::Args;
use toolward_host::HostBuilder;
use toolward_operator::granted::Granted;
use toolward_operator::host_setup::HostSetup;
use toolward_operator::recorder::{CallRecorder, RecorderCommand, StartedRecorder, run_recorder};
use toolward_operator::trust::Trust;

use crate::environment::Environment;
use crate::failure::{Failure, Kind, OperatorCode, Result, own_program};
use crate::logging::LogFormat;
use crate::output::Output;
use crate::{logging, stderr};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// How lines of its log are written
    #[arg(long)]
    log_format: Option<LogFormat>,

    /// Leave checkpoints out of its log
    #[arg(long)]
    brief: bool,
}

/// Where the recorder's log goes, and its form.
pub(crate) struct RecorderLog {
    pub(crate) stderr: Stdio,
    pub(crate) format: Option<LogFormat>,
    /// Whether a checkpoint's line has only the words: nothing keeps the log where a writer of the ledger can't reach it.
    pub(crate) brief: bool,
}

impl RecorderLog {
    /// No log.
    pub(crate) fn none() -> Self {
        Self {
            stderr: Stdio::null(),
            format: None,
            brief: true,
        }
    }
}

/// Starts the recorder, unless the configuration says that nothing is recorded.
pub(crate) fn start(
    (setup, trust): (&HostSetup, &Trust),
    environment: &Environment,
    log: RecorderLog,
) -> Result<Option<StartedRecorder>> {
    let mut command = command()?;
    command.arguments.extend(log.format.map(LogFormat::flag));
    command
        .arguments
        .extend(log.brief.then(|| "--brief".into()));
    let settings = setup.ledger(trust, environment)?;
    StartedRecorder::start(&command, &settings, environment, log.stderr)
}

/// What starts the recorder.
pub(super) fn command() -> Result<RecorderCommand> {
    Ok(RecorderCommand {
        program: own_program()?,
        arguments: vec!["internal-recorder".into()],
    })
}

/// Has a host's calls recorded, if there is a recorder.
pub(crate) fn given(
    builder: HostBuilder,
    recorder: Option<&CallRecorder>,
    granted: &Granted,
) -> HostBuilder {
    match recorder {
        Some(recorder) => recorder.records(builder, granted),
        None => builder,
    }
}

/// Says what may not be recorded, once calls have ended.
pub(crate) fn close(recorder: Option<&CallRecorder>, output: &Output) {
    if let Some(Err(failure)) = recorder.map(CallRecorder::close) {
        output.warning(format!(
            "not all of the call may be recorded: {} ({})",
            failure.message, failure.code
        ));
    }
}

pub(crate) fn recorder(arguments: &Arguments) -> Result {
    logging::start_of_recorder(arguments.log_format, arguments.brief);
    let confined = || {
        // It ends with its connection, which has the last rows.
        let _ = toolward_support::helper::survive_termination();
        // Without the thread, lines are written at once.
        let _ = stderr::detach();
    };
    run_recorder(confined)
        .map_err(|error| Failure::new(Kind::Failed, OperatorCode::RecorderUnavailable, error))
}
