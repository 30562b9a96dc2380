//! Makes the driver of an approved call ready, takes a slot for the call, and starts its attempts.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::attempts::{Admitted, Attempts};
use super::{DispatchContext, DriverFailure};
use crate::admission::Path;
use crate::api::facts::CallStage;
use crate::api::result::CallError;
use crate::call_scope::CallScope;
use crate::elicitation::{Resumed, Spent};
use crate::executor::{Clock, Executor, RecordedInput};
use crate::imports::{CallBudget, HostImports, SlotCell};
use crate::named::CallName;
use crate::pipeline::call_record::CallRecord;
use crate::pipeline::resolve;
use crate::pipeline::validate::RoutedCall;
use toolward_sandbox::deadline;

/// Makes the call's driver ready, takes a slot for the call, and starts the attempts. The imports
/// of this driver take over the secrets and violations of the previous driver's imports, since
/// these secrets, too, must be kept out of the result.
pub(super) async fn begin<'a>(
    (call, covered): (&mut RoutedCall, &[String]),
    host: &DispatchContext<'_>,
    (admitted, imports): (&'a mut Option<Admitted>, &mut Option<Arc<HostImports>>),
    record: &mut CallRecord<'_>,
) -> Result<(Attempts, &'a mut Admitted), DriverFailure> {
    let executor = call.route.executor.clone();
    let executor =
        executor.ok_or_else(|| CallError::internal("no executor runs drivers of this kind"))?;
    let access = call.route.access.clone();
    let access = access.ok_or_else(|| CallError::internal("a denied call got past the policy"))?;
    let admitted = match executor.features().replays {
        true => {
            record.enter(CallStage::Replay);
            admitted.insert(unadmitted(call, host, gates(call, host)))
        }
        false => {
            record.enter(CallStage::Prepare);
            let unusable = [access.files.as_ref().err(), access.egress.as_ref().err()];
            let mut unusable = unusable.into_iter().chain([access.executor.as_ref().err()]);
            if let Some(error) = unusable.find_map(|error| error) {
                return Err(DriverFailure::before_attempts(error.clone()));
            }
            prepare(&*executor, &call.scope, admitted.as_ref()).await?;
            record.enter(CallStage::Admit);
            let admitted = admit(call, host, admitted, record).await?;
            record.enter(CallStage::Run);
            admitted
        }
    };
    // A replay runs nothing, so it needs no idempotency key.
    let name = call.extensions.get::<Arc<CallName>>();
    let idempotency_key = match name.filter(|_| !executor.features().replays) {
        None => None,
        Some(name) => {
            let clock = admitted.clock.within(call.route.limits.timeout);
            // Boxed, so that the futures of calls without an id do not contain it.
            let (named, driver) = (&host.shared.named, &call.route.id);
            let key = Box::pin(named.idempotency_key(name, driver, clock.deadline));
            Some(key.await?)
        }
    };
    let events = record.progress();
    let (mut attempts, own) = Attempts::new(
        (&mut *call, covered),
        host,
        (executor, access),
        admitted,
        (&record.facts, events),
        idempotency_key,
    );
    if let Some(before) = imports.as_deref() {
        own.follow(before);
    }
    if let Some(recorded) = attempts.context.extensions.get::<RecordedInput>()
        && let Some(redactor) = &recorded.redactor
    {
        // The current secrets are removed from a recorded result, after it was checked.
        own.secrets.keep_out_earlier(redactor);
    }
    *imports = Some(own);
    if let Err(error) = (attempts.executor).begin(&attempts.job, &mut attempts.context) {
        drop(attempts.end(call));
        return Err(error.into());
    }
    Ok((attempts, admitted))
}

/// Makes a driver ready. The first call compiles the driver. A call holds no slot while it waits
/// for that.
async fn prepare(
    executor: &dyn Executor,
    scope: &CallScope,
    admitted: Option<&Admitted>,
) -> Result<(), DriverFailure> {
    let preparing = executor.prepare(Some(scope));
    let prepared = match admitted {
        None => preparing.await,
        Some(admitted) => {
            if !executor.is_ready() {
                drop(admitted.slot.take());
            }
            admitted.clock.bound(preparing).await?
        }
    };
    prepared.map_err(DriverFailure::before_attempts)
}

