//! The sandbox: engine, linker, one fresh store per attempt, and the limits that are
//! enforced inside it. Decides nothing: earlier stages have settled what may run, and
//! with which grant.

pub(crate) mod access;
mod amplifier;
mod call_hook;
pub(crate) mod call_scope;
pub(crate) mod capture;
pub(crate) mod context;
pub(crate) mod deadline;
pub(crate) mod engine;
pub(crate) mod files;
pub(crate) mod held;
pub(crate) mod http;
pub(crate) mod keyvalue;
pub(crate) mod limiter;
#[cfg(test)]
mod memory_page;
pub(crate) mod run;
mod sockets;
mod state;
pub(crate) mod turns;
mod v0_1;
mod wit;
pub(crate) mod world;

pub(crate) use crate::exceeded::{DeadlinePassed, Exceeded};
pub(crate) use state::{AttemptLimits, State};

/// How linear memories are placed in the address space. Compiled code depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryLayout {
    /// A pool in which each memory has 4 GiB, so that code needs no bounds checks.
    Pooled,
    /// Each memory takes what it uses: for processes without address space for the pool,
    /// as under `ulimit -v` or on kernels with 39 bits. Code checks bounds.
    Compact,
}
