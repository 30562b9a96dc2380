//! The attempts of a driver to serve a call: their shared context, the imports that answer the
//! driver's requests, and a single attempt.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::time::{Sleep, sleep_until};
use toolward_contract::tool::Retry;
use toolward_sandbox::invocation::{CallEnd, Invocation, Resumption};
use toolward_sandbox::limits::CallLimits;
use toolward_sandbox::violations::Violations;

use super::{DispatchContext, DriverFailure, output};
use crate::access::Access;
use crate::admission::Path;
use crate::api::facts::CallFacts;
use crate::api::result::{CallError, Output};
use crate::call_context::CallContext;
use crate::call_scope::Caller;
use crate::elicitation::{Asker, CheckedQuestions, Spent};
use crate::events::ProgressEvents;
use crate::executor::{AttemptMemory, AttemptReport, Clock, Executor, Job};
use crate::extensions::Extensions;
use crate::health::Health;
use crate::imports::{
    BoxFuture, CallBudget, CallSecrets, HostImports, NestedCalls, Reports, SlotCell,
};
use crate::pipeline::resolve;
use crate::pipeline::validate::RoutedCall;

/// The state of a call from its first slot on. It is the same for all drivers of the call.
pub(super) struct Admitted {
    pub(super) clock: Clock,
    pub(super) gates: Path,
    pub(super) slot: SlotCell,
    /// Fuel for all attempts together.
    pub(super) fuel: u64,
    /// The part of `fuel` that failed drivers consumed.
    pub(super) earlier_fuel: u64,
    pub(super) budget: Arc<CallBudget>,
    /// How often the call has asked questions.
    pub(super) rounds: u32,
    /// Set if the call resumes after questions.
    pub(super) resumption: Option<Resumption>,
    /// The resources that the call had consumed when it asked.
    pub(super) spent: Spent,
    /// Values that take time to drop, and may be dropped after the reply.
    pub(super) remains: Mutex<Option<Box<dyn Send>>>,
}

impl Admitted {
    /// Whether the call's time is over.
    pub(super) fn is_late(&self) -> bool {
        self.clock.deadline <= Instant::now()
    }

    /// The call's total fuel at which a driver with these limits must stop: the driver's limit plus
    /// the fuel that earlier drivers consumed, and at most the call's fuel.
    fn fuel_of(&self, limits: &CallLimits) -> u64 {
        self.fuel.min(self.earlier_fuel.saturating_add(limits.fuel))
    }
}

/// The attempts of a driver to serve a call.
pub(super) struct Attempts {
    pub(super) executor: Arc<dyn Executor>,
    pub(super) job: Job,
    pub(super) context: CallContext,
    /// Whether only the driver claims that the last attempt may be repeated.
    claimed: bool,
    /// Whether anything of an attempt may have left the host.
    dispatched: bool,
    /// Whether an attempt was given up because it did not end in time. No other attempt or driver
    /// may follow.
    lost: bool,
}

impl Attempts {
    /// The attempts of the call's driver. They own the call's input and context until
    /// [`Attempts::end`].
    pub(super) fn new(
        (call, covered): (&mut RoutedCall, &[String]),
        host: &DispatchContext<'_>,
        (executor, access): (Arc<dyn Executor>, Arc<Access>),
        admitted: &mut Admitted,
        (facts, events): (&CallFacts, Option<ProgressEvents>),
        idempotency_key: Option<String>,
    ) -> (Self, Arc<HostImports>) {
        let clock = admitted.clock.within(call.route.limits.timeout);
        let id = &facts.invocation;
        let setup = (&*admitted, &clock);
        let (mut context, imports) = context((&*call, covered), host, setup, access, (id, events));
        context.extensions = std::mem::take(&mut call.extensions);
        let features = executor.features();
        let (route, contract) = (&call.route, &call.tool.contract);
        let job = Job {
            invocation: Invocation {
                idempotency_key: idempotency_key.unwrap_or_else(|| id.clone()),
                id: id.clone(),
                tool: contract.id.as_str().to_owned(),
                tool_version: call.tool.version.clone(),
                input: std::mem::take(&mut call.input),
                context: std::mem::take(&mut call.context),
                attempt: 0,
                remaining_ms: 0,
                resume: admitted.resumption.take(),
            },
            contract_input: match features.asks_again {
                true => call.contract_input.clone(),
                false => serde_json::Value::Null,
            },
            fuel: admitted.fuel_of(&route.limits),
            spent_fuel: 0,
        };
        let attempts = Self {
            executor,
            job,
            context,
            claimed: false,
            dispatched: false,
            lost: false,
        };
        (attempts, imports)
    }

