//! Looks at the clock whenever a guest calls the host.
//!
//! Fuel counts the guest's instructions and not the host's work: a guest that does
//! little but call the host would spend minutes between two yields. So each host call
//! checks the deadline, and makes a guest yield that has not for a while.
//!
//! Setting a guest's fuel makes it yield. This is safe only where its code has stored its
//! count and loads it again: when an imported function returns, and when it has run out.
//! The hook also runs inside instructions such as `memory.grow`. The count is in a
//! register then, and the guest would get both that and what is set. A guest that enters
//! the engine for long and does nothing else is made to yield all the same, and loses its
//! fuel up to the next yield, so that there is nothing to get.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::{CallHook, Result, StoreContextMut};

use crate::engine::YIELD_INTERVAL;
use crate::exceeded::DeadlinePassed;
use crate::limiter::ResultSize;
use crate::state::State;
use crate::turns::Polls;
use crate::violations::EndsCall;

/// A guest that keeps calling the host yields after this time.
const MAX_HOST_CALL_TURN: Duration = Duration::from_millis(2);

/// A guest that only enters the engine yields after this time. It loses fuel by that, so the
/// time is longer than the ones that do so now and then take.
const MAX_ENGINE_TURN: Duration = Duration::from_millis(50);

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
    /// When the guest entered the host.
    now: Instant,
    /// The polls at that time.
    polls_before: u32,
    turn: Instant,
    shortened: bool,
    /// Fuel that the guest has beyond its next yield.
    reserve: u64,
    /// Whether the guest may pass less than [`HOST_CALL_BYTES`] in this call.
    scarce: bool,
    /// The depth of nested calls into the guest.
    depth: u32,
    /// `polls_before` and [`State::in_import`] of the imported function that calls into the guest.
    outer: (u32, bool),
    result: ResultSize,
}

impl StoreHook {
    /// A hook, made `now`, that ends the guest at `deadline`, where it has this much fuel,
    /// and lets its results be as large as `result`.
    pub(super) fn new(
        deadline: Instant,
        polls: Arc<Polls>,
        now: Instant,
        fuel: u64,
        result: ResultSize,
    ) -> Self {
        Self {
            deadline,
            polls,
            seen: 0,
            polls_before: 0,
            now,
            turn: now,
            shortened: false,
            reserve: fuel.saturating_sub(YIELD_INTERVAL),
            scarce: false,
            depth: 0,
            outer: (0, false),
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
            CallHook::ReturningFromHost => self.returning_from_host(&mut store),
            CallHook::CallingWasm => {
                self.depth = self.depth.saturating_add(1);
                self.outer = (self.polls_before, store.data().in_import);
                store.set_hostcall_fuel(HOST_CALL_BYTES);
                Ok(())
            }
            CallHook::ReturningFromWasm => {
                self.depth = self.depth.saturating_sub(1);
                (self.polls_before, store.data_mut().in_import) = self.outer;
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
        if store.data().has_tools {
            store.data_mut().meter.fuel = store.get_fuel()?;
        }
        let bytes = store.data().limiter.lifted(HOST_CALL_BYTES);
        if self.scarce || bytes < HOST_CALL_BYTES {
            self.scarce = bytes < HOST_CALL_BYTES;
            store.set_hostcall_fuel(bytes);
        }
        store.data_mut().in_import = false;
        self.polls_before = self.polls.count();
        self.now = now;
        Ok(())
    }

    /// Ends a call if policy ends it at a violation or the host holds too much for it. Where fuel may be set, subtracts
    /// that of nested calls, and has a guest yield soon that has not for a while.
    fn returning_from_host(&mut self, store: &mut StoreContextMut<'_, State>) -> Result<()> {
        if let Some(violation) = store.data().violations.ends() {
            return Err(EndsCall(violation).into());
        }
        store.data_mut().settle_memory()?;
        let polls = self.polls.count();
        // Nothing waits in the host but imported functions and a guest that is out of fuel.
        let has_waited = polls != self.polls_before;
        let in_import = store.data().in_import;
        if !has_waited && !in_import {
            if self.shortened {
                return Ok(());
            }
            if polls != self.seen {
                // It may have waited long for its first turn.
                (self.seen, self.turn) = (polls, self.now);
            } else if self.now.duration_since(self.turn) >= MAX_ENGINE_TURN {
                self.shortened = true;
                store.fuel_async_yield_interval(Some(FUEL_TO_YIELD))?;
                store.set_fuel(self.reserve.saturating_add(FUEL_TO_YIELD))?;
            }
            return Ok(());
        }
        // A guest that ran out was given its fuel until the next yield.
        let mut is_set = !in_import;
        let owed = std::mem::take(&mut store.data_mut().meter.owed);
        if owed > 0 {
            let left = store.get_fuel()?.saturating_sub(owed);
            store.set_fuel(left)?;
            is_set = true;
        }
        let now = match store.data().has_tools {
            // A call of a tool may have taken long without a pause.
            true => Instant::now(),
            false => self.now,
        };
        if polls != self.seen {
            (self.seen, self.turn) = (polls, Instant::now());
            if self.shortened {
                self.shortened = false;
                store.fuel_async_yield_interval(Some(YIELD_INTERVAL))?;
                is_set = true;
            }
        } else if !self.shortened && now.duration_since(self.turn) >= MAX_HOST_CALL_TURN {
            self.shortened = true;
            store.fuel_async_yield_interval(Some(FUEL_TO_YIELD))?;
            is_set = true;
        }
        if is_set {
            let until_yield = match self.shortened {
                true => FUEL_TO_YIELD,
                false => YIELD_INTERVAL,
            };
            self.reserve = store.get_fuel()?.saturating_sub(until_yield);
        }
        Ok(())
    }
}
