//! The executor of components: each attempt in a new sandbox.

mod outcome;
mod preparation;
mod preparer;

use std::sync::Arc;

use toolward_sandbox::invocation::CallEnd;
use toolward_sandbox::limits::{AttemptLimits, MemoryBudget};
use toolward_sandbox::run::{self, AttemptOutcome};
use toolward_sandbox::turns::{Spender, Turns};

pub(crate) use self::preparer::Preparer;
use self::preparer::{LoadedComponent, refused};
use super::{AttemptReport, DriverSource, Executor, Features, Job};
use crate::api::result::CallError;
use crate::call_context::CallContext;
use crate::call_scope::CallScope;
use crate::imports::BoxFuture;

/// Longer outputs are checked and redacted after the guest's memory has been freed.
const SHORT_OUTPUT_BYTES: usize = 16 << 10;

/// The executor of one component.
pub(crate) struct ComponentExecutor {
    component: Arc<LoadedComponent>,
    publisher: Arc<str>,
    preparer: Arc<Preparer>,
    turns: Arc<Turns>,
}

impl ComponentExecutor {
    pub(crate) fn new(source: DriverSource, preparer: Arc<Preparer>, turns: Arc<Turns>) -> Self {
        Self {
            component: Arc::new(LoadedComponent::new(source.driver, source.component)),
            publisher: source.publisher,
            preparer,
            turns,
        }
    }
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
        self.component.preparation.is_ready()
    }

    fn prepare<'a>(&'a self, call: Option<&'a CallScope>) -> BoxFuture<'a, Result<(), CallError>> {
        match self.component.preparation.done.get() {
            // Most calls: the future that prepares is far larger.
            Some(Ok(_)) => Box::pin(std::future::ready(Ok(()))),
            _ => Box::pin(async move {
                let prepared = self.preparer.prepared(&self.component, call).await;
                prepared.map(drop)
            }),
        }
    }

    fn attempt<'a>(
        &'a self,
        job: &'a mut Job,
        context: &'a CallContext,
    ) -> BoxFuture<'a, AttemptReport> {
        Box::pin(self.run(job, context))
    }
}

impl ComponentExecutor {
    async fn run(&self, job: &mut Job, context: &CallContext) -> AttemptReport {
        let prepared = match self.component.preparation.done.get() {
            Some(Ok(prepared)) => prepared,
            Some(Err(error)) => {
                return AttemptReport::new(CallEnd::Failed(refused(&self.component, error)));
            }
            None => {
                let error = CallError::internal("a driver was called before it was prepared");
                return AttemptReport::new(CallEnd::Failed(error));
            }
        };
        job.invocation.remaining_ms = context.clock.remaining_ms();
        let Some(call) = prepared.call(&context.implements.world, &mut job.invocation) else {
            let error = CallError::internal("the driver is bound to no such world");
            return AttemptReport::new(CallEnd::Failed(error));
        };
        let limits = AttemptLimits {
            // Earlier attempts have used up a part of the budget.
            fuel: job.fuel.saturating_sub(job.spent_fuel),
            fuel_total: job.fuel,
            memory_bytes: context.limits.memory_bytes,
        };
        // A called tool runs in its caller's turns.
        let spender = (!context.asker.nested).then_some(Spender {
            turns: &self.turns,
            principal: &context.scope.principal,
            publisher: &self.publisher,
        });
        let lease = context
            .slot
            .memory()
            .map(|lease| lease as Arc<dyn MemoryBudget>);
        let grant = context.sandboxed();
        let deadline = context.clock.deadline;
        let (ended, mut usage, instance) =
            run::attempt(&call, &grant, limits, (spender, lease), deadline).await;
        let failing = matches!(ended, AttemptOutcome::Trapped(_));
        // The end of the driver's texts is quoted, and cut for that.
        if failing {
            context.imports.redact(&mut usage.captured.stderr);
            if let Some(last) = usage.captured.logs.last_mut() {
                context.imports.redact(&mut last.message);
            }
        }
        call.give_back();
        let end = outcome::end_of(ended, &usage, context);
        let is_short = match &end {
            CallEnd::Done(output) => {
                output.content.is_empty() && output.structured.len() <= SHORT_OUTPUT_BYTES
            }
            CallEnd::Asks(_) | CallEnd::Failed(_) => false,
        };
        if let Some(instance) = instance.filter(|_| is_short && context.answers_first) {
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
