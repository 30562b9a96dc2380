//! Helper processes: this program, started again for one task. They compile drivers, record calls
//! and run programs. A server waits for two helpers when it starts. To be fast, a helper parses its
//! command line without the description of all commands, and does not read the user's environment.

use std::io;
use std::process::Stdio;

use clap::{Parser, Subcommand as _};
use toolward_host::compile::broker::{run_broker, run_worker};
use toolward_host::{Broker, BrokerCommand, HostBuilder};
use toolward_operator::doctor::Check;
use toolward_operator::host_setup::ConfiguredSetup;
use toolward_operator::recorder::{CallRecorder, RecorderCommand, StartedRecorder, run_recorder};
use toolward_operator::trust::changes::TrustRows;

use crate::environment::Environment;
use crate::logging::LogFormat;
use crate::output::Look;
use crate::prelude::*;
use crate::{logging, stderr};

/// What a process of this program does for its parent.
#[derive(Debug, Parser)]
#[command(name = "toolward")]
pub(crate) enum Helper {
    /// Starts workers that compile drivers
    #[command(name = "internal-compile-broker")]
    CompileBroker,
    /// Compiles one driver, for the broker
    #[command(name = "internal-compile-worker")]
    CompileWorker,
    /// Records calls
    #[command(name = "internal-recorder")]
    Recorder {
        /// How lines of its log are written
        #[arg(long)]
        log_format: Option<LogFormat>,

        /// Leave checkpoints out of its log
        #[arg(long)]
        brief: bool,
    },
    /// Starts programs that the policy grants
    #[cfg(feature = "programs")]
    #[command(name = "internal-exec-broker")]
    ExecBroker,
    /// Becomes a program that the broker names
    #[cfg(feature = "programs")]
    #[command(name = "internal-exec-runner")]
    ExecRunner,
}

impl Helper {
    /// Returns the task of this process, if it is a helper.
    pub(crate) fn of_process() -> Option<Self> {
        let word = std::env::args_os().nth(1)?;
        Self::has_subcommand(word.to_str()?).then(Self::parse)
    }

    /// Runs the task, and reports a failure on standard error.
    pub(crate) fn run(self) -> Exit {
        let of = |code| move |error: io::Error| Failure::failed(code, error);
        let done = match self {
            Self::CompileBroker => run_broker().map_err(of(Code::BrokerUnavailable)),
            Self::CompileWorker => run_worker().map_err(of(Code::BrokerUnavailable)),
            Self::Recorder { log_format, brief } => record(log_format, brief),
            #[cfg(feature = "programs")]
            Self::ExecBroker => {
                toolward_programs::run_broker().map_err(of(Code::ExecBrokerUnavailable))
            }
            #[cfg(feature = "programs")]
            Self::ExecRunner => {
                toolward_programs::run_runner().map_err(of(Code::ExecBrokerUnavailable))
            }
        };
        match done {
            Ok(()) => Exit::Fine,
            Err(failure) => Context::new(Look::default(), Environment::default()).failure(&failure),
        }
    }
}

/// The file of this program, which starts itself as its helpers. `code` is for the failure if the
/// file can't be found.
pub(crate) fn own_program(code: Code) -> Result<PathBuf> {
    std::env::current_exe().map_err(|error| {
        let message = format!("this program's own file can't be found: {error}");
        Failure::failed(code, message)
    })
}

/// Returns the command that starts the broker that compiles drivers, and its workers.
pub(crate) fn compiler() -> Result<BrokerCommand> {
    Ok(BrokerCommand {
        program: own_program(Code::BrokerUnavailable)?,
        broker: vec!["internal-compile-broker".into()],
        worker: vec!["internal-compile-worker".into()],
    })
}

/// Warns if a compiled driver could not be cached, since the next call compiles it again.
pub(crate) fn warn_if_not_kept(broker: &Broker, context: &Context) {
    if let Some(problem) = broker.not_kept() {
        let directory = broker.directory().unwrap_or(Path::new("")).display();
        context.warning(format!(
            "{directory}: compiled drivers are not kept: {problem}; make room there, or name another directory with \
             --cache-dir"
        ));
    }
}

/// Returns the command that starts the recorder.
pub(crate) fn recorder() -> Result<RecorderCommand> {
    Ok(RecorderCommand {
        program: own_program(Code::BrokerUnavailable)?,
        arguments: vec!["internal-recorder".into()],
    })
}

/// Returns the value that records decisions about bundles in the ledger.
pub(crate) fn trust_rows<'a>(trust: &'a Trust, context: &'a Context) -> Result<TrustRows<'a>> {
    Ok(TrustRows {
        command: recorder()?,
        trust,
        environment: context,
    })
}

