//! The parts of ptrace that these tests need.

#![expect(
    unsafe_code,
    reason = "no crate of the workspace traces processes safely; one that does (nix) turns on a \
              feature of libc, with which all dependencies are compiled twice"
)]

use std::io::{Error, Result};

pub(super) use libc::user_regs_struct as Registers;

/// A thread, by its number.
pub(super) type Thread = libc::pid_t;

/// Threads that a traced thread starts are traced as well.
pub(super) const THREADS_TOO: usize = libc::PTRACE_O_TRACECLONE as usize;
/// Distinguishes stops at calls from signals.
pub(super) const CALLS_APART: usize = libc::PTRACE_O_TRACESYSGOOD as usize;

/// What a traced thread did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// It started or ended a call.
    Call,
    /// It got a signal.
    Signal(i32),
    /// It started, or was interrupted.
    Stopped,
    /// It has ended.
    Ended,
}

fn ask(request: libc::c_uint, thread: Thread, data: usize) -> Result<()> {
    // SAFETY: the requests here take only numbers.
    answer(unsafe { libc::ptrace(request, thread, 0_usize, data) })
}

fn answer(result: libc::c_long) -> Result<()> {
    match result {
        -1 => Err(Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Starts to trace a thread, without stopping it.
pub(super) fn seize(thread: Thread, options: usize) -> Result<()> {
    ask(libc::PTRACE_SEIZE, thread, options)
}

/// Stops a thread.
pub(super) fn interrupt(thread: Thread) -> Result<()> {
    ask(libc::PTRACE_INTERRUPT, thread, 0)
}

/// Lets a thread execute one instruction.
pub(super) fn step(thread: Thread) -> Result<()> {
    ask(libc::PTRACE_SINGLESTEP, thread, 0)
}

/// Lets a thread run until it starts or ends a call. Delivers a signal to it, unless `signal` is 0.
pub(super) fn to_next_call(thread: Thread, signal: i32) -> Result<()> {
    ask(
        libc::PTRACE_SYSCALL,
        thread,
        signal.cast_unsigned() as usize,
    )
}

/// Stops tracing a thread.
pub(super) fn detach(thread: Thread) -> Result<()> {
    ask(libc::PTRACE_DETACH, thread, 0)
}

pub(super) fn registers(thread: Thread) -> Result<Registers> {
    // SAFETY: all fields may be zero, and the size is the kernel's.
    unsafe {
        let mut registers: Registers = std::mem::zeroed();
        let place = &raw mut registers;
        answer(libc::ptrace(libc::PTRACE_GETREGS, thread, 0_usize, place))?;
        Ok(registers)
    }
}

pub(super) fn set_registers(thread: Thread, registers: &Registers) -> Result<()> {
    let place = std::ptr::from_ref(registers);
    // SAFETY: the kernel reads memory that lives until the end.
    answer(unsafe { libc::ptrace(libc::PTRACE_SETREGS, thread, 0_usize, place) })
}

/// Returns the next event of `thread`, or of any traced thread if `thread` is -1; `None` without a
/// new event. Fails if the calling thread traces no such thread.
pub(super) fn event(thread: Thread) -> Result<Option<(Thread, Event)>> {
    let mut status = 0;
    let flags = libc::WNOHANG | libc::__WALL | libc::__WNOTHREAD;
    // SAFETY: the status lives until the end.
    let found = unsafe { libc::waitpid(thread, &raw mut status, flags) };
    match found {
        -1 => Err(Error::last_os_error()),
        0 => Ok(None),
        found if !libc::WIFSTOPPED(status) => Ok(Some((found, Event::Ended))),
        found if status >> 16 != 0 => Ok(Some((found, Event::Stopped))),
        found => Ok(Some((
            found,
            match libc::WSTOPSIG(status) {
                signal if signal == libc::SIGTRAP | 0x80 => Event::Call,
                signal => Event::Signal(signal),
            },
        ))),
    }
}