/// Gives the call a slot. The call's clock starts with its first slot.
async fn admit<'a>(
    call: &mut RoutedCall,
    host: &DispatchContext<'_>,
    admitted: &'a mut Option<Admitted>,
    record: &mut CallRecord<'_>,
) -> Result<&'a mut Admitted, DriverFailure> {
    let known = match admitted {
        None => {
            let first = admitted.insert(first(call, host, record).await?);
            record.resumes(first.spent);
            first
        }
        Some(known) => {
            if record.must_start() {
                drop(known.slot.take());
            }
            known.clock.bound(pin!(record.start())).await??;
            if known.slot.is_empty() {
                let (memory, ends) = (call.route.limits.memory_bytes, known.clock.deadline);
                let entering = pin!(known.gates.enter(memory, Some(ends)));
                known.slot.put(known.clock.bound(entering).await??);
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
    let resumed = call.extensions.take::<Resumed>();
    let call = &*call;
    let gates = gates(call, host);
    if record.must_start() {
        // A call that the queue has no room for is refused before its row is written.
        let place = gates.reserve()?;
        resolve::still_served(&call.tool, &call.route)?;
        waited(call, pin!(record.start())).await?;
        drop(place);
    }
    // The slot is taken last, so that a slow recorder does not delay calls that need no row.
    let caller = call.scope.chain.caller();
    let left = caller.map_or(u64::MAX, |caller| caller.memory_bytes);
    let memory = call.route.limits.memory_bytes.min(left);
    let entering = gates.enter(memory, caller.map(|caller| caller.deadline));
    let slot = SlotCell::new(waited(call, pin!(entering)).await?);
    let mut admitted = unadmitted(call, host, gates);
    admitted.slot = slot;
    if let Some(resumed) = resumed {
        let spent = Duration::from_millis(resumed.spent.milliseconds);
        admitted.clock = admitted.clock.after(spent);
        admitted.rounds = resumed.rounds;
        admitted.spent = resumed.spent;
        admitted.resumption = Some(resumed.resumption);
    }
    Ok(admitted)
}

/// The gates that the call passes.
fn gates(call: &RoutedCall, host: &DispatchContext<'_>) -> Path {
    let [tool, publisher] = &call.tool.gates;
    (host.admission).path(tool, publisher, &call.scope.principal)
}

/// The state of a call that has no slot. Its clock starts now. A call that is replayed never gets a
/// slot.
fn unadmitted(call: &RoutedCall, host: &DispatchContext<'_>, gates: Path) -> Admitted {
    let caller = call.scope.chain.caller();
    let clock = clock_of(call);
    let (limits, fuel) = (&call.route.limits, call.longest(|limits| limits.fuel));
    let budget = match caller {
        Some(caller) => caller.budget.clone(),
        None => CallBudget::new(
            limits,
            host.services.limits.nested_depth,
            call.scope.observer.clone(),
            gates.clone(),
        ),
    };
    Admitted {
        clock,
        gates,
        slot: SlotCell::default(),
        fuel: caller.map_or(u64::MAX, |caller| caller.fuel).min(fuel),
        earlier_fuel: 0,
        budget,
        rounds: 0,
        resumption: None,
        spent: Spent::default(),
        remains: Mutex::default(),
    }
}

/// The clock of a call that starts now, within its caller's time.
fn clock_of(call: &RoutedCall) -> Clock {
    let caller = call.scope.chain.caller();
    Clock::start(call.timeout, caller.map(|caller| caller.deadline))
}

/// Waits for work that comes before the call's clock starts. The wait of a nested call counts as
/// its caller's time.
async fn waited<T>(
    call: &RoutedCall,
    work: impl Future<Output = Result<T, CallError>> + Unpin,
) -> Result<T, CallError> {
    let Some(caller) = call.scope.chain.caller() else {
        return work.await;
    };
    let clock = clock_of(call);
    let done = deadline::before(caller.deadline, work).await;
    done.unwrap_or_else(|deadline::Elapsed| Err(clock.late()))
}
