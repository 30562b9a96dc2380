//! Gathers what an approved call needs, and takes a slot for it.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use super::clock::Clock;
use super::context::{DispatchContext, Executor};
use crate::admission::Path;
use crate::api::limits::CallLimits;
use crate::api::listener::CallStage;
use crate::api::result::CallError;
use crate::api::violations::Violations;
use crate::elicitation::Spent;
use crate::invocation::Resumption;
use crate::pipeline::call_record::CallRecord;
use crate::pipeline::resolve;
use crate::pipeline::validate::RoutedCall;
use crate::sandbox::access::Access;
use crate::sandbox::call_budget::CallBudget;
use crate::sandbox::call_chain::Caller;
use crate::sandbox::context::Context;
use crate::sandbox::deadline;
use crate::sandbox::guest_reports::ReportCounts;
use crate::sandbox::secrets::CallSecrets;
use crate::sandbox::tools::{self, SlotCell};

/// A call that has a slot, with all that its attempts share.
pub(super) struct Run {
    pub(super) context: Context,
    pub(super) clock: Clock,
    pub(super) gates: Path,
    pub(super) slot: SlotCell,
    /// Fuel for all attempts together.
    pub(super) fuel: u64,
    /// How often the call has asked.
    pub(super) rounds: u32,
    /// Set where it resumes after questions.
    pub(super) resumption: Option<Resumption>,
    /// Why the answer does not fit with which it resumes.
    pub(super) rejected: Option<String>,
}

/// Makes a call ready to run. Its clock starts once it has a slot.
pub(super) async fn prepare(
    call: &mut RoutedCall,
    covered: Vec<String>,
    host: &DispatchContext<'_>,
    record: &mut CallRecord<'_>,
) -> Result<Run, CallError> {
    let (rounds, spent, resumption, rejected) = match call.resume.take().map(|resumed| *resumed) {
        None => (0, Spent::default(), None, None),
        Some(resumed) => (
            resumed.rounds,
            resumed.spent,
            Some(resumed.resumption),
            resumed.rejected,
        ),
    };
    let call = &*call;
    let Some(access) = call.route.access.clone() else {
        return Err(CallError::internal("a denied call got past the policy"));
    };
    let (files, egress) = (&access.files, &access.egress);
    if let Some(error) = files.as_ref().err().or(egress.as_ref().err()) {
        return Err(error.clone());
    }
    record.enter(CallStage::Admit);
    let [tool, publisher] = &call.tool.gates;
    let gates = (host.admission).path(tool, publisher, &call.scope.principal);
    let slot = SlotCell::new(admit(call, &gates).await?);
    // The bundle may have been withdrawn while the call waited for a person or a slot.
    resolve::still_served(&call.tool, &call.route)?;

    let caller = call.scope.chain.caller();
    let clock = Clock::start(call.timeout, caller.map(|caller| caller.deadline))
        .after(Duration::from_millis(spent.milliseconds));
    record.metadata.fuel = spent.fuel;
    // The attempt that asked continues, and is not counted again.
    record.metadata.attempts = spent.attempts.saturating_sub(1);
    let invocation = &record.metadata.invocation;
    let context = context(
        call,
        covered,
        host,
        (&clock, &gates, &slot),
        access,
        invocation,
    );
    Ok(Run {
        context,
        clock,
        gates,
        slot,
        fuel: least(call.route.limits.fuel, caller.map(|caller| caller.fuel)),
        rounds,
        resumption,
        rejected,
    })
}

/// Waits for a slot. The wait of a called tool is its caller's time.
async fn admit(call: &RoutedCall, gates: &Path) -> Result<crate::admission::Slot, CallError> {
    let Some(caller) = call.scope.chain.caller() else {
        return gates.enter().await;
    };
    let clock = Clock::start(call.timeout, Some(caller.deadline));
    match deadline::before(caller.deadline, pin!(gates.enter())).await {
        Ok(slot) => slot,
        Err(deadline::Elapsed) => Err(clock.late()),
    }
}

/// What the call brings to each of its attempts.
fn context(
    call: &RoutedCall,
    covered: Vec<String>,
    host: &DispatchContext<'_>,
    (clock, gates, slot): (&Clock, &Path, &SlotCell),
    access: Arc<Access>,
    invocation: &str,
) -> Context {
    let (route, scope) = (&call.route, &call.scope);
    let caller = scope.chain.caller();
    let budget = match caller {
        Some(caller) => caller.budget.clone(),
        None => CallBudget::new(
            &route.limits,
            host.services.limits.nested_depth,
            scope.observer.clone(),
        ),
    };
    let secrets = CallSecrets::new(
        &access.grant,
        host.services.secrets.clone(),
        &scope.principal,
        budget.stores.clone(),
    );
    secrets.keep_out(&call.context_secrets);
    let violations = Violations::new(
        access.grant.on_violation(),
        &route.driver.reported,
        Some(secrets.clone()),
    );
    let whole_bodies = matches!(host.executor, Executor::Http);
    let limits = within(&route.limits, caller, whole_bodies);
    let network = access.call(&scope.principal, &limits, clock.deadline, &budget, &secrets);
    let tools = (!access.grant.tools().is_empty()).then(|| {
        let mut names = scope.chain.names();
        names.push(call.tool.major_id.clone());
        let mut bundles = scope.chain.bundles();
        bundles.extend([call.tool.bundle.clone(), route.driver.bundle.clone()]);
        Arc::new(tools::Ctx {
            host: host.host.clone(),
            budget: budget.clone(),
            access: access.clone(),
            invocation: invocation.to_owned(),
            names,
            bundles,
            covered,
            scope: scope.clone(),
            dev: call.tool.dev,
            deadline: clock.deadline,
            gates: gates.clone(),
            slot: slot.clone(),
        })
    });
    Context {
        limits,
        access,
        services: host.services.clone(),
        budget,
        violations,
        scope: scope.clone(),
        secrets,
        network,
        tools,
        reports: ReportCounts::default(),
    }
}

/// The limits of a call: those of its route, with no more memory than its caller has
/// left. A body that the host reads whole is in memory twice.
pub(crate) fn within(
    limits: &CallLimits,
    caller: Option<&Caller>,
    whole_bodies: bool,
) -> CallLimits {
    let mut limits = limits.clone();
    let left = caller.map(|caller| caller.memory_bytes);
    limits.memory_bytes = least(limits.memory_bytes, left);
    if whole_bodies {
        limits.http_body_bytes = limits.http_body_bytes.min(limits.memory_bytes / 2);
    }
    limits
}

fn least(own: u64, left: Option<u64>) -> u64 {
    left.map_or(own, |left| own.min(left))
}