    /// Makes one attempt, which `facts` counts already. Other drivers made `earlier` of the counted
    /// attempts.
    pub(super) async fn attempt(
        &mut self,
        health: &Health,
        facts: &CallFacts,
        earlier: u32,
    ) -> AttemptReport {
        self.job.invocation.attempt = facts.attempts.saturating_sub(earlier);
        self.job.spent_fuel = facts.fuel;
        let (executor, job, context) = (&*self.executor, &mut self.job, &self.context);
        let report = match executor.features().ends_in_time {
            true => {
                let fuel = job.fuel.saturating_sub(job.spent_fuel);
                let report = or_stops(executor.attempt(job, context), context.clock).await;
                self.lost = report.is_none();
                report.unwrap_or_else(|| lost(context.clock, fuel))
            }
            // Boxed, so that the future of a component's call does not contain it.
            false => Box::pin(in_time(executor, job, context)).await,
        };
        if report.failing {
            health.failed(context.principal());
        } else if let (CallEnd::Done(_), false) = (&report.end, executor.features().replays) {
            health.worked(context.principal());
        }
        self.claimed = report.claimed;
        self.dispatched |= report.dispatched;
        report
    }

    /// Checks the output of an attempt against its contract, or its questions against the grant.
    pub(super) async fn accept(
        &self,
        end: CallEnd,
        host: &DispatchContext<'_>,
    ) -> CallEnd<(Output, u64), CheckedQuestions> {
        match end {
            CallEnd::Done(output) => output::accept(output, &self.context, &host.shared.validation)
                .await
                .into(),
            CallEnd::Asks(request) => {
                let context = &self.context;
                let questions = context
                    .asker
                    .take(request, context.grant(), &context.violations);
                questions.map_or_else(CallEnd::Failed, CallEnd::Asks)
            }
            CallEnd::Failed(error) => CallEnd::Failed(error),
        }
    }

    /// The failure of this driver with this error.
    pub(super) fn failure(&self, error: CallError) -> DriverFailure {
        match self.executor.features().replays || self.lost {
            true => error.into(),
            false => DriverFailure::of_driver(error, self.dispatched),
        }
    }

    /// Waits for the next attempt, if contract and error allow one. The call has no slot in the
    /// meantime.
    pub(super) async fn retry(
        &self,
        call: &RoutedCall,
        admitted: &Admitted,
        error: CallError,
    ) -> Result<(), DriverFailure> {
        let (context, clock) = (&self.context, self.context.clock);
        let contract = &context.contract;
        let repeats = contract.idempotent && (contract.mutates.is_empty() || !self.claimed);
        let retry = call.route.retry.as_ref().filter(|_| repeats);
        let retry = retry.filter(|_| !self.lost);
        let attempt = self.job.invocation.attempt;
        let Some(pause) = retry.and_then(|retry| pause(retry, attempt, &error)) else {
            return Err(self.failure(error));
        };
        let ends = Instant::now().checked_add(pause);
        if ends.is_none_or(|ends| ends >= clock.deadline) {
            return Err(self.failure(error));
        }
        drop(context.slot.take());
        let next = Box::pin(async {
            tokio::time::sleep(pause).await;
            let ends = Some(clock.deadline);
            let limit = context.limits.memory_bytes;
            admitted.gates.enter(limit, ends).await
        });
        context.slot.put(clock.bound(next).await??);
        resolve::still_served(&call.tool, &call.route).map_err(DriverFailure::from)
    }

