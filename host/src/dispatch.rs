//! Dispatch: runs an approved call on its driver under one deadline, retries
//! where contract and error allow it, and turns each ending into a result.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolward_contract::tool::Retry;

use crate::admission::Admission;
use crate::approval::Approved;
use crate::result::{
    CallError, Captured, ErrorClass, ErrorCode, Hit, Mapped, Metadata, Output, map_driver_error,
    map_output, too_large,
};
use crate::sandbox::deadline;
use crate::sandbox::run::{self, Ending, Prepared, Usage};
use crate::sandbox::v0_1::handler::Outcome;
use crate::sandbox::v0_1::types::Invocation;
use crate::validate::Call;

/// Bytes of a trapped driver's standard error that its error quotes.
const QUOTED: usize = 2048;

/// Runs the call. The deadline starts here and covers everything, retries and
/// pauses included; waiting for the first slot lies before it.
pub(crate) async fn run(
    approved: Approved<Call>,
    prepared: &Prepared,
    admission: &Admission,
    metadata: &mut Metadata,
    captured: &mut Captured,
) -> Result<Output, CallError> {
    let (call, _grant) = approved.into_parts();
    let contract = &call.tool.contract;
    let limits = &call.route.limits;
    let mut invocation = Invocation {
        id: metadata.invocation.clone(),
        tool: contract.id.to_string(),
        tool_version: contract.version.to_string(),
        input: call.input,
        context: call.context,
        attempt: 0,
        remaining_ms: 0,
        idempotency_key: metadata.invocation.clone(),
        resume: None,
    };

    let mut slot = admission.enter().await?;
    let dispatched = Instant::now();
    let deadline = dispatched.checked_add(call.timeout).unwrap_or(dispatched);
    let late = || timed_out(call.timeout, dispatched.elapsed());
    loop {
        invocation.attempt = invocation.attempt.saturating_add(1);
        invocation.remaining_ms = u64::try_from(
            deadline
                .saturating_duration_since(Instant::now())
                .as_millis(),
        )
        .unwrap_or(u64::MAX);
        let (ending, usage) = run::attempt(
            prepared,
            limits,
            &invocation,
            deadline,
            call.observer.clone(),
        )
        .await;
        metadata.attempts = invocation.attempt;
        metadata.fuel = metadata.fuel.saturating_add(usage.fuel);
        metadata.peak_memory = metadata.peak_memory.max(usage.peak_memory);
        let error = match result_of(ending, &usage, &call.route.limits, late) {
            Ok(output) => {
                keep(captured, usage);
                return checked(output, &call.tool.contract.outputs);
            }
            Err(error) => error,
        };
        keep(captured, usage);

        let retry = contract
            .idempotent
            .then_some(call.route.retry.as_ref())
            .flatten();
        let Some(pause) = retry.and_then(|retry| pause(retry, invocation.attempt, &error)) else {
            return Err(error);
        };
        if Instant::now()
            .checked_add(pause)
            .is_none_or(|then| then >= deadline)
        {
            return Err(error);
        }
        // Others may run while this call waits.
        drop(slot);
        let next = async {
            tokio::time::sleep(pause).await;
            admission.enter().await
        };
        slot = match deadline::before(deadline, next).await {
            Ok(slot) => slot?,
            Err(deadline::Elapsed) => return Err(late()),
        };
    }
}

fn keep(captured: &mut Captured, usage: Usage) {
    *captured = Captured {
        logs: usage.logs,
        stdout: usage.stdout,
        stderr: usage.stderr,
    };
}

/// How long to wait before the next attempt; `None` where there is none.
fn pause(retry: &Retry, attempt: u32, error: &CallError) -> Option<Duration> {
    if !error.retryable || attempt >= retry.max_attempts {
        return None;
    }
    let own = retry.wait_before(attempt.saturating_add(1));
    Some(own.max(error.retry_after.unwrap_or_default()))
}

/// The output, valid against the contract.
fn checked(
    output: Mapped,
    schema: &toolward_contract::schema::Schema,
) -> Result<Output, CallError> {
    let Mapped(output) = output;
    match schema.validate(&output.structured) {
        Ok(()) => Ok(output),
        Err(violation) => Err(CallError::new(
            ErrorCode::UPSTREAM_ERROR,
            ErrorClass::ExecutionFailed,
            format!(
                "the driver's output misses the contract's schema at `{}`: {}",
                if violation.instance_path.is_empty() {
                    "/"
                } else {
                    &violation.instance_path
                },
                violation.message
            ),
        )
        .with_cause(json!({
            "path": violation.instance_path,
            "schema_path": violation.schema_path,
        }))
        .with_hint("report this to the driver's publisher")),
    }
}

