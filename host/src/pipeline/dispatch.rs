//! Dispatch: runs an approved call on its driver under one deadline, and
//! retries where contract and error allow it.

mod attempts;
mod clock;
mod component;
mod context;
mod finish;
mod form;
mod http;
mod outcome;
mod output;
mod prepare;

pub(crate) use clock::timed_out;
pub(crate) use context::{DispatchContext, Executor};
pub(crate) use finish::Ended;
pub(crate) use prepare::within;

use self::attempts::{Finished, Plan};
use self::component::Component;
use self::form::Form;
use self::http::Requests;
use self::prepare::Run;
use crate::api::listener::CallStage;
use crate::api::result::{CallError, Origin};
use crate::elicitation::Asker;
use crate::invocation::Invocation;
use crate::pipeline::approve::Approved;
use crate::pipeline::call_record::CallRecord;
use crate::pipeline::http_request;
use crate::pipeline::validate::RoutedCall;
use crate::sandbox::turns::Spender;

/// Runs an approved call. Its deadline starts here, once it has a slot.
pub(crate) async fn dispatch(
    approved: Approved<RoutedCall>,
    host: DispatchContext<'_>,
    record: &mut CallRecord<'_>,
) -> Result<Ended, CallError> {
    let (mut call, covered) = approved.into_parts();
    let mut prepared = prepare::prepare(&mut call, covered, &host, record).await?;
    record.enter(CallStage::Run);
    let result = run(&mut call, &mut prepared, &host, record).await;
    finish::finish(&call, &prepared, result, record).await
}

async fn run(
    call: &mut RoutedCall,
    prepared: &mut Run,
    host: &DispatchContext<'_>,
    record: &mut CallRecord<'_>,
) -> Result<Finished, CallError> {
    let (tool, route) = (call.tool.clone(), call.route.clone());
    let resumption = prepared.resumption.take();
    let context = &prepared.context;
    let grant = &context.access.grant;
    let scope = call.scope.clone();
    let plan = Plan {
        tool: &tool,
        route: &route,
        limits: &context.limits,
        clock: prepared.clock,
        gates: &prepared.gates,
        slot: &prepared.slot,
        validation: host.validation,
        principal: &scope.principal,
    };
    match host.executor {
        Executor::Component(component) => {
            let nested = scope.chain.caller().is_some();
            let invocation = Invocation {
                id: record.metadata.invocation.clone(),
                tool: tool.contract.id.as_str().to_owned(),
                tool_version: tool.version.clone(),
                input: std::mem::take(&mut call.input),
                context: std::mem::take(&mut call.context),
                resume: resumption,
            };
            let Some(bound) = component.call(&route.implements.world, invocation) else {
                return Err(CallError::internal("the driver is bound to no such world"));
            };
            let mut attempts = Component {
                call: bound,
                context,
                asker: Asker {
                    granted: grant.user(),
                    answerable: scope.answerable,
                    nested,
                    rounds: prepared.rounds,
                },
                // A called tool runs in its caller's turns.
                spender: (!nested).then_some(Spender {
                    turns: host.turns,
                    principal: &scope.principal,
                    publisher: &route.driver.publisher,
                }),
                fuel: prepared.fuel,
            };
            let result = attempts::run(&plan, &mut attempts, record).await;
            (call.input, call.context) = attempts.call.into_input();
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
                    rounds: prepared.rounds,
                },
                open: host.forms,
                resumption,
                rejected: prepared.rejected.take(),
            };
            let result = attempts::run(&plan, &mut attempts, record).await;
            if matches!(result, Ok(Finished::Done(_))) {
                record.metadata.origin = Some(Origin::Person);
            }
            result
        }
        Executor::Http => {
            let driver = &route.driver.driver;
            let (Some(http), Some(origin), Some(network)) =
                (&route.implements.http, driver.origin(), &context.network)
            else {
                return Err(CallError::internal(
                    "this driver has neither component nor request",
                ));
            };
            let rendered = match call.rendered.take() {
                Some(rendered) => rendered,
                None => http_request::render(http, call, context.limits.http_body_bytes)?,
            };
            let mut attempts = Requests {
                call: http,
                origin: format!("https://{origin}"),
                rendered,
                idempotency_key: uuid::Uuid::now_v7().to_string(),
                network,
                grant,
                secrets: &context.secrets,
                limits: &context.limits,
                violations: &context.violations,
            };
            attempts::run(&plan, &mut attempts, record).await
        }
    }
}