    /// Gives input, context and extensions back to the call. Returns values that take time to drop,
    /// and may be dropped after the reply.
    pub(super) fn end(self, call: &mut RoutedCall) -> Option<Box<dyn Send>> {
        let CallContext {
            extensions,
            remains,
            ..
        } = self.context;
        let Invocation { input, context, .. } = self.job.invocation;
        (call.input, call.context, call.extensions) = (input, context, extensions);
        remains.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes one attempt, until the deadline or until other calls need its memory.
async fn in_time(executor: &dyn Executor, job: &mut Job, context: &CallContext) -> AttemptReport {
    let clock = context.clock;
    let memory = AttemptMemory::of(&context.slot, context.limits.memory_bytes);
    let attempt = pin!(memory.until_ended(executor.attempt(job, context)));
    let report = clock.bound(attempt).await.flatten();
    report.unwrap_or_else(AttemptReport::failed)
}

/// How long an attempt that ends by itself may take to report after the deadline.
const REPORT_TIME: Duration = Duration::from_secs(1);

/// Waits for an attempt that ends by itself. Returns `None` if it does not end in time.
async fn or_stops(
    mut attempt: BoxFuture<'_, AttemptReport>,
    clock: Clock,
) -> Option<AttemptReport> {
    // Most calls need no timer.
    let mut stops: Option<Pin<Box<Sleep>>> = None;
    poll_fn(|context| {
        if let Poll::Ready(report) = attempt.as_mut().poll(context) {
            return Poll::Ready(Some(report));
        }
        let stops = stops.get_or_insert_with(|| {
            let ends = clock.deadline.checked_add(REPORT_TIME);
            Box::pin(sleep_until(ends.unwrap_or(clock.deadline).into()))
        });
        stops.as_mut().poll(context).map(|()| None)
    })
    .await
}

/// The report of an attempt that did not end. Its consumption is not known, so all fuel that was
/// left counts.
fn lost(clock: Clock, fuel: u64) -> AttemptReport {
    tracing::error!("an attempt did not end at its deadline; its call is given up");
    AttemptReport {
        failing: true,
        fuel,
        ..AttemptReport::failed(clock.late())
    }
}

/// How long to wait before the next attempt; `None` if no further attempt is made.
fn pause(retry: &Retry, attempt: u32, error: &CallError) -> Option<Duration> {
    if !error.retryable || attempt >= retry.max_attempts {
        return None;
    }
    let own = retry.wait_before(attempt.saturating_add(1));
    Some(own.max(error.retry_after.unwrap_or_default()))
}

/// The context that the attempts of the call's driver share, and the imports that answer its
/// requests.
fn context(
    (call, covered): (&RoutedCall, &[String]),
    host: &DispatchContext<'_>,
    (admitted, clock): (&Admitted, &Clock),
    access: Arc<Access>,
    (invocation, events): (&str, Option<ProgressEvents>),
) -> (CallContext, Arc<HostImports>) {
    let (route, scope) = (&call.route, &call.scope);
    let (caller, grant) = (scope.chain.caller(), &access.grant);
    let budget = admitted.budget.clone();
    let secrets = CallSecrets::new(
        grant,
        host.services.secrets.clone(),
        &scope.principal,
        budget.stores.clone(),
    );
    secrets.keep_out(&call.context_secrets);
    let violations = Violations::new(grant.on_violation(), &route.reported, Some(secrets.clone()));
    let left = caller.map(|caller| caller.memory_bytes);
    let limits = route.limits.within(left, route.features().holds_bodies);
    // `None` if no host is granted, or if this host has no network.
    let egress = access.egress.as_ref().ok().and_then(Option::as_ref);
    let network = egress.map(|egress| {
        let (limits, outer) = (limits.clone(), Some(&budget.network));
        let egress = egress.on_behalf_of(&scope.principal);
        egress.call(limits, clock.deadline, outer, secrets.clone())
    });
    let tools = (!grant.tools().is_empty()).then(|| {
        let id: Arc<str> = invocation.into();
        let mut names = scope.chain.names().to_vec();
        names.push(call.tool.major_id.to_string());
        let mut bundles = scope.chain.bundles();
        bundles.extend([call.tool.bundle.to_string(), route.bundle.to_string()]);
        NestedCalls {
            host: host.host.clone(),
            access: access.clone(),
            caller: Caller {
                root: caller.map_or_else(|| id.clone(), |caller| caller.root.clone()),
                invocation: id,
                budget: budget.clone(),
                names: names.into(),
                bundles,
                deadline: clock.deadline,
                fuel: 0,
                memory_bytes: 0,
                covered: covered.to_vec(),
                dev: call.tool.dev,
            },
            scope: scope.clone(),
            gates: admitted.gates.clone(),
            slot: admitted.slot.clone(),
        }
    });
    let imports = Arc::new(HostImports {
        access: access.clone(),
        buckets: host.services.buckets.clone(),
        scope: scope.clone(),
        deadline: clock.deadline,
        budget: budget.clone(),
        violations: violations.clone(),
        secrets,
        network,
        tools,
        reports: Reports::default(),
        limits: limits.clone(),
        events,
    });
    let context = CallContext {
        asker: Asker {
            answerable: scope.answerable,
            nested: caller.is_some(),
            rounds: admitted.rounds,
        },
        contract: call.tool.contract.clone(),
        implements: route.implements.clone(),
        clock: *clock,
        slot: admitted.slot.clone(),
        answers_first: scope.answers_first && !route.changes,
        remains: Mutex::default(),
        extensions: Extensions::default(),
        limits,
        access,
        budget,
        violations,
        scope: scope.clone(),
        imports: imports.clone(),
    };
    (context, imports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::result::ErrorCode;

    #[tokio::test]
    async fn an_attempt_that_does_not_end_by_itself_is_not_waited_for() {
        let clock = Clock::start(Duration::from_millis(10), None);
        let started = Instant::now();
        let report = or_stops(Box::pin(std::future::pending()), clock).await;
        assert!(report.is_none());
        assert!(started.elapsed() < REPORT_TIME * 5);
    }

    #[tokio::test]
    async fn an_attempt_that_does_not_end_is_a_failure_with_all_of_its_fuel() {
        let report = lost(Clock::start(Duration::from_millis(10), None), 7);
        assert!(matches!(report.end, CallEnd::Failed(error) if error.code == ErrorCode::TIMEOUT));
        assert!(report.failing && report.dispatched);
        assert_eq!(report.fuel, 7);
    }
}