/// Turns an ending into a value or the error that the table of DESIGN 9 names.
fn result_of(
    ending: Ending,
    usage: &Usage,
    limits: &crate::limits::CallLimits,
    late: impl Fn() -> CallError,
) -> Result<Mapped, CallError> {
    match ending {
        Ending::Returned(Ok(Outcome::Done(output))) => map_output(output, limits),
        Ending::Returned(Ok(Outcome::NeedsInput(_))) => Err(CallError::new(
            ErrorCode::INPUT_UNAVAILABLE,
            ErrorClass::SetupRequired,
            "the driver asks a question, which nothing here lets it do",
        )
        .with_hint("this version of the host passes no questions on")),
        Ending::Returned(Err(error)) => Err(map_driver_error(error, &limits.json)),
        Ending::Deadline => Err(late()),
        Ending::Fuel { allowed } => Err(CallError::new(
            ErrorCode::FUEL_EXHAUSTED,
            ErrorClass::ExecutionFailed,
            format!("the driver used up its {allowed} units of fuel"),
        )
        .with_limit(Hit {
            limit: "fuel",
            used: usage.fuel,
            allowed,
        })
        .with_hint(
            "ask for less, or raise `limits.fuel` in DRIVER.md and the host's limit `fuel`",
        )),
        Ending::Exceeded(exceeded) => Err(over(exceeded)),
        Ending::Trapped(how) => {
            let mut cause = json!({ "trap": how });
            let stderr = tail(&usage.stderr);
            if let (false, Value::Object(fields)) = (stderr.is_empty(), &mut cause) {
                fields.insert("stderr".to_owned(), Value::String(stderr.to_owned()));
            }
            let message = match panic_line(stderr) {
                Some(panic) => format!("the driver panicked: {panic}"),
                None => format!("the driver trapped: {how}"),
            };
            Err(CallError::new(
                ErrorCode::UPSTREAM_ERROR,
                ErrorClass::ExecutionFailed,
                message,
            )
            .with_cause(cause)
            .with_hint("report this to the driver's publisher"))
        }
        Ending::Panicked(text) => {
            tracing::error!(%text, "the engine panicked in a call");
            Err(CallError::new(
                ErrorCode::INTERNAL,
                ErrorClass::ExecutionFailed,
                "the engine failed while it ran this call; other calls are not affected",
            )
            .with_hint("report this to the authors of Toolward, with the driver's bundle"))
        }
    }
}

fn over(exceeded: crate::sandbox::Exceeded) -> CallError {
    let hit = Hit::from(exceeded);
    let (code, raise) = match exceeded.limit {
        "output" => return too_large(hit.used, hit.allowed),
        "memory" => (
            ErrorCode::MEMORY_EXCEEDED,
            "ask for less, or raise `limits.memory_mib` in DRIVER.md and the host's limit \
             `memory_bytes`"
                .to_owned(),
        ),
        "stack" => (
            ErrorCode::LIMIT_EXCEEDED,
            "the driver recurses too deeply; report this to its publisher".to_owned(),
        ),
        "stdout" | "stderr" => (
            ErrorCode::LIMIT_EXCEEDED,
            "raise the host's limit `stdio_bytes`".to_owned(),
        ),
        other => (
            ErrorCode::LIMIT_EXCEEDED,
            format!("raise the host's limit `{other}`"),
        ),
    };
    CallError::new(
        code,
        ErrorClass::ExecutionFailed,
        format!(
            "the driver asked for {} of {} ({} allowed)",
            hit.used, hit.limit, hit.allowed
        ),
    )
    .with_limit(hit)
    .with_hint(raise)
}

fn timed_out(allowed: Duration, took: Duration) -> CallError {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    CallError::new(
        ErrorCode::TIMEOUT,
        ErrorClass::Timeout,
        format!("the call did not end within {} ms", millis(allowed)),
    )
    .with_limit(Hit {
        limit: "timeout_ms",
        used: millis(took),
        allowed: millis(allowed),
    })
    .with_hint("ask for less, or raise the contract's `timeout_ms` and the host's limit `timeout`")
}

/// What the guest SDK's panic hook printed before the trap, if it did.
fn panic_line(stderr: &str) -> Option<&str> {
    stderr
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("panic: "))
}

/// The last part of a text, at most [`QUOTED`] bytes.
fn tail(text: &str) -> &str {
    let text = text.trim_end();
    let start = text.ceil_char_boundary(text.len().saturating_sub(QUOTED));
    text.get(start..).unwrap_or_default()
}
