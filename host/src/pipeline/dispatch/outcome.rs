//! Maps the outcome of an attempt to an output, questions or an error code.

use std::time::Duration;

use serde_json::{Value, json};
use toolward_policy::LimitName;

use crate::api::limits::CallLimits;
use crate::api::result::{
    CallError, ErrorClass, ErrorCode, Hit, LogLevel, LogRecord, Origin, too_large,
};
use crate::api::violations::{EndsCall, Violation, ViolationKind, Violations};
use crate::elicitation::{Asker, Questions};
use crate::exceeded::Exceeded;
use crate::invocation::{DriverError, DriverOutput, InputRequest, Returned};
use crate::sandbox::run::{AttemptOutcome, Usage};

/// The end of an attempt that did not fail.
pub(crate) enum Attempted {
    /// The driver returned its output.
    Done(DriverOutput),
    /// The driver asks questions.
    Asks(Questions),
}

/// Bytes of a trapped driver's standard error that its error quotes.
const QUOTED_STDERR_BYTES: usize = 2048;

/// The retry-after of a call that ended for the memory of all.
const NO_MEMORY_RETRY_AFTER: Duration = Duration::from_secs(1);

/// How the guest libraries begin the line about a panic: `PREFIX` in `guest-sdk/src/panics.rs`.
const PANIC_PREFIX: &str = "panic: ";

