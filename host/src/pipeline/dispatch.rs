//! Dispatch: has an approved call carried out by its driver under one deadline, and continues with the
//! next driver if policy lets it.

mod admit;
mod attempts;
mod failure;
mod finish;
mod output;

pub(crate) use finish::Ended;
pub(crate) use output::{Mapped, accept};

use std::sync::Arc;
use std::time::Instant;

use self::admit::Admitted;
use self::attempts::{Finished, Plan};
use self::failure::Failure;
use crate::admission::Admission;
use crate::api::listener::CallStage;
use crate::api::result::CallError;
use crate::catalogue::Route;
use crate::elicitation::Asker;
use crate::executor::{Clock, Job};
use crate::imports::{CallTools, HostImports};
use crate::invocation::Invocation;
use crate::named::NamedCalls;
use crate::pipeline::approve::Approved;
use crate::pipeline::call_record::CallRecord;
use crate::pipeline::validate::RoutedCall;
use crate::sandbox::context::CallContext;
use crate::services::Services;
use crate::validation_pool::ValidationPool;

/// What a call is carried out with.
pub(crate) struct DispatchContext<'a> {
    pub(crate) host: Arc<dyn CallTools>,
    pub(crate) services: &'a Arc<Services>,
    pub(crate) admission: &'a Admission,
    pub(crate) validation: &'a ValidationPool,
    pub(crate) named: &'a NamedCalls,
}

/// Runs an approved call. Its deadline starts once it has a slot.
pub(crate) async fn dispatch(
    approved: Approved<RoutedCall>,
    host: DispatchContext<'_>,
    record: &mut CallRecord<'_>,
) -> Result<Ended, CallError> {
    let (mut call, covered) = approved.into_parts();
    let mut admitted = None;
    let mut before: Option<Arc<HostImports>> = None;
    let mut started = Started::default();
    loop {
        let earlier = (&mut admitted, before.as_deref());
        let served = serve(&mut call, &covered, &host, earlier, record).await;
        let (imports, result) = match served {
            Ok((imports, result)) => (Some(imports), result),
            Err(failure) => (None, Err(failure)),
        };
        if let Err(failure) = &result
            && falls(&mut call, failure, &mut started, admitted.as_ref(), record)
        {
            record.failed(&failure.error.code);
            record.picked(&call.route);
            if let Some(admitted) = &mut admitted {
                admitted.earlier_fuel = record.metadata.fuel;
            }
            before = imports.or(before);
            continue;
        }
        let result = result.map_err(|failure| failure.error);
        return match (imports.or(before), &admitted) {
            (Some(imports), Some(admitted)) => {
                finish::finish(&call, &imports, admitted, result, record).await
            }
            _ => match result {
                Err(error) => Err(error),
                Ok(_) => Err(CallError::internal("a call ran that was not admitted")),
            },
        };
    }
}

/// The drivers that failed after something of the call may have left the host. What they may have done stays
/// uncertain, even if a later driver succeeds.
#[derive(Default)]
struct Started {
    any: bool,
    changes: bool,
    /// Whether what one of them may have done is not done again.
    once: bool,
}

impl Started {
    fn add(&mut self, route: &Route) {
        self.any = true;
        self.changes |= route.changes;
        self.once |= !route.repeats;
    }

    /// Whether a driver may serve the call after them. A change is not made twice, even if the contract is
    /// idempotent: two services know nothing of each other. Only the operator can allow it.
    fn admits(&self, next: &Route) -> bool {
        let repeats = next.repeats && !self.once;
        !self.any || repeats || !(self.changes || next.changes)
    }
}

/// Turns to the next driver, if one may serve the call after this failure.
fn falls(
    call: &mut RoutedCall,
    failure: &Failure,
    started: &mut Started,
    admitted: Option<&Admitted>,
    record: &CallRecord<'_>,
) -> bool {
    if !failure.is_drivers {
        return false;
    }
    if let Some(admitted) = admitted
        && admitted.clock.deadline <= Instant::now()
    {
        return false;
    }
    let spent = admitted.is_some_and(|admitted| record.metadata.fuel >= admitted.fuel);
    if failure.dispatched {
        started.add(&call.route);
    }
    let next = call.fall(|next| {
        let too_late = spent && next.driver.features().uses_fuel;
        started.admits(next) && !too_late && next.driver.withdrawal.withdrawn().is_none()
    });
    next.is_some()
}

/// Has the call's driver serve it. What answered its requests is returned: its secrets must be kept out of the
/// result.
async fn serve(
    call: &mut RoutedCall,
    covered: &[String],
    host: &DispatchContext<'_>,
    (admitted, before): (&mut Option<Admitted>, Option<&HostImports>),
    record: &mut CallRecord<'_>,
) -> Result<(Arc<HostImports>, Result<Finished, Failure>), Failure> {
    record.enter(CallStage::Prepare);
    let driver = call.route.driver.clone();
    let access = admit::access(call)?;
    let Some(executor) = &driver.executor else {
        return Err(CallError::internal("no executor runs drivers of this kind").into());
    };
    admit::prepare(&**executor, &call.scope, admitted.as_ref()).await?;
    record.enter(CallStage::Admit);
    let admitted = admit::admit(call, host, admitted, record).await?;
    let clock = admitted.clock.within(call.route.limits.timeout);
    let (context, imports) =
        admit::context(call, covered, host, (&*admitted, &clock), access, record);
    if let Some(before) = before {
        imports.follow(before);
    }
    record.enter(CallStage::Run);
    let key = match call.name.as_deref() {
        None => None,
        Some(name) => {
            let key = host
                .named
                .idempotency_key(name, driver.driver.id.as_str(), clock.deadline);
            Some(key.await?)
        }
    };
    let mut job = job(call, &context, admitted, (clock, key), record);
    let plan = Plan {
        tool: &call.tool,
        route: &call.route,
        gates: &admitted.gates,
        validation: host.validation,
    };
    let result = match executor.begin(&mut job, &context) {
        Ok(()) => attempts::run(&**executor, &mut job, &context, &plan, record).await,
        Err(error) => Err(error.into()),
    };
    (call.input, call.context) = (job.invocation.input, job.invocation.context);
    Ok((imports, result))
}

fn job(
    call: &mut RoutedCall,
    context: &CallContext,
    admitted: &mut Admitted,
    (clock, key): (Clock, Option<String>),
    record: &CallRecord<'_>,
) -> Job {
    let (route, scope) = (&call.route, &call.scope);
    let id = &record.metadata.invocation;
    Job {
        contract: call.tool.contract.clone(),
        implements: route.implements.clone(),
        invocation: Invocation {
            idempotency_key: key.unwrap_or_else(|| id.clone()),
            id: id.clone(),
            tool: call.tool.contract.id.as_str().to_owned(),
            tool_version: call.tool.version.clone(),
            input: std::mem::take(&mut call.input),
            context: std::mem::take(&mut call.context),
            attempt: 0,
            remaining_ms: 0,
            resume: admitted.resumption.take(),
        },
        contract_input: match route.driver.features().asks_again {
            true => call.contract_input.clone(),
            false => serde_json::Value::Null,
        },
        asker: Asker {
            granted: context.access.grant.user(),
            answerable: scope.answerable,
            nested: scope.chain.caller().is_some(),
            rounds: admitted.rounds,
        },
        clock,
        fuel: admitted.fuel_of(&route.limits),
        spent_fuel: 0,
        slot: admitted.slot.clone(),
        answers_first: scope.answers_first && !route.changes,
        extension: None,
    }
}
