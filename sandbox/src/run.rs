//! One attempt: creates a fresh store, sets its limits, instantiates the driver, calls it and reads
//! the results. Returns the outcome as a plain value, and the instance, which the caller drops.

use std::collections::{BTreeMap, HashMap};
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Instant;

use futures_util::FutureExt;
use toolward_bundle::component::{Function, HANDLER};
use toolward_contract::driver::World as Target;
use toolward_policy::{LimitName, own};
use wasmtime::component::{Component, InstancePre, ResourceTableError};
use wasmtime::{Engine, Store, Trap, WasmBacktrace};

use crate::bindings::DriverPre;
use crate::call_hook::{HOST_CALL_BYTES, StoreHook};
use crate::capture::Capture;
use crate::compile::{CompileError, CompileReason};
use crate::deadline;
use crate::engine::{Ready, YIELD_INTERVAL};
use crate::exceeded::{DeadlinePassed, Exceeded};
use crate::foreign;
use crate::invocation::{DriverEnd, Invocation};
use crate::limiter::{MemoryLayout, ResultSize};
use crate::limits::{AttemptLimits, CallLimits, MemoryBudget};
use crate::result::Captured;
pub use crate::state::CallGrant;
use crate::state::{State, World, WorldCall};
use crate::turns::{Polls, Spender, Turn};
use crate::violations::{EndsCall, Violation};
use crate::wit::Exported;

/// A driver that is ready to be instantiated. Shared by all its calls.
pub struct Prepared {
    /// The worlds in which it is called.
    worlds: HashMap<Target, Box<dyn World>>,
    engine: Engine,
    /// The bytes of the host's memory that the instances of core modules take.
    instance_bytes: u64,
    layout: MemoryLayout,
}

impl Prepared {
    /// Links a component, and finds its exports for each world in which it is called. `functions`
    /// are the functions that are called in the world `wit`; `instance_bytes` is the memory of the
    /// instances of its core modules.
    ///
    /// # Errors
    /// The imports that the host does not have, or the exports that the component lacks.
    pub fn link<'a>(
        ready: &Ready,
        component: &Component,
        targets: impl IntoIterator<Item = &'a Target>,
        functions: &BTreeMap<String, Arc<Function>>,
        instance_bytes: u64,
    ) -> Result<Self, CompileError> {
        let invalid = |text: String| CompileError::new(CompileReason::Invalid, text);
        let linked = ready.linker.instantiate_pre(component).map_err(|error| {
            invalid(format!(
                "it asks for what this host does not have: {error:#}"
            ))
        })?;
        let mut worlds = HashMap::new();
        for target in targets {
            if worlds.contains_key(target) {
                continue;
            }
            let world = bind(linked.clone(), target, functions).map_err(invalid)?;
            worlds.insert(target.clone(), world);
        }
        Ok(Self {
            worlds,
            engine: ready.engine.clone(),
            instance_bytes,
            layout: ready.profile.layout(),
        })
    }

    /// A call of the driver in one of its worlds. `None` if the driver was not linked for this
    /// world.
    pub fn call<'a>(
        &'a self,
        target: &Target,
        invocation: &'a Invocation,
    ) -> Option<PreparedCall<'a>> {
        Some(PreparedCall {
            world: &**self.worlds.get(target)?,
            driver: self,
            invocation,
        })
    }
}

/// Finds a component's exports for a world. The error names the missing export.
fn bind(
    component: InstancePre<State>,
    target: &Target,
    functions: &BTreeMap<String, Arc<Function>>,
) -> Result<Box<dyn World>, String> {
    let missing = |export: &str| format!("it does not export `{export}`");
    Ok(match target {
        Target::Wit(call) => {
            let function = functions.get(&call.export).cloned();
            let exported =
                function.and_then(|function| Exported::new(component, function, call.clone()));
            Box::new(exported.ok_or_else(|| missing(&call.export))?)
        }
        Target::Foreign(world) => {
            let tool = foreign::Tool::new(component, world);
            Box::new(tool.ok_or_else(|| missing(world.export()))?)
        }
        _ => {
            let driver = DriverPre::new(component);
            Box::new(driver.map_err(|error| format!("{}: {error:#}", missing(HANDLER)))?)
        }
    })
}