/// The driver's output or questions, or the error for what happened.
pub(super) fn output_of(
    outcome: AttemptOutcome,
    usage: &Usage,
    limits: &CallLimits,
    asker: Asker,
    violations: &Violations,
    late: impl Fn() -> CallError,
) -> Result<Attempted, CallError> {
    let ended = match outcome {
        AttemptOutcome::Returned(Ok(Returned::Done(output))) => Ok(Attempted::Done(output)),
        AttemptOutcome::Returned(Ok(Returned::NeedsInput(asked))) => {
            questions(asked, asker, violations).map(Attempted::Asks)
        }
        AttemptOutcome::Returned(Err(error)) => Err(driver_error(error, &limits.json)),
        AttemptOutcome::Deadline => Err(late()),
        AttemptOutcome::Fuel { allowed } => Err(CallError::new(
            ErrorCode::FUEL_EXHAUSTED,
            ErrorClass::ExecutionFailed,
            format!("the driver used up its {allowed} units of fuel"),
        )
        .with_limit(Hit {
            limit: LimitName::Fuel,
            used: allowed,
            allowed,
        })
        .with_hint(
            "ask for less, or raise `limits.fuel` in DRIVER.md and the host's limit `fuel`",
        )),
        AttemptOutcome::Exceeded(exceeded) => Err(over(exceeded)),
        AttemptOutcome::Violation(violation) => Err(ended(&violation)),
        AttemptOutcome::Trapped(how) => {
            let mut cause = json!({ "trap": how });
            let stderr = tail(&usage.stderr);
            if let (false, Value::Object(fields)) = (stderr.is_empty(), &mut cause) {
                fields.insert("stderr".to_owned(), Value::String(stderr.to_owned()));
            }
            let error = |message| {
                CallError::new(
                    ErrorCode::UPSTREAM_ERROR,
                    ErrorClass::ExecutionFailed,
                    message,
                )
            };
            // A panic's message is the driver's text, and marked as such.
            Err(match panic_message(stderr, &usage.logs) {
                Some(panic) => CallError {
                    origin: Origin::Driver,
                    ..error(format!("the driver panicked: {panic}"))
                },
                None => error(format!("the driver trapped: {how}")),
            }
            .with_cause(cause)
            .with_hint("report this to the driver's publisher"))
        }
        AttemptOutcome::Panicked(text) => {
            tracing::error!(%text, "the engine panicked in a call");
            Err(CallError::new(
                ErrorCode::INTERNAL,
                ErrorClass::ExecutionFailed,
                "the engine failed while it ran this call; other calls are not affected",
            )
            .with_hint("report this to the authors of Toolward, with the driver's bundle"))
        }
    };
    match usage.refused {
        Some(refused) => ended.map_err(|error| after(refused, error)),
        None => ended,
    }
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
    CallError {
        retryable: error.retryable,
        retry_after: error.retry_after_ms.map(Duration::from_millis),
        ..CallError::of_driver(code, class, error.message, cause)
    }
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

/// Accepts questions if they were granted.
fn questions(
    asked: InputRequest,
    asker: Asker,
    violations: &Violations,
) -> Result<Questions, CallError> {
    let Some(kind) = asker.beyond(&asked) else {
        return asker.take(asked);
    };
    if let Err(EndsCall(violation)) = violations.record(ViolationKind::User, kind) {
        return Err(ended(&violation));
    }
    Err(CallError::new(
        ErrorCode::INPUT_UNAVAILABLE,
        ErrorClass::SetupRequired,
        format!("the driver asks a question that it was not granted (`user:{kind}`)"),
    )
    .with_hint("its contract has to declare it in `requires.user`, and the policy to grant it"))
}

/// Policy ended the call at its first violation.
pub(crate) fn ended(violation: &Violation) -> CallError {
    CallError::new(
        ErrorCode::SANDBOX_VIOLATION,
        ErrorClass::SandboxViolation,
        format!("the driver tried what it was not granted: {violation}"),
    )
    .with_hint("report this to the driver's publisher; the policy's `on_violation` ends such calls")
}

pub(super) fn over(exceeded: Exceeded) -> CallError {
    let hit = Hit::from(exceeded);
    let limit = exceeded.limit;
    let (code, raise) = match limit {
        LimitName::Output => return too_large(hit.used, hit.allowed),
        LimitName::MemoryTotal => return no_memory(hit),
        LimitName::Memory if exceeded.by_host => return held_too_much(hit),
        LimitName::Memory => (ErrorCode::MEMORY_EXCEEDED, RAISE_MEMORY.to_owned()),
        _ if limit.own().is_none() => (
            ErrorCode::LIMIT_EXCEEDED,
            format!("raise the host's limit `{limit}`"),
        ),
        _ => {
            let does = match limit {
                LimitName::Stack => "recurses too deeply",
                LimitName::HostCall => "hands the host too much at once",
                LimitName::SecretStores | LimitName::SecretStoreBytes => {
                    "stores too many secrets in one call"
                }
                _ => "does too much with its buckets in one call",
            };
            (
                ErrorCode::LIMIT_EXCEEDED,
                format!("the driver {does}; report this to its publisher"),
            )
        }
    };
    CallError::new(
        code,
        ErrorClass::ExecutionFailed,
        format!(
            "the driver asked for {} {}, {} are allowed (limit `{}`)",
            hit.used,
            hit.limit.unit(),
            hit.allowed,
            hit.limit
        ),
    )
    .with_limit(hit)
    .with_hint(raise)
}

/// What to do about too little memory.
const RAISE_MEMORY: &str = "ask for less, or raise `limits.memory_mib` in DRIVER.md and the \
                            host's limit `memory_bytes`";

/// All calls together need more memory than there is, and this one ends for the others.
fn no_memory(hit: Hit) -> CallError {
    CallError::new(
        ErrorCode::MEMORY_EXCEEDED,
        ErrorClass::ExecutionFailed,
        format!(
            "all calls together need {} bytes of memory, {} are allowed (limit `memory_total`); this call \
             grew last of those that hold most",
            hit.used, hit.allowed
        ),
    )
    .with_limit(hit)
    .with_cause(json!("memory_total"))
    .with_hint("try again later, make fewer calls at once, or raise the host's limit `memory_total`")
    .retry_after(NO_MEMORY_RETRY_AFTER)
}

/// The guest's memory and what the host holds for it are one limit.
fn held_too_much(hit: Hit) -> CallError {
    CallError::new(
        ErrorCode::MEMORY_EXCEEDED,
        ErrorClass::ExecutionFailed,
        format!(
            "the host would hold too much for the driver (handles, header fields, bodies, \
             records): {} bytes with the driver's own memory, {} are allowed (limit `memory_bytes`)",
            hit.used, hit.allowed
        ),
    )
    .with_limit(hit)
    .with_hint(RAISE_MEMORY)
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