/// Where the recorder writes its log, and in which format.
pub(crate) struct RecorderLog {
    pub(crate) stderr: Stdio,
    pub(crate) format: Option<LogFormat>,
    /// Whether the log leaves out the checkpoints themselves. Set if anyone who can write the
    /// ledger can also change the log, so that checkpoints in it would prove nothing.
    pub(crate) brief: bool,
}

/// Starts the recorder, unless the configuration turns the ledger off.
pub(crate) fn start_recorder(
    setup: ConfiguredSetup<'_>,
    context: &Context,
    log: RecorderLog,
) -> Result<Option<StartedRecorder>> {
    let mut command = recorder()?;
    let format = log.format.map(LogFormat::flag);
    let brief = log.brief.then(|| "--brief".into());
    command.arguments.extend(format.into_iter().chain(brief));
    let settings = setup.ledger()?;
    StartedRecorder::start(&command, &settings, context, log.stderr)
}

/// Makes a host record its calls, if a recorder is running.
pub(crate) fn recorded(
    builder: HostBuilder,
    recorder: Option<&CallRecorder>,
    granted: &Granted,
) -> HostBuilder {
    match recorder {
        Some(recorder) => recorder.records(builder, granted),
        None => builder,
    }
}

/// Closes the recorder after calls have ended, and warns if not everything may be recorded.
pub(crate) fn close_recorder(recorder: Option<&CallRecorder>, context: &Context) {
    if let Some(Err(failure)) = recorder.map(CallRecorder::close) {
        let what = "not all of the call may be recorded";
        context.report.warning_of(what, &failure);
    }
}

fn record(format: Option<LogFormat>, brief: bool) -> Result {
    logging::start_of_recorder(format, brief);
    let confined = || {
        // Signals must not end the recorder: it ends with its connection, which carries the last
        // rows.
        let _ = toolward_support::helper::survive_termination();
        // If this fails, lines are written directly.
        let _ = stderr::detach();
    };
    run_recorder(confined)
        .map_err(|error| Failure::failed(OperatorCode::RecorderUnavailable, error))
}

/// The broker of the policy's programs, if the policy names any.
#[derive(Clone, Default)]
pub(crate) struct Programs {
    #[cfg(feature = "programs")]
    broker: Option<toolward_programs::ExecBroker>,
}

#[cfg(feature = "programs")]
impl Programs {
    pub(crate) fn start(granted: &Granted, context: &Context) -> Result<Self> {
        let broker = toolward_operator::programs::start(&Self::command()?, granted, context)?;
        Ok(Self { broker })
    }

    /// Gives a host the broker.
    pub(crate) fn attach(&self, builder: HostBuilder) -> HostBuilder {
        match &self.broker {
            Some(broker) => builder.executor("exec", broker.executor()),
            None => builder,
        }
    }

    /// Returns the checks of `doctor` for programs.
    pub(crate) fn checks(
        trust: &Trust,
        files: &PolicyFiles,
        context: &Context,
    ) -> Result<Vec<Check>> {
        let command = Self::command()?;
        let checks = toolward_operator::programs::checks(&command, trust, files, context);
        Ok(checks)
    }

    fn command() -> Result<toolward_programs::ExecCommand> {
        Ok(toolward_programs::ExecCommand {
            program: own_program(Code::BrokerUnavailable)?,
            broker: vec!["internal-exec-broker".into()],
            runner: vec!["internal-exec-runner".into()],
        })
    }
}

#[cfg(not(feature = "programs"))]
#[expect(clippy::unnecessary_wraps, reason = "as with the feature")]
impl Programs {
    const WITHOUT_EFFECT: &str =
        "this build runs no programs: `[[exec]]` of the policy has no effect";

    pub(crate) fn start(granted: &Granted, context: &Context) -> Result<Self> {
        if !granted.policy.tables().execs.is_empty() {
            context.warning(Self::WITHOUT_EFFECT);
        }
        Ok(Self::default())
    }

    #[expect(clippy::unused_self, reason = "as with the feature")]
    pub(crate) fn attach(&self, builder: HostBuilder) -> HostBuilder {
        builder
    }

    pub(crate) fn checks(
        trust: &Trust,
        files: &PolicyFiles,
        context: &Context,
    ) -> Result<Vec<Check>> {
        use toolward_operator::doctor::CheckState;

        // If the policy can't be read, its own check reports that.
        let granted = Granted::read(trust, files, context).ok();
        let has_programs = granted.is_some_and(|one| !one.policy.tables().execs.is_empty());
        let check = || Check::new(CheckState::Warning, Self::WITHOUT_EFFECT).named("exec");
        Ok(has_programs.then(check).into_iter().collect())
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
