//! The executor of components: each attempt in a new sandbox.

mod preparer;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolward_policy::LimitName;
use toolward_sandbox::exceeded::Exceeded;
use toolward_sandbox::invocation::{CallEnd, DriverError};
use toolward_sandbox::limits::{AttemptLimits, MemoryBudget};
use toolward_sandbox::run::{self, AttemptOutcome, Usage};
use toolward_sandbox::turns::{Spender, Turns};

use self::preparer::refused;
pub(crate) use self::preparer::{LoadedComponent, Preparer};
use super::limits::over;
use super::{Attempt, AttemptReport, Executor, Features, Job};
use crate::api::result::{CallError, ErrorCode, LogLevel, LogRecord, Result};
use crate::call_context::CallContext;
use crate::call_scope::CallScope;
use crate::imports::BoxFuture;

/// The longest output, in bytes, for which the reply may come before the guest's memory is freed.
const SHORT_OUTPUT_BYTES: usize = 16 << 10;

/// The executor of one component.
pub(crate) struct ComponentExecutor {
    pub(super) component: Arc<LoadedComponent>,
    pub(super) publisher: Arc<str>,
    pub(super) preparer: Arc<Preparer>,
    pub(super) turns: Arc<Turns>,
}

impl Executor for ComponentExecutor {
    fn features(&self) -> Features {
        Features {
            uses_fuel: true,
            ends_in_time: true,
            ..Features::default()
        }
    }

    fn is_ready(&self) -> bool {
        self.component.preparation.done.get().is_some()
    }

    fn prepare<'a>(&'a self, call: Option<&'a CallScope>) -> BoxFuture<'a, Result<()>> {
        match self.component.preparation.done.get() {
            // Most calls take this branch. It avoids the future that prepares a driver, which is
            // far larger.
            Some(Ok(_)) => Box::pin(std::future::ready(Ok(()))),
            _ => Box::pin(self.preparer.prepare(&self.component, call)),
        }
    }

    fn attempt<'a>(&'a self, job: &'a mut Job, context: &'a CallContext) -> Attempt<'a> {
        Box::pin(self.run(job, context))
    }
}

impl ComponentExecutor {
    async fn run(&self, job: &mut Job, context: &CallContext) -> AttemptReport {
        let prepared = match self.component.preparation.done.get() {
            Some(Ok(prepared)) => prepared,
            Some(Err(error)) => {
                return AttemptReport::failed(refused(&self.component, error));
            }
            None => {
                let error = CallError::internal("a driver was called before it was prepared");
                return AttemptReport::failed(error);
            }
        };
        job.invocation.remaining_ms = context.clock.remaining_ms();
        let Some(call) = prepared.call(&context.implements.world, &job.invocation) else {
            let error = CallError::internal("the driver is bound to no such world");
            return AttemptReport::failed(error);
        };
        let limits = AttemptLimits {
            // Earlier attempts have used up a part of the budget.
            fuel: job.fuel.saturating_sub(job.spent_fuel),
            fuel_total: job.fuel,
            memory_bytes: context.limits.memory_bytes,
        };
        // A nested call takes no turns: it computes as a part of its caller, in the caller's turns.
        let spender = (!context.asker.nested).then_some(Spender {
            turns: &self.turns,
            principal: &context.scope.principal,
            publisher: &self.publisher,
        });
        let lease = context.slot.memory();
        let lease = lease.map(|lease| lease as Arc<dyn MemoryBudget>);
        let grant = context.sandboxed();
        let deadline = context.clock.deadline;
        let (ended, mut usage, instance) =
            run::attempt(&call, &grant, limits, (spender, lease), deadline).await;
        let failing = matches!(ended, AttemptOutcome::Trapped(_));
        // Errors quote the end of the driver's texts. Secrets are redacted before the texts are
        // cut, so that no part of a secret remains.
        if failing {
            context.imports.redact(&mut usage.captured.stderr);
            if let Some(last) = usage.captured.logs.last_mut() {
                context.imports.redact(&mut last.message);
            }
        }
        let end = end_of(ended, &usage, context);
        if context.answers_first
            && let CallEnd::Done(output) = &end
            && output.content.is_empty()
            && output.structured.len() <= SHORT_OUTPUT_BYTES
            && let Some(instance) = instance
        {
            context.leave(Box::new(instance));
        }
        AttemptReport {
            failing,
            fuel: usage.fuel,
            peak_memory: usage.peak_memory,
            captured: usage.captured,
            ..AttemptReport::new(end)
        }
    }
}

/// The most bytes of a trapped driver's standard error that its error quotes.
const QUOTED_STDERR_BYTES: usize = 2048;

/// The prefix of the guest libraries' line about a panic: `PREFIX` in `guest-sdk/src/panics.rs`.
const PANIC_PREFIX: &str = "panic: ";

