//! Looks at the clock whenever a guest calls the host.
//!
//! Fuel counts the guest's instructions and not the host's work: a guest that mainly calls the host
//! could spend minutes between two yields. So each host call checks the deadline, and makes the
//! guest yield if it has not yielded for a while.
//!
//! The hook makes a guest yield by setting its fuel. The guest's code mostly has its fuel count in
//! a register. Setting the fuel is safe only if the code has stored the count and loads it again:
//! when an imported function returns, and when the fuel has run out. The hook also runs when the
//! guest enters the engine through an instruction such as `memory.grow`. Then the count is in the
//! register, and fuel that the hook sets is added to it. But a guest must also yield if, for a
//! long time, it does nothing except enter the engine. The hook then takes away the fuel that the
//! guest has left until its next yield, so the added count gives the guest nothing.

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

/// A guest that only enters the engine yields after this time. This yield costs the guest fuel. So
/// the time is long enough that a guest which enters the engine now and then does not reach it.
const MAX_ENGINE_TURN: Duration = Duration::from_millis(50);

/// Fuel that is left to a guest that must yield: enough to return to its code, but less than a
/// microsecond of work.
const FUEL_TO_YIELD: u64 = 100;

/// The most bytes that one host call may copy out of the guest. This is more than a log message or
/// a stream write needs, and takes some microseconds to copy.
pub(super) const HOST_CALL_BYTES: usize = toolward_policy::own::HOST_CALL_BYTES as usize;

/// The state of one store's hook.
pub(crate) struct StoreHook {
    deadline: Instant,
    polls: Arc<Polls>,
    seen: u32,
    /// When the guest entered the host.
    now: Instant,
    /// The number of polls when the guest entered the host.
    polls_before: u32,
    turn: Instant,
    shortened: bool,
    /// Fuel that the guest has beyond its next yield.
    reserve: u64,
    /// Whether the guest may pass less than [`HOST_CALL_BYTES`] to the host in this call.
    scarce: bool,
    /// The depth of nested calls into the guest.
    depth: u32,
    /// `polls_before` and [`State::in_import`] of the imported function that calls into the guest.
    outer: (u32, bool),
    result: ResultSize,
}

impl StoreHook {
    /// A hook, created at `now`, that ends the guest at `deadline`. The guest has this much fuel,
    /// and its results may be as large as `result`.
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
                    // The result is copied out after this point.
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

    /// Ends a call if policy ends it at a violation or the host holds too much memory for it. If
    /// fuel may be set here, subtracts the fuel of nested calls, and makes the guest yield soon if
    /// it has not yielded for a while.
    fn returning_from_host(&mut self, store: &mut StoreContextMut<'_, State>) -> Result<()> {
        if let Some(violation) = store.data().violations.ends() {
            return Err(EndsCall(violation).into());
        }
        store.data_mut().settle_memory()?;
        let polls = self.polls.count();
        // A guest waits in the host only in an imported function, or when its fuel has run out. In
        // both cases, its fuel may be set.
        let has_waited = polls != self.polls_before;
        let in_import = store.data().in_import;
        if !has_waited && !in_import {
            if self.shortened {
                return Ok(());
            }
            if polls != self.seen {
                // The time for which the guest waited for its turn does not count.
                (self.seen, self.turn) = (polls, self.now);
            } else if self.now.duration_since(self.turn) >= MAX_ENGINE_TURN {
                self.shortened = true;
                store.fuel_async_yield_interval(Some(FUEL_TO_YIELD))?;
                store.set_fuel(self.reserve.saturating_add(FUEL_TO_YIELD))?;
            }
            return Ok(());
        }
        // Outside an imported function, the fuel had run out, and the engine gave the guest new
        // fuel until the next yield.
        let mut is_set = !in_import;
        let owed = std::mem::take(&mut store.data_mut().meter.owed);
        if owed > 0 {
            let left = store.get_fuel()?.saturating_sub(owed);
            store.set_fuel(left)?;
            is_set = true;
        }
        let now = match store.data().has_tools {
            // A nested call may have taken long without yielding.
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
