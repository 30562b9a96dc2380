//! Maps the outcome of an attempt to its end: an output, questions or an error.

use std::time::Duration;

use serde_json::{Value, json};
use toolward_policy::LimitName;
use toolward_sandbox::exceeded::Exceeded;
use toolward_sandbox::invocation::{CallEnd, DriverError};
use toolward_sandbox::run::{AttemptOutcome, Usage};

use crate::api::result::{CallError, ErrorClass, ErrorCode, Hit, LogLevel, LogRecord};
use crate::call_context::CallContext;
use crate::executor::limits::over;

/// Bytes of a trapped driver's standard error that its error quotes.
const QUOTED_STDERR_BYTES: usize = 2048;

/// How the guest libraries begin the line about a panic: `PREFIX` in `guest-sdk/src/panics.rs`.
const PANIC_PREFIX: &str = "panic: ";

/// The driver's output or questions, or the error for what happened.
pub(super) fn end_of(outcome: AttemptOutcome, usage: &Usage, context: &CallContext) -> CallEnd {
    let error = match outcome {
        AttemptOutcome::Returned(CallEnd::Done(output)) => return CallEnd::Done(output),
        AttemptOutcome::Returned(CallEnd::Asks(asked)) => return CallEnd::Asks(asked),
        AttemptOutcome::Returned(CallEnd::Failed(error)) => {
            driver_error(error, &context.limits.json)
        }
        AttemptOutcome::Deadline => context.clock.late(),
        AttemptOutcome::Fuel { allowed } => CallError::new(
            ErrorCode::FUEL_EXHAUSTED,
            ErrorClass::ExecutionFailed,
            format!("the driver used up its {allowed} units of fuel"),
        )
        .with_limit(Hit {
            limit: LimitName::Fuel,
            used: allowed,
            allowed,
        })
        .with_hint("ask for less, or raise `limits.fuel` in DRIVER.md and the host's limit `fuel`"),
        AttemptOutcome::Exceeded(exceeded) => over(exceeded),
        AttemptOutcome::Violation(violation) => CallError::violated(&violation),
        AttemptOutcome::Trapped(how) => {
            let mut cause = json!({ "trap": how });
            let stderr = tail(&usage.captured.stderr);
            if let (false, Value::Object(fields)) = (stderr.is_empty(), &mut cause) {
                fields.insert("stderr".to_owned(), Value::String(stderr.to_owned()));
            }
            let (code, class) = (ErrorCode::UPSTREAM_ERROR, ErrorClass::ExecutionFailed);
            // A panic's message is the driver's text, and marked as such.
            match panic_message(stderr, &usage.captured.logs) {
                Some(panic) => {
                    let message = format!("the driver panicked: {panic}");
                    CallError::of_driver(code, class, message, None)
                }
                None => CallError::new(code, class, format!("the driver trapped: {how}")),
            }
            .with_cause(cause)
            .with_hint("report this to the driver's publisher")
        }
        AttemptOutcome::Panicked(text) => {
            tracing::error!(%text, "the engine panicked in a call");
            CallError::new(
                ErrorCode::INTERNAL,
                ErrorClass::ExecutionFailed,
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
    let (code, class) = match ErrorCode::from_driver(&error.code) {
        Some(code) => {
            let class = ErrorClass::of_driver_code(code.as_str());
            (code, class)
        }
        None => (ErrorCode::UPSTREAM_ERROR, ErrorClass::ExecutionFailed),
    };
    let cause = error.cause.map(|mut text| {
        text.truncate(text.floor_char_boundary(MAX_CAUSE_BYTES));
        // A cause that is not valid JSON is passed on as text.
        toolward_contract::json::parse(text.as_bytes(), json).unwrap_or(Value::String(text))
    });
    let mut call = CallError::of_driver(code, class, error.message, cause);
    call.retryable = error.retryable;
    call.retry_after = error.retry_after_ms.map(Duration::from_millis);
    call
}

/// The error of a guest that was refused memory and then failed in another way: names
/// both, since a language may turn the refusal into any error.
fn after(refused: Exceeded, mut error: CallError) -> CallError {
    let over = over(refused);
    let name = |hit: Option<Hit>| hit.map(|hit| hit.limit);
    if error.limit.is_some() && name(error.limit) == name(over.limit) {
        return error;
    }
    // The limit that ended it comes first.
    error.limit = error.limit.or(over.limit);
    let raise = over.hint.unwrap_or_default();
    error.hint = Some(match error.hint {
        None => raise,
        Some(own) => format!("{own}; before, {}: {raise}", over.message),
    });
    error
}

/// The message that the guest SDK printed before the trap, or logged where it has no standard library.
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