/// A call of a driver that is ready to be instantiated.
pub struct PreparedCall<'a> {
    world: &'a dyn World,
    driver: &'a Prepared,
    invocation: &'a Invocation,
}

/// The resources that one attempt used and its captured output, however it ended.
#[derive(Debug, Default)]
pub struct Usage {
    /// The consumed fuel. Too low after a hardware trap, and zero after a panic: don't bill by it.
    pub fuel: u64,
    /// The peak memory, in bytes.
    pub peak_memory: u64,
    /// The memory or table space that the guest was refused. A guest may handle the refusal and
    /// continue.
    pub refused: Option<Exceeded>,
    /// The logs and captured output of the driver.
    pub captured: Captured,
}

/// The store of an attempt that has ended, with everything created in it.
pub struct Instance {
    _store: Store<State>,
}

/// How an attempt ended.
#[derive(Debug)]
pub enum AttemptOutcome {
    /// The driver returned.
    Returned(DriverEnd),
    /// The deadline passed.
    Deadline,
    /// The fuel is spent.
    Fuel {
        /// The allowed units of all attempts together.
        allowed: u64,
    },
    /// Another limit was exceeded.
    Exceeded(Exceeded),
    /// Policy ends the call at its first violation.
    Violation(Violation),
    /// The guest trapped; the text describes how.
    Trapped(String),
    /// The engine panicked; the text is the message of the panic.
    Panicked(String),
}

