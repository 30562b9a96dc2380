//! Dispatch: runs an approved call on its driver under one deadline, retries where
//! contract and error allow it, and goes on with the next driver where policy lets it.

mod attempts;
mod clock;
mod component;
mod context;
mod exec;
mod failure;
mod finish;
mod form;
mod http;
mod memory;
mod outcome;
mod output;
mod prepare;

pub(crate) use clock::Clock;
pub(crate) use context::DispatchContext;
pub(crate) use finish::Ended;
pub(crate) use memory::AttemptMemory;
pub(crate) use output::{Mapped, accept};

use std::pin::Pin;
use std::time::Instant;

use toolward_contract::driver::DriverKind;

use self::attempts::{Finished, Plan};
use self::component::Component;
use self::context::Executor;
use self::exec::Program;
use self::failure::Failure;
use self::form::Form;
use self::http::Requests;
use self::prepare::Admitted;
use crate::api::listener::CallStage;
use crate::api::principal::LOCAL;
use crate::api::result::{CallError, Origin};
use crate::catalogue::Route;
use crate::elicitation::Asker;
use crate::invocation::Invocation;
use crate::pipeline::approve::Approved;
use crate::pipeline::call_record::CallRecord;
use crate::pipeline::http_request;
use crate::pipeline::validate::RoutedCall;
use crate::sandbox::context::Context;
use crate::sandbox::run::Instance;
use crate::sandbox::turns::Spender;

/// Runs an approved call. Its deadline starts once it has a slot.
pub(crate) async fn dispatch(
    approved: Approved<RoutedCall>,
    host: DispatchContext<'_>,
    record: &mut CallRecord<'_>,
) -> Result<Ended, CallError> {
    let (mut call, covered) = approved.into_parts();
    let mut admitted = None;
    let mut before: Option<Context> = None;
    let mut kept_instance = None;
    let mut started = Started::default();
    loop {
        let served = serve(
            &mut call,
            &covered,
            &host,
            (&mut admitted, before.as_ref(), &mut kept_instance),
            record,
        );
        let (context, result) = match served.await {
            Ok((context, result)) => (Some(context), result),
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
            before = context.or(before);
            continue;
        }
        let result = result.map_err(|failure| failure.error);
        return match (context.or(before), &admitted) {
            (Some(context), Some(admitted)) => {
                let ended = finish::finish(&call, &context, admitted, result, record).await;
                drop_later(kept_instance, admitted);
                ended
            }
            _ => match result {
                Err(error) => Err(error),
                Ok(_) => Err(CallError::internal("a call ran that was not admitted")),
            },
        };
    }
}

/// Has a task of the runtime drop the instance of a call that succeeded. It keeps the call's slot until then: a slot is
/// room in the engine's pool.
fn drop_later(instance: Option<Instance>, admitted: &Admitted) {
    if let Some(instance) = instance {
        let slot = admitted.slot.take();
        tokio::spawn(async move {
            drop(instance);
            drop(slot);
        });
    }
}

/// The drivers that failed after something of the call may have left the host. What they may have done stays uncertain,
/// whatever comes of the drivers after them.
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

    /// Whether a driver may serve the call after them. What changes something is not done twice, whatever the contract
    /// says of repetition: two services know nothing of each other. Only the operator can say otherwise.
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
        let computes = next.driver.driver.kind == DriverKind::Component;
        let too_late = spent && computes;
        started.admits(next) && !too_late && next.driver.withdrawal.withdrawn().is_none()
    });
    next.is_some()
}

/// Has the call's driver serve it. The context is given where one was made: what was used
/// in it has to be kept out of the result.
async fn serve(
    call: &mut RoutedCall,
    covered: &[String],
    host: &DispatchContext<'_>,
    (admitted, before, kept_instance): (
        &mut Option<Admitted>,
        Option<&Context>,
        &mut Option<Instance>,
    ),
    record: &mut CallRecord<'_>,
) -> Result<(Context, Result<Finished, Failure>), Failure> {
    record.enter(CallStage::Prepare);
    let driver = call.route.driver.clone();
    let access = prepare::access(call)?;
    let executor = prepare::executor(host, &driver, &call.scope, admitted.as_ref()).await?;
    record.enter(CallStage::Admit);
    let admitted = prepare::admit(call, host, admitted, record).await?;
    let clock = admitted.clock.within(call.route.limits.timeout);
    let with = (access, executor);
    let context = prepare::context(call, covered, host, (&*admitted, &clock), with, record);
    if let Some(before) = before {
        context.follow(before);
    }
    record.enter(CallStage::Run);
    let result = run(
        call,
        &context,
        (admitted, clock, kept_instance),
        host,
        executor,
        record,
    )
    .await;
    Ok((context, result))
}