/// The driver's output or questions, or the error for how the attempt ended.
fn end_of(outcome: AttemptOutcome, usage: &Usage, context: &CallContext) -> CallEnd {
    let error = match outcome {
        AttemptOutcome::Returned(CallEnd::Done(output)) => return CallEnd::Done(output),
        AttemptOutcome::Returned(CallEnd::Asks(asked)) => return CallEnd::Asks(asked),
        AttemptOutcome::Returned(CallEnd::Failed(error)) => {
            driver_error(error, &context.limits.json)
        }
        AttemptOutcome::Deadline => context.clock.late(),
        AttemptOutcome::Fuel { allowed } => CallError::of(
            ErrorCode::FUEL_EXHAUSTED,
            format!("the driver used up its {allowed} units of fuel"),
        )
        .with_limit(Exceeded::new(LimitName::Fuel, allowed, allowed))
        .with_hint("ask for less, or raise `limits.fuel` in DRIVER.md and the host's limit `fuel`"),
        AttemptOutcome::Exceeded(exceeded) => over(exceeded),
        AttemptOutcome::Violation(violation) => CallError::violated(&violation),
        AttemptOutcome::Trapped(how) => {
            let mut cause = json!({ "trap": how });
            let stderr = tail(&usage.captured.stderr);
            if let (false, Value::Object(fields)) = (stderr.is_empty(), &mut cause) {
                fields.insert("stderr".to_owned(), Value::String(stderr.to_owned()));
            }
            let code = ErrorCode::UPSTREAM_ERROR;
            // A panic's message is a text of the driver, and is marked so.
            match panic_message(stderr, &usage.captured.logs) {
                Some(panic) => {
                    CallError::of_driver(code, format!("the driver panicked: {panic}"), None)
                }
                None => CallError::of(code, format!("the driver trapped: {how}")),
            }
            .with_cause(cause)
            .with_hint("report this to the driver's publisher")
        }
        AttemptOutcome::Panicked(text) => {
            tracing::error!(%text, "the engine panicked in a call");
            CallError::of(
                ErrorCode::INTERNAL,
                "the engine failed while it ran this call; other calls are not affected",
            )
            .with_hint("report this to the authors of Toolward, with the driver's bundle")
        }
    };
    CallEnd::Failed(match usage.refused {
        Some(refused) => after(refused, error),
        None => error,
    })
}

/// The longest cause that is taken from a driver, in bytes of JSON.
const MAX_CAUSE_BYTES: usize = 64 << 10;

/// A driver's own error, marked as the driver's.
fn driver_error(error: DriverError, json: &toolward_contract::json::Limits) -> CallError {
    let code = ErrorCode::from_driver(&error.code).unwrap_or(ErrorCode::UPSTREAM_ERROR);
    let cause = error.cause.map(|mut text| {
        text.truncate(text.floor_char_boundary(MAX_CAUSE_BYTES));
        // A cause that is not valid JSON is passed on as text.
        toolward_contract::json::parse(text.as_bytes(), json).unwrap_or(Value::String(text))
    });
    let mut call = CallError::of_driver(code, error.message, cause);
    call.retryable = error.retryable;
    call.retry_after = error.retry_after_ms.map(Duration::from_millis);
    call
}

/// The error of a guest that was refused memory and then failed in another way. It names both
/// failures, since a language may turn the refusal into any error.
fn after(refused: Exceeded, mut error: CallError) -> CallError {
    let over = over(refused);
    let name = |hit: Option<Exceeded>| hit.map(|hit| hit.limit);
    if error.limit.is_some() && name(error.limit) == name(over.limit) {
        return error;
    }
    // The limit that ended the attempt comes first.
    error.limit = error.limit.or(over.limit);
    let raise = over.hint.unwrap_or_default();
    error.hint = Some(match error.hint {
        None => raise,
        Some(own) => format!("{own}; before, {}: {raise}", over.message),
    });
    error
}

/// The message that the guest SDK printed before the trap, or logged if the guest has no standard
/// library.
fn panic_message<'a>(stderr: &'a str, logs: &'a [LogRecord]) -> Option<&'a str> {
    let mut lines = stderr.lines().rev();
    let printed = lines.find_map(|line| line.strip_prefix(PANIC_PREFIX));
    let logged = || {
        let last = logs.last().filter(|last| last.level == LogLevel::Error)?;
        let line = last.message.lines().next()?;
        line.strip_prefix(PANIC_PREFIX).map(tail)
    };
    printed.or_else(logged)
}

/// The last part of a text, at most [`QUOTED_STDERR_BYTES`] bytes.
fn tail(text: &str) -> &str {
    let text = text.trim_end();
    let start = text.ceil_char_boundary(text.len().saturating_sub(QUOTED_STDERR_BYTES));
    text.get(start..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(level: LogLevel, message: &str) -> LogRecord {
        LogRecord {
            level,
            message: message.to_owned(),
            fields: Value::Null,
        }
    }

    #[test]
    fn the_message_of_a_panic_is_the_last_that_was_printed_or_logged() {
        let said = "panic: first\nother\npanic: last\nmore";
        assert_eq!(panic_message(said, &[]), Some("last"));
        let panic = logged(LogLevel::Error, "panic: logged");
        let other = logged(LogLevel::Error, "other");
        let quiet = logged(LogLevel::Info, "panic: told");
        let logs = [other.clone(), panic.clone()];
        assert_eq!(panic_message("", &logs), Some("logged"));
        assert_eq!(panic_message(said, &logs), Some("last"));
        assert_eq!(panic_message("", &[panic, other]), None);
        assert_eq!(panic_message("", &[quiet]), None);
        let long = "x".repeat(QUOTED_STDERR_BYTES * 2);
        let long = logged(LogLevel::Error, &format!("panic: {long}"));
        let told = panic_message("", std::slice::from_ref(&long)).map(str::len);
        assert_eq!(told, Some(QUOTED_STDERR_BYTES));
    }
}
