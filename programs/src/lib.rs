//! Programs that run outside the sandbox, each because an operator's `[[exec]]` table names it. A
//! confined process can't start programs, so the host starts a *broker* before it confines itself.
//! The broker keeps the `[[exec]]` tables of that time: programs, directories, secrets' sources,
//! limits. Over its socket it then accepts only the number of a table and an input. For each run
//! the broker starts a *runner*, which drops its rights and becomes the program.
//!
//! Broker and runner are programs of the embedder, usually the embedder's own program with another
//! argument. The broker calls [`run_broker`] first in `main`, and the runner [`run_runner`]. A host
//! without a broker runs no program.

mod broker;
mod executor;
mod file;
mod frame;
mod job;
mod kernel;
mod line;
mod link;
mod plan;
mod runner;
mod serve;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use toolward_contract::driver::Driver;
use toolward_host::Executor;
use toolward_policy::{ExecRule, Limits, Policy};
use toolward_support::helper::{self, frames::send};
use toolward_support::report::codes;

use self::executor::ProgramExecutor;
pub use self::file::{ExecProblem, check};
use self::frame::{Ending, PROTOCOL, Request, Start};
use self::line::Line;
use self::link::Link;
pub use self::runner::run_runner;
pub use self::serve::run_broker;

codes! {
    /// The programs of a policy can't be run.
    #[derive(Debug)]
    pub enum StartError: Error {
        Broker { program: PathBuf, source: std::io::Error } = "exec-broker-unavailable",
            ("the broker of programs {} can't be started: {source}", program.display())
            => "name a program that exists and that you may run";
    }
}

/// The program of broker and runner, with the arguments for each.
#[derive(Debug, Clone)]
pub struct ExecCommand {
    /// The full path of the program.
    pub program: PathBuf,
    /// The arguments with which the program calls [`run_broker`].
    pub broker: Vec<OsString>,
    /// The arguments with which the program calls [`run_runner`].
    pub runner: Vec<OsString>,
}

/// A connection to a broker that runs the programs of a policy. Cheap to clone; dropping the last
/// clone ends the broker, and with it all programs.
///
/// ```no_run
/// use toolward_host::Host;
/// use toolward_policy::Policy;
/// use toolward_programs::{ExecBroker, ExecCommand, run_broker, run_runner};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// match std::env::args().nth(1).as_deref() {
///     Some("exec-broker") => return Ok(run_broker()?),
///     Some("exec-runner") => return Ok(run_runner()?),
///     _ => {}
/// }
/// let policy = Policy::empty();
/// let command = ExecCommand {
///     program: std::env::current_exe()?,
///     broker: vec!["exec-broker".into()],
///     runner: vec!["exec-runner".into()],
/// };
/// let variables = |name: &str| std::env::var(name).ok();
/// // Before the process confines itself.
/// let broker = ExecBroker::start(&command, &policy, "/etc/example".as_ref(), variables)?;
/// let host = Host::builder().policy(policy).executor("exec", broker.executor()).build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ExecBroker {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// The tables that the broker was started with. The number of a table is its index here.
    rules: Vec<ExecRule>,
    link: Link,
}

impl ExecBroker {
    /// Starts a broker with the `[[exec]]` tables of a policy. Relative paths of secrets' files
    /// start at `base`. Variables are read now, through `environment`. Call this before any guest
    /// runs and before the process confines itself.
    ///
    /// # Errors
    ///
    /// If the broker's program can't be started. A table whose program can't be used is reported by
    /// the calls that need it.
    pub fn start(
        command: &ExecCommand,
        policy: &Policy,
        base: &Path,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, StartError> {
        let fail = |source| StartError::Broker {
            program: command.program.clone(),
            source,
        };
        let rules = policy.tables().execs.to_vec();
        let lines: Vec<Line> = rules
            .iter()
            .map(|rule| Line::of(rule, policy, base, &environment))
            .collect();
        let input_bytes = Limits::default().with(&policy.tables().limits).input_bytes;
        let output_bytes = lines.iter().map(|line| line.limits.output_bytes).max();
        let (child, mut socket) =
            helper::start(&command.program, &command.broker, Stdio::null()).map_err(fail)?;
        let start = Start {
            protocol: PROTOCOL,
            program: command.program.clone().into_os_string(),
            arguments: command.runner.clone(),
            input_bytes,
            lines,
        };
        match send(&mut socket, &Request::Start(Box::new(start)), &[]) {
            // A broker that has already died is reported with the first call.
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(fail(error)),
            _ => Ok(Self {
                inner: Arc::new(Inner {
                    rules,
                    link: Link::new(child, socket, output_bytes.unwrap_or_default()),
                }),
            }),
        }
    }

    /// Makes the executors of programs, for
    /// [`HostBuilder::executor`](toolward_host::HostBuilder::executor).
    pub fn executor(&self) -> impl Fn(&Arc<Driver>) -> Arc<dyn Executor> + Send + Sync + use<> {
        let broker = self.clone();
        move |_| {
            Arc::new(ProgramExecutor {
                broker: broker.clone(),
            })
        }
    }

    /// The number of a table, if the broker was started with it.
    fn number(&self, rule: &ExecRule) -> Option<usize> {
        self.inner.rules.iter().position(|known| known == rule)
    }

    /// Checks that the program of a table can be started. A runner confines itself as for a call,
    /// and the kernel loads the program, which ends before its first instruction. The table's
    /// secrets are not read.
    ///
    /// # Errors
    ///
    /// Why the program can't be started, or why this is not known.
    pub async fn try_start(&self, rule: &ExecRule) -> Result<(), ExecProblem> {
        let unstarted = |problem: &str| ExecProblem::Unstarted(problem.to_owned());
        let line = self.number(rule);
        let line = line.ok_or_else(|| unstarted("the broker was started without its line"))?;
        let ran = self.inner.link.run(line, None).await;
        match ran.map_err(ExecProblem::Unstarted)?.ending {
            Ending::Killed(signal) if runner::TRIAL_SIGNALS.contains(&signal) => Ok(()),
            Ending::Refused(problem) => Err(problem),
            ending => Err(unstarted(&format!("its runner ended with {ending:?}"))),
        }
    }
}
