//! The sandbox: engine, linker, one fresh store per attempt, and the limits that are
//! enforced inside it. Decides nothing: earlier stages have settled what may run, and
//! with which grant.

pub(crate) mod access;
mod amplifier;
pub(crate) mod call_chain;
mod call_hook;
pub(crate) mod call_scope;
pub(crate) mod capture;
pub(crate) mod context;
pub(crate) mod deadline;
pub(crate) mod engine;
pub(crate) mod engine_hash;
pub(crate) mod files;
pub(crate) mod held;
pub(crate) mod http;
mod insecure_seed;
pub(crate) mod keyvalue;
pub(crate) mod limiter;
pub(crate) mod memory_layout;
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
