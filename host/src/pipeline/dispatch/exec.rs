//! Attempts by a program outside the sandbox: the broker runs it, as the operator's line says. It is never tried
//! again: nothing declares what it does.

use std::pin::pin;
use std::time::{Duration, Instant};

use serde_json::json;
use toolward_contract::tool::Tool;

use super::attempts::{Attempt, Attempts};
use super::clock::Clock;
use super::memory::AttemptMemory;
use super::outcome::Attempted;
use super::output;
use crate::api::limits::CallLimits;
use crate::api::result::{CallError, Captured, ErrorClass, ErrorCode, timed_out, too_large};
use crate::exec::{Bound, Ending, ExecProblem, Run};
use crate::invocation::DriverOutput;
use crate::pipeline::candidates::no_credential;
use crate::sandbox::deadline;
use crate::sandbox::secrets::CallSecrets;
use crate::sandbox::tools::SlotCell;

/// When to try again where the broker runs as many programs as it can.
const BUSY_RETRY: Duration = Duration::from_secs(1);

/// The rule of a broker that has ended or hangs.
const BROKER_UNAVAILABLE: &str = "exec-broker-unavailable";

/// Bytes of a program's standard error that its error quotes.
const QUOTED_STDERR_BYTES: u64 = 2048;

/// A program and its input.
pub(crate) struct Program<'a> {
    pub(crate) bound: &'a Bound,
    pub(crate) contract: &'a Tool,
    pub(crate) input: &'a str,
    pub(crate) secrets: &'a CallSecrets,
    pub(crate) limits: &'a CallLimits,
    /// Has the memory of the call.
    pub(crate) slot: &'a SlotCell,
    /// Whether the caller is the person who runs the host.
    pub(crate) is_local: bool,
}

impl Attempts for Program<'_> {
    async fn attempt(&mut self, _number: u32, clock: &Clock, _spent: u64) -> Attempt {
        let mut captured = Captured::default();
        let result = {
            let memory = AttemptMemory::of(self.slot, self.limits.memory_bytes);
            let run = pin!(self.run(&mut captured, &memory));
            let run = pin!(memory.until_ended(run));
            match deadline::before(clock.deadline, run).await {
                Ok(result) => result.flatten().map(Attempted::Done),
                Err(deadline::Elapsed) => Err(clock.late()),
            }
        };
        Attempt {
            result,
            claimed: false,
            // What it does is in no declaration.
            dispatched: true,
            failing: false,
            fuel: 0,
            peak_memory: 0,
            captured,
        }
    }
}

