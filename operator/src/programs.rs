//! The broker that runs the programs of the policy's `[[exec]]`.

use toolward_host::exec::{ExecBroker, ExecCommand};

use crate::config::Granted;
use crate::environment::Environment;
use crate::error::Error;

/// Starts the broker of programs, if the policy names any. Call it before this process confines itself, and while
/// it has one thread.
///
/// ```no_run
/// use toolward_host::exec::ExecCommand;
/// use toolward_operator::{Environment, Operator, programs};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let operator = Operator::of_process();
/// let command = ExecCommand {
///     program: std::env::current_exe()?,
///     broker: vec!["exec-broker".into()],
///     runner: vec!["exec-runner".into()],
/// };
/// let granted = operator.granted()?;
/// let programs = programs::start(&command, &granted, &operator.environment)?;
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
) -> Result<Option<ExecBroker>, Error> {
    let policy = &granted.policy;
    if policy.execs().is_empty() {
        return Ok(None);
    }
    let broker = ExecBroker::start(command, policy, "/".as_ref(), environment.variable)?;
    Ok(Some(broker))
}
