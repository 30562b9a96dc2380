//! Attempts of one driver: the first, and those after it if contract and error allow a retry.

use std::pin::pin;
use std::time::{Duration, Instant};

use toolward_contract::tool::Retry;

use super::failure::Failure;
use super::output::{self, Mapped};
use crate::admission::Path;
use crate::api::result::{CallError, Output};
use crate::catalogue::{Route, ToolEntry};
use crate::elicitation::Questions;
use crate::executor::{AttemptMemory, AttemptReport, CallEnd, Executor, Job};
use crate::pipeline::call_record::CallRecord;
use crate::pipeline::resolve;
use crate::sandbox::context::CallContext;
use crate::sandbox::deadline;
use crate::validation_pool::ValidationPool;

/// The end of a call that did not fail.
pub(crate) enum Finished {
    /// An output that matches its contract, and what may be dropped after the reply.
    Done(Output, Option<Box<dyn Send>>),
    /// Questions to be answered first.
    Asks(Questions),
}

/// What stays the same over all attempts of a driver.
pub(crate) struct Plan<'a> {
    pub(crate) tool: &'a ToolEntry,
    pub(crate) route: &'a Route,
    pub(crate) gates: &'a Path,
    pub(crate) validation: &'a ValidationPool,
}

/// Makes attempts until one ends the call or the driver's part in it; they count on from those in `record`. The
/// deadline covers everything, retries and pauses included; waiting for the first slot comes before it.
pub(crate) async fn run(
    executor: &dyn Executor,
    job: &mut Job,
    context: &CallContext,
    plan: &Plan<'_>,
    record: &mut CallRecord<'_>,
) -> Result<Finished, Failure> {
    let clock = job.clock;
    let (contract, limits) = (&plan.tool.contract, &context.limits);
    let (health, principal) = (&plan.route.driver.health, &*context.scope.principal);
    let earlier = record.earlier_attempts();
    let mut dispatched = false;
    loop {
        record.starts();
        job.invocation.attempt = record.metadata.attempts.saturating_sub(earlier);
        job.spent_fuel = record.metadata.fuel;
        let report = match executor.features().ends_in_time {
            true => executor.attempt(job, context).await,
            // No part of the future of a component's call.
            false => Box::pin(in_time(executor, job, context)).await,
        };
        record.attempted(match &report.end {
            CallEnd::Failed(error) => Some(error),
            CallEnd::Done(_) | CallEnd::Asks(_) => None,
        });
        let metadata = &mut record.metadata;
        metadata.fuel = job.spent_fuel.saturating_add(report.fuel);
        metadata.peak_memory = metadata.peak_memory.max(report.peak_memory);
        record.captured = report.captured;
        dispatched |= report.dispatched;
        if report.failing {
            health.failed(principal);
        }
        let error = match report.end {
            CallEnd::Asks(questions) => return Ok(Finished::Asks(questions)),
            CallEnd::Done(output) => {
                health.worked(principal);
                record.returned(output.structured.len());
                let memory = AttemptMemory::of(&job.slot, limits.memory_bytes);
                let accepted = output::accept(
                    output,
                    (limits, memory),
                    contract,
                    &plan.route.implements.drop_outputs,
                    (plan.validation, principal),
                    clock.deadline,
                    || clock.late(),
                )
                .await;
                let Mapped(output, memory) = accepted.map_err(|error| {
                    record.attempt_failed(&error);
                    Failure::of_driver(error, dispatched)
                })?;
                let metadata = &mut record.metadata;
                metadata.peak_memory = metadata.peak_memory.max(memory);
                metadata.origin = report.origin.or(metadata.origin);
                return Ok(Finished::Done(output, report.remains));
            }
            CallEnd::Failed(error) => error,
        };

        let repeats = contract.idempotent && (contract.mutates.is_empty() || !report.claimed);
        let retry = plan.route.retry.as_ref().filter(|_| repeats);
        let pause = retry.and_then(|retry| pause(retry, job.invocation.attempt, &error));
        let Some(pause) = pause else {
            return Err(Failure::of_driver(error, dispatched));
        };
        let ends = Instant::now().checked_add(pause);
        if ends.is_none_or(|ends| ends >= clock.deadline) {
            return Err(Failure::of_driver(error, dispatched));
        }
        // Releases the slot while this call waits.
        drop(job.slot.take());
        let next = pin!(async {
            tokio::time::sleep(pause).await;
            let ends = Some(clock.deadline);
            plan.gates.enter(limits.memory_bytes, ends).await
        });
        match deadline::before(clock.deadline, next).await {
            Ok(slot) => job.slot.put(slot?),
            Err(deadline::Elapsed) => return Err(clock.late().into()),
        }
        resolve::still_served(plan.tool, plan.route)?;
    }
}

/// One attempt, until the deadline or until other calls need its memory.
async fn in_time(executor: &dyn Executor, job: &mut Job, context: &CallContext) -> AttemptReport {
    let clock = job.clock;
    let memory = AttemptMemory::of(&job.slot, context.limits.memory_bytes);
    let attempt = pin!(memory.until_ended(executor.attempt(job, context)));
    let error = match deadline::before(clock.deadline, attempt).await {
        Ok(Ok(report)) => return report,
        Ok(Err(error)) => error,
        Err(deadline::Elapsed) => clock.late(),
    };
    AttemptReport::new(CallEnd::Failed(error))
}

/// How long to wait before the next attempt; `None` where there is none.
fn pause(retry: &Retry, attempt: u32, error: &CallError) -> Option<Duration> {
    if !error.retryable || attempt >= retry.max_attempts {
        return None;
    }
    let own = retry.wait_before(attempt.saturating_add(1));
    Some(own.max(error.retry_after.unwrap_or_default()))
}
