//! Gathers what an approved call needs, and takes a slot for it.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use toolward_policy::Grant;

use super::DispatchContext;
use super::failure::Failure;
use crate::admission::{Path, Slot};
use crate::api::limits::CallLimits;
use crate::api::result::CallError;
use crate::api::violations::Violations;
use crate::elicitation::Spent;
use crate::executor::{Clock, Executor};
use crate::imports::{
    BucketLimits, CallBuckets, CallBudget, CallSecrets, HostImports, NestedCalls, Reports, SlotCell,
};
use crate::invocation::Resumption;
use crate::pipeline::call_record::CallRecord;
use crate::pipeline::resolve;
use crate::pipeline::validate::RoutedCall;
use crate::sandbox::access::Access;
use crate::sandbox::call_scope::CallScope;
use crate::sandbox::context::CallContext;
use crate::sandbox::deadline;

/// What a call has from its first slot on, whichever driver serves it.
pub(super) struct Admitted {
    pub(super) clock: Clock,
    pub(super) gates: Path,
    pub(super) slot: SlotCell,
    /// Fuel for all attempts together.
    pub(super) fuel: u64,
    /// The part of it that drivers consumed which failed.
    pub(super) earlier_fuel: u64,
    budget: Arc<CallBudget>,
    /// How often the call has asked.
    pub(super) rounds: u32,
    /// Set where it resumes after questions.
    pub(super) resumption: Option<Resumption>,
}

impl Admitted {
    /// The fuel up to which a driver with these limits may run, with what others consumed.
    pub(super) fn fuel_of(&self, limits: &CallLimits) -> u64 {
        self.fuel.min(self.earlier_fuel.saturating_add(limits.fuel))
    }
}

/// What the call's driver may use.
pub(super) fn access(call: &RoutedCall) -> Result<Arc<Access>, Failure> {
    let Some(access) = call.route.access.clone() else {
        return Err(CallError::internal("a denied call got past the policy").into());
    };
    let (files, egress) = (&access.files, &access.egress);
    let reaches = files.as_ref().err().or(egress.as_ref().err());
    match reaches.or(access.executor.as_ref().err()) {
        Some(error) => Err(Failure::before_attempts(error.clone())),
        None => Ok(access),
    }
}

/// Makes a driver ready. Its first call compiles it; while that is waited for, the call
/// holds no slot.
pub(super) async fn prepare(
    executor: &dyn Executor,
    scope: &CallScope,
    admitted: Option<&Admitted>,
) -> Result<(), Failure> {
    let preparing = executor.prepare(Some(scope));
    let prepared = match admitted {
        None => preparing.await,
        Some(admitted) => {
            if !executor.is_ready() {
                drop(admitted.slot.take());
            }
            match deadline::before(admitted.clock.deadline, preparing).await {
                Ok(prepared) => prepared,
                Err(deadline::Elapsed) => return Err(admitted.clock.late().into()),
            }
        }
    };
    prepared.map_err(Failure::before_attempts)
}

/// Gives the call a slot. Its clock starts with the first one.
pub(super) async fn admit<'a>(
    call: &mut RoutedCall,
    host: &DispatchContext<'_>,
    admitted: &'a mut Option<Admitted>,
    record: &mut CallRecord<'_>,
) -> Result<&'a mut Admitted, Failure> {
    let known = match admitted {
        None => admitted.insert(first(call, host, record).await?),
        Some(known) => {
            if record.must_start() {
                drop(known.slot.take());
            }
            let starting = pin!(record.start());
            match deadline::before(known.clock.deadline, starting).await {
                Ok(recorded) => recorded?,
                Err(deadline::Elapsed) => return Err(known.clock.late().into()),
            }
            if known.slot.is_empty() {
                let (memory, ends) = (call.route.limits.memory_bytes, known.clock.deadline);
                let entering = pin!(known.gates.enter(memory, Some(ends)));
                match deadline::before(ends, entering).await {
                    Ok(slot) => known.slot.put(slot?),
                    Err(deadline::Elapsed) => return Err(known.clock.late().into()),
                }
            }
            known
        }
    };
    // The bundle may have been withdrawn while the call waited for a person or a slot.
    resolve::still_served(&call.tool, &call.route)?;
    Ok(known)
}

