//! Looks at the clock whenever a guest calls the host.
//!
//! Fuel counts the guest's instructions and not the host's work: a guest that does
//! little but call the host would spend minutes between two yields. So each host call
//! checks the deadline, and makes a guest yield that has not for a while.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::{CallHook, Result, StoreContextMut};

use super::engine::YIELD_INTERVAL;
use super::limiter::ResultSize;
use super::turns::Polls;
use super::{DeadlinePassed, State};
use crate::api::violations::EndsCall;

/// A guest that keeps calling the host yields after this time.
const MAX_HOST_CALL_TURN: Duration = Duration::from_millis(2);

/// Fuel left to a guest that is made to yield: enough to return to its code, and less
/// than a microsecond of work.
const FUEL_TO_YIELD: u64 = 100;

/// Bytes that one host call may copy out of the guest. More than a log message
/// or a write to a stream needs, and copied in some microseconds.
pub(super) const HOST_CALL_BYTES: usize = toolward_policy::own::HOST_CALL_BYTES as usize;

/// The state of one store's hook.
pub(crate) struct StoreHook {
    deadline: Instant,
    polls: Arc<Polls>,
    seen: u32,
    turn: Instant,
    shortened: bool,
    /// Whether the guest may pass less than [`HOST_CALL_BYTES`] in this call.
    scarce: bool,
    /// The depth of nested calls into the guest.
    depth: u32,
    result: ResultSize,
}

impl StoreHook {
    /// A hook, made `now`, that ends the guest at `deadline` and lets its results be
    /// as large as `result`.
    pub(super) fn new(
        deadline: Instant,
        polls: Arc<Polls>,
        now: Instant,
        result: ResultSize,
    ) -> Self {
        Self {
            deadline,
            polls,
            seen: 0,
            turn: now,
            shortened: false,
            scarce: false,
            depth: 0,
            result,
        }
    }

    /// Called at each crossing between host and guest.
    pub(crate) fn pass(
        &mut self,
        mut store: StoreContextMut<'_, State>,
        crossing: CallHook,
    ) -> Result<()> {
        match crossing {
            CallHook::CallingHost => self.calling_host(&mut store),
            CallHook::ReturningFromHost => settle(&mut store),
            CallHook::CallingWasm => {
                self.depth = self.depth.saturating_add(1);
                store.set_hostcall_fuel(HOST_CALL_BYTES);
                Ok(())
            }
            CallHook::ReturningFromWasm => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    // From here on the result is copied out.
                    let bytes = store.data().limiter.result(self.result);
                    store.set_hostcall_fuel(bytes);
                }
                Ok(())
            }
        }
    }

    fn calling_host(&mut self, store: &mut StoreContextMut<'_, State>) -> Result<()> {
        let now = Instant::now();
        if now >= self.deadline {
            return Err(DeadlinePassed.into());
        }
        if store.data().tools.is_some() {
            store.data_mut().meter.fuel = store.get_fuel()?;
        }
        let bytes = store.data().limiter.lifted(HOST_CALL_BYTES);
        if self.scarce || bytes < HOST_CALL_BYTES {
            self.scarce = bytes < HOST_CALL_BYTES;
            store.set_hostcall_fuel(bytes);
        }
        let polls = self.polls.count();
        if polls != self.seen {
            (self.seen, self.turn) = (polls, now);
            if self.shortened {
                self.shortened = false;
                store.fuel_async_yield_interval(Some(YIELD_INTERVAL))?;
            }
        } else if !self.shortened && now.duration_since(self.turn) >= MAX_HOST_CALL_TURN {
            self.shortened = true;
            store.fuel_async_yield_interval(Some(FUEL_TO_YIELD))?;
        }
        Ok(())
    }
}

/// Ends a call if policy ends it at a violation or the host holds too much for it.
/// Subtracts the fuel of nested calls from the caller's.
fn settle(store: &mut StoreContextMut<'_, State>) -> Result<()> {
    if let Some(violation) = store.data().violations.ends() {
        return Err(EndsCall(violation).into());
    }
    store.data_mut().settle_memory()?;
    let owed = std::mem::take(&mut store.data_mut().meter.owed);
    if owed > 0 {
        let left = store.get_fuel()?.saturating_sub(owed);
        store.set_fuel(left)?;
    }
    Ok(())
}
