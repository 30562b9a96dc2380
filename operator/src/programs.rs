//! The programs that the policy allows to run outside the sandbox.

use std::time::Duration;

use toolward_policy::ExecRule;
use toolward_programs::{ExecBroker, ExecCommand, ExecProblem};

use crate::doctor::Check;
use crate::granted::{Granted, PolicyFiles};
use crate::trust::Trust;
use crate::{Environment, Error, Kind, Result};

/// How long the broker may take to start a program. Of this time, the runner (the process that
/// becomes the program) may take twenty seconds.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Starts the broker of programs if the policy names any program. Call it before this process
/// confines itself, while it has only one thread.
///
/// ```no_run
/// use toolward_operator::{Operator, programs};
/// use toolward_programs::ExecCommand;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let operator = Operator::of_process();
/// let command = ExecCommand {
///     program: std::env::current_exe()?,
///     broker: vec!["exec-broker".into()],
///     runner: vec!["exec-runner".into()],
/// };
/// let granted = operator.granted()?;
/// let broker = programs::start(&command, &granted, &operator.environment)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// If the broker's program can't be started.
pub fn start(
    command: &ExecCommand,
    granted: &Granted,
    environment: &Environment,
) -> Result<Option<ExecBroker>> {
    let policy = &granted.policy;
    if policy.tables().execs.is_empty() {
        return Ok(None);
    }
    let broker = ExecBroker::start(command, policy, "/".as_ref(), environment.variable);
    broker
        .map(Some)
        .map_err(|error| Error::of(Kind::Failed, error))
}

/// Checks each program: lets the kernel load it, confined as for a call, without running it.
pub fn checks(
    command: &ExecCommand,
    trust: &Trust,
    files: &PolicyFiles,
    environment: &Environment,
) -> Vec<Check> {
    let Ok(granted) = Granted::read(trust, files, environment) else {
        // The check of the policy reports this error.
        return Vec::new();
    };
    let broker = match start(command, &granted, environment) {
        Ok(Some(broker)) => broker,
        Ok(None) => return Vec::new(),
        Err(failure) => return vec![Check::of(Err(failure)).named("exec")],
    };
    let rules = granted.policy.tables().execs.iter();
    let checks = rules.map(|rule| program(rule, &broker).named("exec"));
    checks.collect()
}

fn program(rule: &ExecRule, broker: &ExecBroker) -> Check {
    let name = format!(
        "{} of {} runs {} outside the sandbox",
        rule.tool, rule.publisher, rule.command
    );
    if rule.is_placeholder() {
        return Check::warning(format!("{name}, once somebody has chosen what is marked"))
            .hint("write the digest of the file, and the variables of its secrets");
    }
    match toolward_programs::check(rule).and_then(|()| try_start(rule, broker)) {
        Ok(()) => Check::ok(name),
        Err(problem) => Check::error(format!("{name}: {problem}"))
            .hint(problem.hint().unwrap_or_default().into_owned()),
    }
}

fn try_start(rule: &ExecRule, broker: &ExecBroker) -> Result<(), ExecProblem> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let runtime = runtime.map_err(|error| ExecProblem::Unstarted(error.to_string()))?;
    let tried = async { tokio::time::timeout(START_TIMEOUT, broker.try_start(rule)).await };
    let late = |_| ExecProblem::Unstarted(format!("no answer in {} s", START_TIMEOUT.as_secs()));
    runtime.block_on(tried).map_err(late)?
}
