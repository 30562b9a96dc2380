//! The sandbox of Toolward: engine, linker, one fresh store per attempt, the limits that are
//! enforced inside it, and compiling. The sandbox decides nothing: the host decides what may run
//! with which grant, and answers a driver's requests ([`imports::Imports`]).

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

#[expect(missing_docs, reason = "the world has the meanings")]
mod bindings;
mod call_hook;
mod capture;
pub mod compile;
pub mod deadline;
pub mod engine;
pub mod error;
pub mod exceeded;
pub mod files;
mod foreign;
mod held;
mod http;
pub mod imports;
pub mod invocation;
mod limiter;
pub mod limits;
#[cfg(test)]
mod memory_page;
pub mod result;
pub mod run;
mod sockets;
mod state;
pub mod turns;
mod v0_1;
pub mod violations;
mod wit;
