//! Gathers what an approved call needs, takes a slot, and runs it.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::{Clock, Component, Finished, Plan, Requests, run};
use crate::admission::Admission;
use crate::approval::Approved;
use crate::asking::{Asked, Asker, Facts, Questions, Spent};
use crate::checks::Checks;
use crate::limits::CallLimits;
use crate::lineage::{CallTools, Caller, Root};
use crate::redact::Redactor;
use crate::resolve;
use crate::result::{CallError, Captured, ErrorClass, ErrorCode, Metadata, Output};
use crate::sandbox::Told;
use crate::sandbox::context::Context;
use crate::sandbox::deadline;
use crate::sandbox::run::Prepared;
use crate::sandbox::secrets::CallSecrets;
use crate::sandbox::tools::{self, SlotCell};
use crate::sandbox::turns::{Spender, Turns};
use crate::sandbox::v0_1::types::Invocation;
use crate::services::Services;
use crate::validate::Call;
use crate::violations::Violations;

/// What a call is carried out with.
pub(crate) struct Means<'a> {
    pub(crate) host: Arc<dyn CallTools>,
    pub(crate) services: &'a Arc<Services>,
    pub(crate) admission: &'a Admission,
    pub(crate) checks: &'a Checks,
    pub(crate) turns: &'a Turns,
    /// The driver's component; `None` where the host itself makes the requests.
    pub(crate) prepared: Option<&'a Prepared>,
}

/// How a call ended that did not fail.
pub(crate) enum Ended {
    /// With an output.
    Output(Output),
    /// With questions.
    Asked(Box<Asked>),
}

/// Runs an approved call. Its deadline starts here, once it has a slot.
pub(crate) async fn start(
    approved: Approved<Call>,
    means: Means<'_>,
    metadata: &mut Metadata,
    captured: &mut Captured,
) -> Result<Ended, CallError> {
    let (mut call, covered) = approved.into_parts();
    let resumed = call.resume.take().map(|resumed| *resumed);
    let (rounds, spent, resumption) = match resumed {
        None => (0, Spent::default(), None),
        Some(resumed) => (resumed.rounds, resumed.spent, Some(resumed.resumption)),
    };
    let route = &call.route;
    let Some(access) = route.access.clone() else {
        return Err(internal("a denied call got past the policy"));
    };
    if let Err(error) = &access.files {
        return Err(error.clone());
    }
    let [tool, publisher] = &call.tool.gates;
    let gates = means.admission.path(tool, publisher, &call.principal);
    let caller = call.lineage.caller();

    let slot = match caller {
        None => gates.enter().await?,
        // The wait of a called tool is its caller's time.
        Some(caller) => {
            let clock = Clock::start(call.timeout, Some(caller.deadline));
            match deadline::before(caller.deadline, pin!(gates.enter())).await {
                Ok(slot) => slot?,
                Err(deadline::Elapsed) => return Err(clock.late()),
            }
        }
    };
    let slot = SlotCell::new(slot);
    // A person was asked meanwhile, or others went first.
    resolve::still_served(&call.tool, route)?;
    let clock = Clock::start(call.timeout, caller.map(|caller| caller.deadline))
        .after(Duration::from_millis(spent.milliseconds));
    metadata.fuel = spent.fuel;
    // The attempt that asked goes on.
    metadata.attempts = spent.attempts.saturating_sub(1);
    let root = match caller {
        Some(caller) => caller.root.clone(),
        None => Root::new(
            &route.limits,
            means.services.limits.nested_depth,
            call.observer.clone(),
        ),
    };
    let grant = &access.grant;
    let secrets = CallSecrets::new(
        grant,
        means.services.secrets.clone(),
        &call.principal,
        root.stores.clone(),
    );
    secrets.keep_out(&call.context_secrets);
    let violations = Violations::new(grant.on_violation())
        .of(&route.driver.reported)
        .hiding(secrets.clone());
    let limits = within(&route.limits, caller, means.prepared.is_some());
    let network = access.call(&call.principal, &limits, clock.deadline, &root, &secrets);
    let tools = (!grant.tools().is_empty()).then(|| {
        let mut names = call.lineage.names();
        names.push(call.tool.major_id.clone());
        let mut bundles = call.lineage.bundles();
        bundles.extend([call.tool.bundle.clone(), route.driver.bundle.clone()]);
        tools::Ctx {
            host: means.host,
            root: root.clone(),
            access: access.clone(),
            names,
            bundles,
            covered,
            principal: call.principal.clone(),
            approver: call.approver.clone(),
            dev: call.tool.dev,
            deadline: clock.deadline,
            gates: gates.clone(),
            slot: slot.clone(),
        }
    });
    let context = Context {
        limits: limits.clone(),
        access: access.clone(),
        services: means.services.clone(),
        root,
        violations: violations.clone(),
        principal: call.principal.clone(),
        secrets,
        network,
        tools,
        observer: call.observer.clone(),
        told: Told::default(),
    };
    let contract = &call.tool.contract;
    let plan = Plan {
        tool: &call.tool,
        route,
        limits: &limits,
        clock,
        gates: &gates,
        slot: &slot,
        checks: means.checks,
        principal: &call.principal,
    };
    let result = match means.prepared {
        Some(prepared) => {
            let mut attempts = Component {
                prepared,
                context: &context,
                invocation: Invocation {
                    id: metadata.invocation.clone(),
                    tool: contract.id.to_string(),
                    tool_version: contract.version.to_string(),
                    input: call.input,
                    context: call.context,
                    attempt: 0,
                    remaining_ms: 0,
                    idempotency_key: metadata.invocation.clone(),
                    resume: resumption,
                },
                asker: Asker {
                    granted: grant.user(),
                    answerable: call.answerable,
                    nested: caller.is_some(),
                    rounds,
                },
                // A called tool runs in its caller's turns.
                spender: caller.is_none().then_some(Spender {
                    turns: means.turns,
                    principal: &call.principal,
                    publisher: &route.driver.publisher,
                }),
                fuel: least(route.limits.fuel, caller.map(|caller| caller.fuel)),
                memory_bytes: limits.memory_bytes,
                captured: &mut *captured,
            };
            let result = run(&plan, &mut attempts, metadata).await;
            let Invocation { input, context, .. } = attempts.invocation;
            (call.input, call.context) = (input, context);
            result
        }
        None => {
            let driver = &route.driver.driver;
            let (Some(http), Some(origin), Some(network)) =
                (&route.implements.http, driver.origin(), &context.network)
            else {
                return Err(internal("this driver has neither component nor request"));
            };
            let input = serde_json::from_str(&call.input)
                .map_err(|error| internal(&format!("the input is no JSON: {error}")))?;
            let mut attempts = Requests {
                call: http,
                origin: format!("https://{origin}"),
                input,
                network,
                grant,
                secrets: &context.secrets,
                limits: &limits,
                violations: &violations,
            };
            run(&plan, &mut attempts, metadata).await
        }
    };
    let found = violations.found();
    (metadata.violations, metadata.violations_total) = (found.first, found.total);
    let redactor = context.secrets.redactor();
    let result = match result {
        Ok(Finished::Done(output)) => Ok(output),
        Err(error) => Err(error),
        Ok(Finished::Asks(questions)) => match questions.keep(redactor.as_deref()) {
            Ok(questions) => {
                if let Some(redactor) = redactor {
                    redactor.captured(captured);
                }
                let spent = Spent {
                    fuel: metadata.fuel,
                    milliseconds: u64::try_from(clock.spent().as_millis()).unwrap_or(u64::MAX),
                    attempts: metadata.attempts,
                };
                let asked = asked(&call, questions, rounds, spent, &metadata.invocation);
                return Ok(Ended::Asked(Box::new(asked)));
            }
            Err(error) => Err(error),
        },
    };
    let result = match redactor {
        Some(redactor) => redacted(redactor, result, captured).await,
        None => result,
    };
    result.map(Ended::Output)
}