impl Program<'_> {
    async fn run(
        &self,
        captured: &mut Captured,
        memory: &AttemptMemory,
    ) -> Result<DriverOutput, CallError> {
        // The broker reads the values where the operator keeps them. The host reads them too, to redact
        // them in what it shows.
        for slug in self.bound.rule.env.keys() {
            self.secrets
                .reveal(slug)
                .map_err(|_| no_credential(slug).of_attachment(true))?;
        }
        // As text, and in the frame for the broker.
        memory.cover((self.input.len() as u64).saturating_mul(2))?;
        let started = Instant::now();
        let (line, input) = (self.bound.line, self.input.to_owned());
        let ran = self.bound.broker.run(line, input).await;
        let ran = ran.map_err(|problem| {
            tracing::error!(%problem, "no program can be run");
            not_run(
                "the broker that runs programs has ended",
                BROKER_UNAVAILABLE,
            )
            .with_hint(ErrorCode::UNAUTHORISED.ask_the_operator("start the host again"))
        })?;
        let is_cut = ran.is_stderr_cut();
        let Run {
            ending,
            stdout,
            stderr,
        } = ran;
        memory.cover(stdout.len().saturating_add(stderr.len()) as u64)?;
        // Before it is cut again: no later search finds the rest of a value.
        let stderr = match self.secrets.redactor() {
            Some(redactor) => redactor.end_of_text(stderr, is_cut),
            None => stderr,
        };
        captured.stderr = end_of(&stderr, self.limits.stdio_bytes);
        self.outcome(ending, stdout, &stderr, started.elapsed())
    }

    fn outcome(
        &self,
        ending: Ending,
        stdout: Vec<u8>,
        stderr: &[u8],
        took: Duration,
    ) -> Result<DriverOutput, CallError> {
        let limits = &self.bound.rule.limits;
        let failed = |message: String, mut cause: serde_json::Value| {
            let quoted = end_of(stderr, QUOTED_STDERR_BYTES);
            let quoted = quoted.trim();
            if let (false, Some(fields)) = (quoted.is_empty(), cause.as_object_mut()) {
                fields.insert("stderr".to_owned(), quoted.into());
            }
            upstream(message).with_cause(cause)
        };
        match ending {
            Ending::Exited(0) => output_of(stdout, self.contract),
            Ending::Exited(code) => Err(failed(
                format!("the program ended with exit code {code}"),
                json!({ "exit": code }),
            )),
            Ending::Killed(signal) => Err(failed(
                format!("the program was ended by signal {signal}"),
                json!({ "signal": signal }),
            )
            .with_hint(
                "signal 9 means that it used more processor time than it may, or that memory is short",
            )),
            Ending::Late => Err(timed_out(limits.timeout(), took)
                .with_hint(less(ErrorCode::TIMEOUT))),
            Ending::TooMuch => Err(
                too_large(limits.output_bytes.saturating_add(1), limits.output_bytes)
                    .with_hint(less(ErrorCode::RESULT_TOO_LARGE)),
            ),
            Ending::Busy => Err(CallError::new(
                ErrorCode::RATE_LIMITED,
                ErrorClass::RateLimited,
                "as many programs run as this host runs at once",
            )
            .retry_after(BUSY_RETRY)),
            Ending::Silent => Err(CallError::new(
                ErrorCode::RATE_LIMITED,
                ErrorClass::DependencyUnavailable,
                "the broker that runs programs does not answer; the program was not started",
            )
            .with_cause(json!({ "rule": BROKER_UNAVAILABLE }))
            .retry_after(BUSY_RETRY)),
            Ending::Cancelled => Err(CallError::internal(
                "the broker ended a program that this host did not cancel",
            )),
            Ending::Refused(problem) => Err(refused(&problem, self.is_local)),
        }
    }
}

/// What to do about a limit of the program.
fn less(code: ErrorCode) -> String {
    let operator = code.ask_the_operator("raise the program's limit");
    format!("ask for less, or {operator}")
}

/// The operator's own files and directories are not for callers to see. What the runner reports names none, and is
/// for the local caller.
fn refused(problem: &ExecProblem, is_local: bool) -> CallError {
    let code = problem.code();
    tracing::error!(%problem, code, "a program was not run");
    let error = match problem {
        ExecProblem::Secret { .. } => CallError::new(
            ErrorCode::AUTH_REQUIRED,
            ErrorClass::CredentialMissing,
            "a secret of the program has no value",
        )
        .with_cause(json!({ "rule": code }))
        .of_attachment(true),
        ExecProblem::Unstarted(reason) if is_local => {
            let cause = json!({ "rule": code, "reason": reason });
            not_run("the program can't be started", code).with_cause(cause)
        }
        _ => not_run("the program can't be run as the policy says", code),
    };
    let code = error.code.clone();
    error.with_hint(code.ask_the_operator("find out why"))
}

fn not_run(message: &str, rule: &str) -> CallError {
    CallError::new(ErrorCode::UNAUTHORISED, ErrorClass::SetupRequired, message)
        .with_cause(json!({ "rule": rule }))
}

fn output_of(stdout: Vec<u8>, contract: &Tool) -> Result<DriverOutput, CallError> {
    let text = String::from_utf8(stdout)
        .map_err(|_| upstream("the program's output is not text".to_owned()))?;
    let structured = match text.trim_ascii().is_empty() {
        true => output::of_nothing(contract).to_string(),
        false => text,
    };
    Ok(DriverOutput {
        structured,
        content: Vec::new(),
        lifted_bytes: 0,
    })
}

fn upstream(message: String) -> CallError {
    CallError::new(
        ErrorCode::UPSTREAM_ERROR,
        ErrorClass::ExecutionFailed,
        message,
    )
}

/// The end of what a program wrote, as text.
fn end_of(stderr: &[u8], most: u64) -> String {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let from = stderr.len().saturating_sub(most);
    String::from_utf8_lossy(stderr.get(from..).unwrap_or_default()).into_owned()
}
