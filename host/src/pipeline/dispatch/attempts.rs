//! Attempts of one call: the first, and those after it where contract and error allow
//! a retry.

use std::pin::pin;
use std::time::{Duration, Instant};

use toolward_contract::tool::Retry;

use super::clock::Clock;
use super::failure::Failure;
use super::memory::AttemptMemory;
use super::outcome::Attempted;
use super::output::{self, Mapped};
use crate::admission::Path;
use crate::api::limits::CallLimits;
use crate::api::result::{CallError, Captured, Output};
use crate::catalogue::{Route, ToolEntry};
use crate::elicitation::Questions;
use crate::pipeline::call_record::CallRecord;
use crate::pipeline::resolve;
use crate::sandbox::deadline;
use crate::sandbox::tools::SlotCell;
use crate::validation_pool::ValidationPool;

/// The end of a call that did not fail.
pub(crate) enum Finished {
    /// An output that matches its contract.
    Done(Output),
    /// Questions to be answered first.
    Asks(Questions),
}

/// The result of one attempt.
pub(crate) struct Attempt {
    pub(crate) result: Result<Attempted, CallError>,
    /// Whether nothing but a table in DRIVER.md says that the error is retryable. That makes the
    /// host repeat nothing that changes something.
    pub(crate) claimed: bool,
    /// Whether anything of it may have left the host, or the driver's code ran.
    pub(crate) dispatched: bool,
    /// Whether the host itself saw the driver fail: connection, TLS, a status from 500 on, a
    /// trap.
    pub(crate) failing: bool,
    /// Units of fuel that it consumed.
    pub(crate) fuel: u64,
    pub(crate) peak_memory: u64,
    /// What the driver logged and printed.
    pub(crate) captured: Captured,
}

/// Something that makes attempts: a component in a sandbox, or requests of the
/// host's own.
pub(crate) trait Attempts {
    /// Makes one attempt; `spent` is the fuel that those before it consumed.
    async fn attempt(&mut self, number: u32, clock: &Clock, spent: u64) -> Attempt;
}

/// What stays the same over all attempts of a call.
pub(crate) struct Plan<'a> {
    pub(crate) tool: &'a ToolEntry,
    pub(crate) route: &'a Route,
    /// The route's limits, within those of a caller.
    pub(crate) limits: &'a CallLimits,
    pub(crate) clock: Clock,
    pub(crate) gates: &'a Path,
    pub(crate) slot: &'a SlotCell,
    pub(crate) validation: &'a ValidationPool,
    pub(crate) principal: &'a str,
}

/// Makes attempts until one ends the call or the driver's part in it; they count on from those in `record`. The
/// deadline covers everything, retries and pauses included; waiting for the first slot
/// lies before it.
pub(crate) async fn run(
    plan: &Plan<'_>,
    attempts: &mut impl Attempts,
    record: &mut CallRecord<'_>,
) -> Result<Finished, Failure> {
    let clock = &plan.clock;
    let contract = &plan.tool.contract;
    let health = &plan.route.driver.health;
    let earlier = record.earlier_attempts();
    let mut dispatched = false;
    loop {
        record.starts();
        let number = record.metadata.attempts.saturating_sub(earlier);
        let spent = record.metadata.fuel;
        let attempt = attempts.attempt(number, clock, spent).await;
        record.attempted(attempt.result.as_ref().err());
        let metadata = &mut record.metadata;
        metadata.fuel = spent.saturating_add(attempt.fuel);
        metadata.peak_memory = metadata.peak_memory.max(attempt.peak_memory);
        record.captured = attempt.captured;
        dispatched |= attempt.dispatched;
        if attempt.failing {
            health.failed(plan.principal);
        }
        let repeats = contract.idempotent && (contract.mutates.is_empty() || !attempt.claimed);
        let error = match attempt.result {
            Ok(Attempted::Asks(questions)) => return Ok(Finished::Asks(questions)),
            Ok(Attempted::Done(output)) => {
                health.worked(plan.principal);
                record.returned(output.structured.len());
                let memory = AttemptMemory::of(plan.slot, plan.limits.memory_bytes);
                let accepted = output::accept(
                    output,
                    (plan.limits, memory),
                    contract,
                    &plan.route.implements.drop_outputs,
                    (plan.validation, plan.principal),
                    clock.deadline,
                    || clock.late(),
                )
                .await;
                let Mapped(output, memory) = accepted.map_err(|error| {
                    record.attempt_failed(&error);
                    Failure::of_driver(error, dispatched)
                })?;
                let peak = &mut record.metadata.peak_memory;
                *peak = (*peak).max(memory);
                return Ok(Finished::Done(output));
            }
            Err(error) => error,
        };

        let retry = plan.route.retry.as_ref().filter(|_| repeats);
        let Some(pause) = retry.and_then(|retry| pause(retry, number, &error)) else {
            return Err(Failure::of_driver(error, dispatched));
        };
        if Instant::now()
            .checked_add(pause)
            .is_none_or(|then| then >= clock.deadline)
        {
            return Err(Failure::of_driver(error, dispatched));
        }
        // Releases the slot while this call waits.
        drop(plan.slot.take());
        let next = pin!(async {
            tokio::time::sleep(pause).await;
            plan.gates.enter(plan.limits.memory_bytes).await
        });
        match deadline::before(clock.deadline, next).await {
            Ok(slot) => plan.slot.put(slot?),
            Err(deadline::Elapsed) => return Err(clock.late().into()),
        }
        resolve::still_served(plan.tool, plan.route)?;
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
