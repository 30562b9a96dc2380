//! Tracing, as far as it is needed here.

#![expect(
    unsafe_code,
    reason = "no crate of the workspace traces processes safely; one that does (nix) turns on a \
              feature of libc, with which all dependencies are compiled twice"
)]

use std::io::{Error, Result};

pub(super) use libc::user_regs_struct as Registers;

/// A thread, by its number.
pub(super) type Thread = libc::pid_t;

/// A thread that starts a thread has it traced as well.
pub(super) const THREADS_TOO: usize = libc::PTRACE_O_TRACECLONE as usize;
/// Stops at calls are told from signals.
pub(super) const CALLS_APART: usize = libc::PTRACE_O_TRACESYSGOOD as usize;

/// What a thread that is waited for did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// It began or ended a call.
    Call,
    /// A signal came.
    Signal(i32),
    /// It began, or was interrupted.
    Stopped,
    /// It has ended.
    Ended,
}

fn ask(request: libc::c_uint, thread: Thread, data: usize) -> Result<()> {
    // SAFETY: the requests that are made here take numbers.
    answer(unsafe { libc::ptrace(request, thread, 0_usize, data) })
}

fn answer(result: libc::c_long) -> Result<()> {
    match result {
        -1 => Err(Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Begins to trace a thread, without stopping it.
pub(super) fn seize(thread: Thread, options: usize) -> Result<()> {
    ask(libc::PTRACE_SEIZE, thread, options)
}

/// Stops a thread.
pub(super) fn interrupt(thread: Thread) -> Result<()> {
    ask(libc::PTRACE_INTERRUPT, thread, 0)
}

/// Lets a thread do one instruction.
pub(super) fn step(thread: Thread) -> Result<()> {
    ask(libc::PTRACE_SINGLESTEP, thread, 0)
}

/// Lets a thread go on until it begins or ends a call, and gives it a signal, or none (0).
pub(super) fn to_next_call(thread: Thread, signal: i32) -> Result<()> {
    ask(
        libc::PTRACE_SYSCALL,
        thread,
        signal.cast_unsigned() as usize,
    )
}

/// Traces a thread no longer.
pub(super) fn detach(thread: Thread) -> Result<()> {
    ask(libc::PTRACE_DETACH, thread, 0)
}

pub(super) fn registers(thread: Thread) -> Result<Registers> {
    // SAFETY: all of it may be nought, and it is as long as the kernel expects.
    unsafe {
        let mut registers: Registers = std::mem::zeroed();
        let place = &raw mut registers;
        answer(libc::ptrace(libc::PTRACE_GETREGS, thread, 0_usize, place))?;
        Ok(registers)
    }
}

pub(super) fn set_registers(thread: Thread, registers: &Registers) -> Result<()> {
    let place = std::ptr::from_ref(registers);
    // SAFETY: the kernel reads what lives until the end.
    answer(unsafe { libc::ptrace(libc::PTRACE_SETREGS, thread, 0_usize, place) })
}

/// What one of the threads did that this thread traces, if any did anything: that one, or
/// any (-1). An error where there is none.
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