/// Runs one attempt until `deadline` at the latest, within its `own` limits and the limits of the
/// call. Takes turns with other calls. Without a spender, a nested call runs in its caller's turns.
/// Also returns the instance, unless the engine panicked.
pub async fn attempt(
    call: &PreparedCall<'_>,
    grant: &CallGrant<'_>,
    own: AttemptLimits,
    (spender, memory): (Option<Spender<'_>>, Option<Arc<dyn MemoryBudget>>),
    deadline: Instant,
) -> (AttemptOutcome, Usage, Option<Instance>) {
    let limits = grant.limits;
    let result_size = call.world.result_size(limits);
    let state = State::new(grant, &own, memory.as_ref(), call.driver.layout);
    let mut store = Store::new(&call.driver.engine, state);
    let (stdout, stderr) = (store.data().stdout.clone(), store.data().stderr.clone());

    let polls = Arc::new(Polls::default());
    let now = Instant::now();
    let hook = StoreHook::new(deadline, polls.clone(), now, own.fuel, result_size);
    let armed = arm(&mut store, limits, own.fuel, hook);
    let result = match armed {
        Err(error) => Ok(Ok(Err(error))),
        Ok(()) => {
            let mut guest = pin!(async {
                // The instances are counted before they are created.
                let limiter = &mut store.data_mut().limiter;
                limiter.held.keep(call.driver.instance_bytes);
                limiter.settle()?;
                let (world, invocation) = (call.world, call.invocation);
                let running = world.execute(&mut store, WorldCall { invocation, limits });
                running.await
            });
            let counted = poll_fn(|context| {
                polls.counted();
                let polled = guest.as_mut().poll(context);
                // A call that waits or computes ends here if other calls need its memory.
                if polled.is_pending()
                    && let Some(memory) = &memory
                    && let Poll::Ready(exceeded) = memory.poll_ended(context)
                {
                    return Poll::Ready(Err(exceeded.into()));
                }
                polled
            });
            let run = async {
                let Some(spender) = spender else {
                    return deadline::before(deadline, counted).await;
                };
                let turn = Turn::new(spender);
                deadline::in_turns(deadline, turn, now, polls.clone(), counted).await
            };
            AssertUnwindSafe(run).catch_unwind().await
        }
    };

    let outcome = match result {
        Err(panic) => {
            // The store may be inconsistent. Read only the captured text, which is outside of the
            // store, and expect that dropping the store panics, too.
            let usage = Usage {
                captured: captured(&stdout, &stderr),
                ..Usage::default()
            };
            let _ = std::panic::catch_unwind(AssertUnwindSafe(|| drop(store)));
            let outcome = AttemptOutcome::Panicked(panic_text(panic.as_ref()));
            return (outcome, usage, None);
        }
        Ok(Err(deadline::Elapsed)) => AttemptOutcome::Deadline,
        // A stream or another task may have been refused without the guest noticing it.
        Ok(Ok(Ok(returned))) => match (grant.violations.ends(), store.data().files.exceeded()) {
            (Some(violation), _) => AttemptOutcome::Violation(violation),
            (None, Some(exceeded)) => AttemptOutcome::Exceeded(exceeded),
            (None, None) => AttemptOutcome::Returned(returned),
        },
        Ok(Ok(Err(error))) => classify(&error, &store, (limits, result_size), own.fuel_total),
    };
    let usage = Usage {
        // The fuel of a nested call is still owed if the guest ended before it got the answer.
        fuel: (own.fuel.saturating_sub(store.get_fuel().unwrap_or(0)))
            .saturating_add(store.data().meter.owed),
        peak_memory: store.data().limiter.peak_memory(),
        refused: store.data().limiter.exceeded(),
        captured: Captured {
            logs: std::mem::take(&mut store.data_mut().logs),
            ..captured(&stdout, &stderr)
        },
    };
    (outcome, usage, Some(Instance { _store: store }))
}

/// Sets every limit that the store itself enforces.
fn arm(
    store: &mut Store<State>,
    limits: &CallLimits,
    fuel: u64,
    mut hook: StoreHook,
) -> wasmtime::Result<()> {
    store.limiter(|state| &mut state.limiter);
    store.call_hook(move |store, crossing| hook.pass(store, crossing));
    store.set_max_component_handles(usize::try_from(limits.resources).unwrap_or(usize::MAX));
    store.set_fuel(fuel)?;
    store.fuel_async_yield_interval(Some(YIELD_INTERVAL))?;
    Ok(())
}

fn captured(stdout: &Capture, stderr: &Capture) -> Captured {
    Captured {
        stdout: stdout.take(),
        stderr: stderr.take(),
        ..Captured::default()
    }
}

/// Classifies an error of the guest by the limit that caused it, if any.
fn classify(
    error: &wasmtime::Error,
    store: &Store<State>,
    (limits, result_size): (&CallLimits, ResultSize),
    fuel: u64,
) -> AttemptOutcome {
    if error.is::<DeadlinePassed>() {
        return AttemptOutcome::Deadline;
    }
    if let Some(exceeded) = error.downcast_ref::<Exceeded>() {
        return AttemptOutcome::Exceeded(*exceeded);
    }
    if let Some(ends) = error.downcast_ref::<EndsCall>() {
        return AttemptOutcome::Violation(ends.0.clone());
    }
    // After a refusal of memory or table space, a guest may abort in any way. The refusal counts as
    // the cause.
    if let Some(exceeded) = store.data().limiter.exceeded() {
        return AttemptOutcome::Exceeded(exceeded);
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => return AttemptOutcome::Fuel { allowed: fuel },
        Some(Trap::StackOverflow) => {
            let allowed = own::STACK_BYTES;
            return AttemptOutcome::Exceeded(Exceeded::new(LimitName::Stack, allowed, allowed));
        }
        _ => {}
    }
    // These error types of wasmtime are private; only their texts are public.
    let text = error.root_cause().to_string();
    if text.contains("fuel allocated for hostcalls has been exhausted") {
        // An error inside the guest has a backtrace of the guest: a host call passed too much.
        // Without a backtrace, the result is too large.
        let limiter = &store.data().limiter;
        let (over, no_room) = match error.is::<WasmBacktrace>() {
            true => (
                Exceeded::over(LimitName::HostCall, HOST_CALL_BYTES as u64),
                limiter.no_room(limiter.lifted(HOST_CALL_BYTES), HOST_CALL_BYTES),
            ),
            false => (
                Exceeded::over(LimitName::Output, limits.output_bytes),
                limiter.no_room(limiter.result(result_size), result_size.most),
            ),
        };
        return AttemptOutcome::Exceeded(no_room.unwrap_or(over));
    }
    let is_full = matches!(error.downcast_ref(), Some(ResourceTableError::Full));
    if is_full || text.contains("store handle limit exceeded") {
        return AttemptOutcome::Exceeded(Exceeded::over(LimitName::Resources, limits.resources));
    }
    AttemptOutcome::Trapped(text)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}
