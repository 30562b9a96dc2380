//! Dispatch: runs an approved call on its driver under one deadline, and
//! retries where contract and error allow it.

mod ending;
mod output;

pub(crate) use ending::timed_out;

use std::time::{Duration, Instant};

use toolward_contract::tool::Retry;

use crate::admission::Admission;
use crate::approval::Approved;
use crate::checks::Checks;
use crate::result::{CallError, Captured, Metadata, Output};
use crate::sandbox::deadline;
use crate::sandbox::run::{self, Prepared};
use crate::sandbox::v0_1::types::Invocation;
use crate::validate::Call;

/// Runs the call. The deadline starts here and covers everything, retries and
/// pauses included; waiting for the first slot lies before it.
pub(crate) async fn run(
    approved: Approved<Call>,
    prepared: &Prepared,
    admission: &Admission,
    checks: &Checks,
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
        // What earlier attempts used is gone.
        let fuel = limits.fuel.saturating_sub(metadata.fuel);
        let (ending, usage) = run::attempt(
            prepared,
            limits,
            fuel,
            &invocation,
            deadline,
            call.observer.clone(),
        )
        .await;
        metadata.attempts = invocation.attempt;
        metadata.fuel = metadata.fuel.saturating_add(usage.fuel);
        metadata.peak_memory = metadata.peak_memory.max(usage.peak_memory);
        let result = ending::output_of(ending, &usage, limits, late);
        *captured = Captured {
            logs: usage.logs,
            stdout: usage.stdout,
            stderr: usage.stderr,
        };
        let error = match result {
            Ok(output) => {
                return output::accept(output, limits, contract, checks, deadline, late).await;
            }
            Err(error) => error,
        };

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

/// How long to wait before the next attempt; `None` where there is none.
fn pause(retry: &Retry, attempt: u32, error: &CallError) -> Option<Duration> {
    if !error.retryable || attempt >= retry.max_attempts {
        return None;
    }
    let own = retry.wait_before(attempt.saturating_add(1));
    Some(own.max(error.retry_after.unwrap_or_default()))
}
