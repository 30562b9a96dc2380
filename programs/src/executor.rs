//! The executor of programs outside the sandbox. The broker runs a program according to the
//! operator's `[[exec]]` table. A program is never retried, since nothing declares its effects.

use std::time::{Duration, Instant};

use serde_json::json;
use toolward_host::{
    Attempt, AttemptReport, CallContext, CallError, Captured, DriverOutput, ErrorClass, ErrorCode,
    Executor, Job, LOCAL,
};
use toolward_policy::{ExecRule, Grant};

use crate::frame::{Ending, Run, STDERR_BYTES};
use crate::{ExecBroker, ExecProblem};

/// The retry-after if the broker already runs as many programs as it can.
const BUSY_RETRY: Duration = Duration::from_secs(1);

/// The rule in the error if the broker has ended or hangs.
const BROKER_UNAVAILABLE: &str = "exec-broker-unavailable";

/// The most bytes of a program's standard error that an error quotes.
const QUOTED_STDERR_BYTES: u64 = 2048;

/// The executor of programs.
pub(crate) struct ProgramExecutor {
    pub(crate) broker: ExecBroker,
}

impl ProgramExecutor {
    /// The operator's table of a grant, and the table's number at the broker.
    fn line<'g>(&self, grant: &'g Grant) -> Result<(usize, &'g ExecRule), CallError> {
        let rule = grant
            .program()
            .ok_or_else(|| CallError::internal("this driver has no program"))?;
        // A broker accepts no tables after its start, so a newer table has no number.
        let line = self.broker.number(rule).ok_or_else(|| {
            let problem = ExecProblem::LineNew;
            not_run(&problem.to_string(), problem.code())
                .with_hint(ErrorCode::UNAUTHORISED.ask_the_operator("start the host again"))
        })?;
        Ok((line, rule))
    }

    async fn output(
        &self,
        job: &Job,
        context: &CallContext,
        captured: &mut Captured,
    ) -> Result<DriverOutput, CallError> {
        let (line, rule) = self.line(context.grant())?;
        // The broker reads the secrets' values from the operator's sources. The host reads the
        // values, too, to redact them from everything that it shows.
        for slug in rule.env.keys() {
            let value = context.imports().reveal(slug.clone()).await;
            value.map_err(|_| CallError::no_credential(slug).of_attachment(true))?;
        }
        let input = job.invocation.input.clone();
        // The input is in memory twice: as text, and in the frame for the broker.
        context.cover((input.len() as u64).saturating_mul(2))?;
        let started = Instant::now();
        let ran = self.broker.inner.link.run(line, Some(input)).await;
        let Run {
            ending,
            stdout,
            stderr,
        } = ran.map_err(|problem| {
            tracing::error!(%problem, "no program can be run");
            not_run(
                "the broker that runs programs has ended",
                BROKER_UNAVAILABLE,
            )
            .with_hint(ErrorCode::UNAUTHORISED.ask_the_operator("start the host again"))
        })?;
        // Whether the start of standard error may be missing.
        let is_cut = stderr.len() >= STDERR_BYTES;
        context.cover(stdout.len().saturating_add(stderr.len()) as u64)?;
        // Redacted before the text is cut again: if the cut splits a secret's value, no later
        // search finds the rest of the value.
        let stderr = context.imports().redact_end(stderr, is_cut);
        captured.stderr = end_of(&stderr, context.stdio_bytes());
        match ending {
            Ending::Exited(0) if stdout.trim_ascii().is_empty() => {
                Ok(DriverOutput::empty(context.contract()))
            }
            Ending::Exited(0) => String::from_utf8(stdout)
                .map(DriverOutput::new)
                .map_err(|_| upstream("the program's output is not text".to_owned())),
            ending => {
                let is_local = context.principal() == LOCAL;
                Err(error(ending, rule, &stderr, started.elapsed(), is_local))
            }
        }
    }
}

impl Executor for ProgramExecutor {
    fn check(&self, grant: &Grant) -> Result<(), CallError> {
        self.line(grant).map(drop)
    }

    fn attempt<'a>(&'a self, job: &'a mut Job, context: &'a CallContext) -> Attempt<'a> {
        Box::pin(async {
            let mut captured = Captured::default();
            let result = self.output(job, context, &mut captured).await;
            let mut report = AttemptReport::new(result.into());
            report.captured = captured;
            report
        })
    }
}

/// The error of a run that failed. `is_local` states whether the caller is the person who runs the
/// host.
fn error(
    ending: Ending,
    rule: &ExecRule,
    stderr: &[u8],
    took: Duration,
    is_local: bool,
) -> CallError {
    let limits = &rule.limits;
    let failed = |message: String, mut cause: serde_json::Value| {
        let quoted = end_of(stderr, QUOTED_STDERR_BYTES);
        let quoted = quoted.trim();
        if let (false, Some(fields)) = (quoted.is_empty(), cause.as_object_mut()) {
            fields.insert("stderr".to_owned(), quoted.into());
        }
        upstream(message).with_cause(cause)
    };
    match ending {
        Ending::Exited(code) => failed(
            format!("the program ended with exit code {code}"),
            json!({ "exit": code }),
        ),
        Ending::Killed(signal) => failed(
            format!("the program was ended by signal {signal}"),
            json!({ "signal": signal }),
        )
        .with_hint(
            "signal 9 means that it used more processor time than it may, or that memory is short",
        ),
        Ending::Late => {
            CallError::timed_out(limits.timeout(), took).with_hint(less(ErrorCode::TIMEOUT))
        }
        Ending::TooMuch => {
            CallError::too_large(limits.output_bytes.saturating_add(1), limits.output_bytes)
                .with_hint(less(ErrorCode::RESULT_TOO_LARGE))
        }
        Ending::Busy => CallError::new(
            ErrorCode::RATE_LIMITED,
            ErrorClass::RateLimited,
            "as many programs run as this host runs at once",
        )
        .with_retry_after(BUSY_RETRY),
        Ending::Silent => CallError::new(
            ErrorCode::RATE_LIMITED,
            ErrorClass::DependencyUnavailable,
            "the broker that runs programs does not answer; the program was not started",
        )
        .with_cause(json!({ "rule": BROKER_UNAVAILABLE }))
        .with_retry_after(BUSY_RETRY),
        Ending::Cancelled => {
            CallError::internal("the broker ended a program that this host did not cancel")
        }
        Ending::Refused(problem) => refused(&problem, is_local),
    }
}

/// The hint about a limit of the program.
fn less(code: ErrorCode) -> String {
    let operator = code.ask_the_operator("raise the program's limit");
    format!("ask for less, or {operator}")
}

/// The error of a refused program. Callers must not see the operator's files and directories. The
/// runner's messages name none of them, and only a local caller sees these messages.
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

fn upstream(message: String) -> CallError {
    CallError::new(
        ErrorCode::UPSTREAM_ERROR,
        ErrorClass::ExecutionFailed,
        message,
    )
}

/// The end of a program's standard error, as text.
fn end_of(stderr: &[u8], most: u64) -> String {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let from = stderr.len().saturating_sub(most);
    String::from_utf8_lossy(stderr.get(from..).unwrap_or_default()).into_owned()
}