/// The limits of a call: those of its route, and no more memory than its caller has
/// left. A response that the host takes whole is there twice while it is read.
fn within(limits: &CallLimits, caller: Option<&Caller>, component: bool) -> CallLimits {
    let mut limits = limits.clone();
    let left = caller.map(|caller| caller.memory_bytes);
    limits.memory_bytes = least(limits.memory_bytes, left);
    if !component {
        limits.http_body_bytes = limits.http_body_bytes.min(limits.memory_bytes / 2);
    }
    limits
}

fn asked(call: &Call, questions: Questions, rounds: u32, spent: Spent, invocation: &str) -> Asked {
    let facts = Facts {
        principal: &call.principal,
        tool: &call.tool,
        route: &call.route,
        input: &call.input,
        context: &call.context,
    };
    let driver = &call.route.driver;
    Asked {
        invocation: invocation.to_owned(),
        principal: call.principal.clone(),
        tool: call.tool.full_id.clone(),
        tool_id: call.tool.major_id.clone(),
        publisher: call.tool.publisher.clone(),
        driver: driver.driver.id.to_string(),
        driver_publisher: driver.publisher.clone(),
        bundle: driver.bundle.clone(),
        input: facts.input(),
        round: rounds.saturating_add(1),
        questions: questions.questions,
        state: questions.state,
        spent,
    }
}

/// Takes the secrets out of what a call shows: on a thread of its own, since that
/// may be megabytes.
async fn redacted(
    redactor: Arc<Redactor>,
    mut result: Result<Output, CallError>,
    captured: &mut Captured,
) -> Result<Output, CallError> {
    let mut taken = std::mem::take(captured);
    let work = tokio::task::spawn_blocking(move || {
        match &mut result {
            Ok(output) => redactor.output(output),
            Err(error) => redactor.error(error),
        }
        redactor.captured(&mut taken);
        (result, taken)
    });
    match work.await {
        Ok((result, redacted)) => {
            *captured = redacted;
            result
        }
        // Then nothing is shown.
        Err(error) => Err(internal(&format!("the result can't be shown: {error}"))),
    }
}

fn least(own: u64, left: Option<u64>) -> u64 {
    left.map_or(own, |left| own.min(left))
}

fn internal(message: &str) -> CallError {
    CallError::new(ErrorCode::INTERNAL, ErrorClass::ExecutionFailed, message)
}
