//! Checks that the programs of the policy's `[[exec]]` can be started.

use std::time::Duration;

use toolward_host::exec::{self, ExecBroker, ExecCommand, ExecProblem};
use toolward_policy::ExecRule;

use super::{Check, State};
use crate::environment::Environment;
use crate::granted::{Granted, PolicyFiles};
use crate::processes;
use crate::trust::Trust;

const NAME: &str = "exec";
/// How long the broker may take for a program. A runner has twenty seconds to become one.
const PATIENCE: Duration = Duration::from_secs(30);

/// Has the kernel load each program, confined as for a call. None of them runs.
pub fn programs(
    command: &ExecCommand,
    trust: &Trust,
    files: &PolicyFiles,
    environment: &Environment,
) -> Vec<Check> {
    let Ok(granted) = Granted::read(trust, files, environment) else {
        // The check of the policy reports it.
        return Vec::new();
    };
    let broker = match processes::start_programs(command, &granted, environment) {
        Ok(Some(broker)) => broker,
        Ok(None) => return Vec::new(),
        Err(failure) => return vec![Check::failed(NAME, failure)],
    };
    let rules = granted.policy.execs().iter();
    rules.map(|rule| program(rule, &broker)).collect()
}

fn program(rule: &ExecRule, broker: &ExecBroker) -> Check {
    let name = format!(
        "{} of {} runs {} outside the sandbox",
        rule.tool, rule.publisher, rule.command
    );
    if rule.is_placeholder() {
        return Check::new(
            NAME,
            State::Warning,
            format!("{name}, once somebody has chosen what is marked"),
        )
        .hint("write the digest of the file, and the variables of its secrets");
    }
    match exec::check(rule).and_then(|()| try_start(rule, broker)) {
        Ok(()) => Check::new(NAME, State::Ok, name),
        Err(problem) => Check::new(NAME, State::Error, format!("{name}: {problem}"))
            .hint(problem.hint().unwrap_or_default().into_owned()),
    }
}

fn try_start(rule: &ExecRule, broker: &ExecBroker) -> Result<(), ExecProblem> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let runtime = runtime.map_err(|error| ExecProblem::Unstarted(error.to_string()))?;
    let tried = async { tokio::time::timeout(PATIENCE, broker.try_start(rule)).await };
    let late = |_| ExecProblem::Unstarted(format!("no answer in {} s", PATIENCE.as_secs()));
    runtime.block_on(tried).map_err(late)?
}
