//! Dispatch: runs an approved call on its driver under one deadline, and
//! retries where contract and error allow it.

mod canceled;
mod component;
mod ending;
mod http;
mod output;
mod start;

pub(crate) use canceled::Running;
use component::Component;
pub(crate) use ending::timed_out;
use http::Requests;
pub(crate) use start::{Ended, Means, start};

use std::pin::pin;
use std::time::{Duration, Instant};

use toolward_contract::tool::Retry;

use crate::admission::Path;
use crate::asking::Questions;
use crate::checks::Checks;
use crate::limits::CallLimits;
use crate::registry::{Route, ToolEntry};
use crate::resolve;
use crate::result::{CallError, Mapped, Metadata, Output};
use crate::sandbox::deadline;
use crate::sandbox::tools::SlotCell;
use crate::sandbox::v0_1::types::ToolOutput;

/// The clock of one call: starts when it gets its first slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    started: Instant,
    /// What was gone when it started: the call goes on after questions.
    spent: Duration,
    allowed: Duration,
    pub(crate) deadline: Instant,
}

impl Clock {
    /// A clock that ends after `allowed`, and at `latest` where there is one.
    pub(crate) fn start(allowed: Duration, latest: Option<Instant>) -> Self {
        let started = Instant::now();
        let own = started.checked_add(allowed).unwrap_or(started);
        let deadline = latest.map_or(own, |latest| own.min(latest));
        Self {
            started,
            spent: Duration::ZERO,
            allowed: deadline.saturating_duration_since(started),
            deadline,
        }
    }

    /// The same clock, of whose time so much is gone.
    pub(crate) fn after(self, spent: Duration) -> Self {
        let left = self.allowed.saturating_sub(spent);
        Self {
            spent,
            deadline: self.started.checked_add(left).unwrap_or(self.started),
            ..self
        }
    }

    /// What is gone of its time.
    pub(crate) fn spent(&self) -> Duration {
        self.spent.saturating_add(self.started.elapsed())
    }

    pub(crate) fn late(&self) -> CallError {
        timed_out(self.allowed, self.spent())
    }

    pub(crate) fn remaining_ms(&self) -> u64 {
        let left = self.deadline.saturating_duration_since(Instant::now());
        u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
    }
}

/// How an attempt ends that does not fail.
pub(crate) enum Attempted {
    /// The driver is done.
    Done(ToolOutput),
    /// It asks before it goes on.
    Asks(Questions),
}

/// How a call ends that does not fail.
pub(crate) enum Finished {
    /// With an output that its contract allows.
    Done(Output),
    /// Not yet: it asks first.
    Asks(Questions),
}

/// Something that makes attempts: a component in a sandbox, or requests of the
/// host's own.
pub(crate) trait Attempts {
    /// Makes one attempt.
    async fn attempt(
        &mut self,
        number: u32,
        clock: &Clock,
        metadata: &mut Metadata,
    ) -> Result<Attempted, CallError>;
}

/// What stays the same over all attempts of a call.
pub(crate) struct Plan<'a> {
    pub(crate) tool: &'a ToolEntry,
    pub(crate) route: &'a Route,
    /// The route's, within those of a caller.
    pub(crate) limits: &'a CallLimits,
    pub(crate) clock: Clock,
    pub(crate) gates: &'a Path,
    pub(crate) slot: &'a SlotCell,
    pub(crate) checks: &'a Checks,
    pub(crate) principal: &'a str,
}

/// Makes attempts until one ends the call; they count on from those in
/// `metadata`. The deadline covers everything,
/// retries and pauses included; waiting for the first slot lies before it.
pub(crate) async fn run(
    plan: &Plan<'_>,
    attempts: &mut impl Attempts,
    metadata: &mut Metadata,
) -> Result<Finished, CallError> {
    let clock = &plan.clock;
    let contract = &plan.tool.contract;
    let mut number: u32 = metadata.attempts;
    loop {
        number = number.saturating_add(1);
        metadata.attempts = number;
        let error = match attempts.attempt(number, clock, metadata).await {
            Ok(Attempted::Asks(questions)) => return Ok(Finished::Asks(questions)),
            Ok(Attempted::Done(output)) => {
                let Mapped(output, memory) = output::accept(
                    output,
                    plan.limits,
                    contract,
                    &plan.route.implements.drop_outputs,
                    (plan.checks, plan.principal),
                    clock.deadline,
                    || clock.late(),
                )
                .await?;
                metadata.peak_memory = metadata.peak_memory.max(memory);
                return Ok(Finished::Done(output));
            }
            Err(error) => error,
        };

        let retry = plan.route.retry.as_ref().filter(|_| contract.idempotent);
        let Some(pause) = retry.and_then(|retry| pause(retry, number, &error)) else {
            return Err(error);
        };
        if Instant::now()
            .checked_add(pause)
            .is_none_or(|then| then >= clock.deadline)
        {
            return Err(error);
        }
        // Others may run while this call waits.
        drop(plan.slot.take());
        let next = pin!(async {
            tokio::time::sleep(pause).await;
            plan.gates.enter().await
        });
        match deadline::before(clock.deadline, next).await {
            Ok(slot) => plan.slot.put(slot?),
            Err(deadline::Elapsed) => return Err(clock.late()),
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