async fn first(
    call: &mut RoutedCall,
    host: &DispatchContext<'_>,
    record: &mut CallRecord<'_>,
) -> Result<Admitted, CallError> {
    let (rounds, spent, resumption) = match call.resume.take().map(|resumed| *resumed) {
        None => (0, Spent::default(), None),
        Some(resumed) => (resumed.rounds, resumed.spent, Some(resumed.resumption)),
    };
    let call = &*call;
    let [tool, publisher] = &call.tool.gates;
    let gates = (host.admission).path(tool, publisher, &call.scope.principal);
    if record.must_start() {
        // What the queue has no room for leaves no row on the disk.
        let place = gates.reserve()?;
        resolve::still_served(&call.tool, &call.route)?;
        start(call, record).await?;
        drop(place);
    }
    // Taken last: while the recorder is slow, calls that need none go on.
    let slot = SlotCell::new(enter(call, &gates).await?);
    let caller = call.scope.chain.caller();
    let clock = Clock::start(call.timeout, caller.map(|caller| caller.deadline))
        .after(Duration::from_millis(spent.milliseconds));
    record.metadata.fuel = spent.fuel;
    // The attempt that asked continues, and is not counted again.
    record.resumes(spent.attempts.saturating_sub(1));
    let limits = &call.route.limits;
    let budget = match caller {
        Some(caller) => caller.budget.clone(),
        None => CallBudget::new(
            limits,
            host.services.limits.nested_depth,
            call.scope.observer.clone(),
            gates.clone(),
        ),
    };
    Ok(Admitted {
        clock,
        gates,
        slot,
        fuel: least(
            call.longest(|limits| limits.fuel),
            caller.map(|caller| caller.fuel),
        ),
        earlier_fuel: 0,
        budget,
        rounds,
        resumption,
    })
}

/// Records that a call that changes something is about to run. The wait of a called tool is its caller's time.
async fn start(call: &RoutedCall, record: &mut CallRecord<'_>) -> Result<(), CallError> {
    let Some(caller) = call.scope.chain.caller() else {
        return record.start().await;
    };
    let clock = Clock::start(call.timeout, Some(caller.deadline));
    match deadline::before(caller.deadline, pin!(record.start())).await {
        Ok(recorded) => recorded,
        Err(deadline::Elapsed) => Err(clock.late()),
    }
}

/// Waits for a slot. The wait of a called tool is its caller's time.
async fn enter(call: &RoutedCall, gates: &Path) -> Result<Slot, CallError> {
    let limit = call.route.limits.memory_bytes;
    let Some(caller) = call.scope.chain.caller() else {
        return gates.enter(limit, None).await;
    };
    let clock = Clock::start(call.timeout, Some(caller.deadline));
    let ends = caller.deadline;
    let entering = pin!(gates.enter(limit.min(caller.memory_bytes), Some(ends)));
    match deadline::before(ends, entering).await {
        Ok(slot) => slot,
        Err(deadline::Elapsed) => Err(clock.late()),
    }
}

/// What the attempts of the call's driver share, and what answers its requests.
pub(super) fn context(
    call: &RoutedCall,
    covered: &[String],
    host: &DispatchContext<'_>,
    (admitted, clock): (&Admitted, &Clock),
    access: Arc<Access>,
    record: &mut CallRecord<'_>,
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
    let violations = Violations::new(
        grant.on_violation(),
        &route.driver.reported,
        Some(secrets.clone()),
    );
    let left = caller.map(|caller| caller.memory_bytes);
    let limits = route
        .limits
        .within(left, route.driver.features().holds_bodies);
    let network = access.call(&scope.principal, &limits, clock.deadline, &budget, &secrets);
    let tools = (!grant.tools().is_empty()).then(|| {
        let mut names = scope.chain.names();
        names.push(call.tool.major_id.clone());
        let mut bundles = scope.chain.bundles();
        bundles.extend([call.tool.bundle.clone(), route.driver.bundle.to_string()]);
        NestedCalls {
            host: host.host.clone(),
            budget: budget.clone(),
            access: access.clone(),
            invocation: record.metadata.invocation.clone(),
            root: caller
                .map_or(&record.metadata.invocation, |caller| &caller.root)
                .clone(),
            names,
            bundles,
            covered: covered.to_vec(),
            scope: scope.clone(),
            dev: call.tool.dev,
            deadline: clock.deadline,
            gates: admitted.gates.clone(),
            slot: admitted.slot.clone(),
        }
    });
    let imports = Arc::new(HostImports {
        secrets,
        network,
        buckets: buckets(call, host, grant, &limits, clock, &budget, &violations),
        tools,
        reports: Reports::new(&limits),
        budget: budget.clone(),
        violations: violations.clone(),
        observer: scope.observer.clone(),
        events: record.progress(),
    });
    let context = CallContext {
        limits,
        access,
        budget,
        violations,
        scope: scope.clone(),
        imports: imports.clone(),
    };
    (context, imports)
}

fn buckets(
    call: &RoutedCall,
    host: &DispatchContext<'_>,
    grant: &Grant,
    limits: &CallLimits,
    clock: &Clock,
    budget: &CallBudget,
    violations: &Violations,
) -> CallBuckets {
    CallBuckets {
        grants: grant.buckets().to_vec(),
        store: host.services.buckets.clone(),
        // What can't be used is not copied.
        principal: match grant.buckets() {
            [] => String::new(),
            _ => call.scope.principal.clone(),
        },
        limits: BucketLimits {
            bucket: toolward_state::Limits {
                bucket_bytes: limits.bucket_bytes,
                bucket_keys: limits.bucket_keys,
                ..toolward_state::Limits::default()
            },
            ..BucketLimits::default()
        },
        counters: budget.buckets.clone(),
        deadline: clock.deadline,
        violations: violations.clone(),
    }
}

fn least(own: u64, left: Option<u64>) -> u64 {
    left.map_or(own, |left| own.min(left))
}