/// Keeps a future out of the one that awaits it: a call of a component, by far the most
/// frequent, would else take the room of the largest that any driver needs.
fn apart<'a, T>(
    future: impl Future<Output = T> + Send + 'a,
) -> Pin<Box<dyn Future<Output = T> + Send + 'a>> {
    Box::pin(future)
}

async fn run(
    call: &mut RoutedCall,
    context: &Context,
    (admitted, clock, kept_instance): (&mut Admitted, Clock, &mut Option<Instance>),
    host: &DispatchContext<'_>,
    executor: Executor<'_>,
    record: &mut CallRecord<'_>,
) -> Result<Finished, Failure> {
    let (tool, route) = (call.tool.clone(), call.route.clone());
    let resumption = admitted.resumption.take();
    let grant = &context.access.grant;
    let scope = call.scope.clone();
    let name = call.name.as_deref();
    let key = name.map(|name| {
        host.named
            .idempotency_key(name, route.driver.driver.id.as_str())
    });
    let plan = Plan {
        tool: &tool,
        route: &route,
        limits: &context.limits,
        clock,
        gates: &admitted.gates,
        slot: &admitted.slot,
        validation: host.validation,
        principal: &scope.principal,
    };
    match executor {
        Executor::Component(component) => {
            let nested = scope.chain.caller().is_some();
            let invocation = Invocation {
                idempotency_key: key.unwrap_or_else(|| record.metadata.invocation.clone()),
                id: record.metadata.invocation.clone(),
                tool: tool.contract.id.as_str().to_owned(),
                tool_version: tool.version.clone(),
                input: std::mem::take(&mut call.input),
                context: std::mem::take(&mut call.context),
                resume: resumption,
            };
            let Some(bound) = component.call(&route.implements.world, invocation) else {
                return Err(CallError::internal("the driver is bound to no such world").into());
            };
            let mut attempts = Component {
                call: bound,
                context,
                asker: Asker {
                    granted: grant.user(),
                    answerable: scope.answerable,
                    nested,
                    rounds: admitted.rounds,
                },
                // A called tool runs in its caller's turns.
                spender: (!nested).then_some(Spender {
                    turns: host.turns,
                    principal: &scope.principal,
                    publisher: &route.driver.publisher,
                }),
                slot: &admitted.slot,
                fuel: admitted.fuel_of(&route.limits),
                keeps_instance: scope.answers_first && !route.changes,
                kept_instance: None,
            };
            let result = attempts::run(&plan, &mut attempts, record).await;
            (call.input, call.context) = attempts.call.into_input();
            // A driver that failed is gone before another one is tried.
            *kept_instance = attempts.kept_instance.filter(|_| result.is_ok());
            result
        }
        Executor::Form => {
            let mut attempts = Form {
                call,
                route: &route,
                invocation: record.metadata.invocation.clone(),
                asker: Asker {
                    granted: grant.user(),
                    answerable: scope.answerable,
                    nested: scope.chain.caller().is_some(),
                    rounds: admitted.rounds,
                },
                open: host.form,
                resumption,
                rejected: admitted.rejected.take(),
            };
            let result = apart(attempts::run(&plan, &mut attempts, record)).await;
            if matches!(result, Ok(Finished::Done(_))) {
                record.metadata.origin = Some(Origin::Person);
            }
            result
        }
        Executor::Program => {
            let Ok(Some(bound)) = &context.access.program else {
                return Err(CallError::internal("this driver has no program").into());
            };
            let mut attempts = Program {
                bound,
                contract: &call.tool.contract,
                input: &call.input,
                secrets: &context.secrets,
                limits: &context.limits,
                slot: &admitted.slot,
                is_local: call.scope.principal == LOCAL,
            };
            apart(attempts::run(&plan, &mut attempts, record)).await
        }
        Executor::Http => {
            let driver = &route.driver.driver;
            let (Some(http), Some(origin), Some(network)) =
                (&route.implements.http, driver.origin(), &context.network)
            else {
                return Err(
                    CallError::internal("this driver has neither component nor request").into(),
                );
            };
            let rendered = match call.rendered.take() {
                Some(rendered) => rendered,
                None => http_request::render(http, call, context.limits.http_body_bytes)?,
            };
            let mut attempts = Requests {
                call: http,
                contract: &call.tool.contract,
                origin: format!("https://{origin}"),
                rendered,
                idempotency_key: key.unwrap_or_else(|| uuid::Uuid::now_v7().to_string()),
                network,
                budget: &context.budget,
                grant,
                secrets: &context.secrets,
                limits: &context.limits,
                slot: &admitted.slot,
                violations: &context.violations,
                is_attachment: driver.is_attachment,
            };
            apart(attempts::run(&plan, &mut attempts, record)).await
        }
    }
}
