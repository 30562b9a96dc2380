//! Serves the tools of a Toolward host over the Model Context Protocol (MCP), on stdio and on
//! streamable HTTP, in both eras of the protocol: with sessions (revisions before 2026-07-28), and
//! stateless.
//!
//! The crate is thin: [`toolward_host`] decides what a tool may do and runs every call.
//! This crate translates requests, asks the people behind clients, and isolates clients
//! from one another.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod approval;
mod call;
mod catalogue;
mod client;
pub mod documents;
mod elicitation;
mod features;
pub mod http;
mod messages;
mod methods;
mod observe;
mod open_requests;
pub mod principal;
mod result;
mod revision;
mod sanitize;
mod search;
mod server;
pub mod stdio;
mod strict;

pub use catalogue::NameProblem;
pub use documents::DocumentsError;
pub use features::ServerFeatures;
pub use server::{Connection, Service};

/// The codes of errors for messages that are not read, since they exceed a limit.
pub const MESSAGE_CODES: &[toolward_support::report::Code] = messages::Flaw::CODES;
