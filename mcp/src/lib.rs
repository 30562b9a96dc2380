//! Serves the tools of a Toolward host over the Model Context Protocol (MCP), on
//! stdio and on streamable HTTP, in both eras of the protocol.
//!
//! The crate is thin: what a tool may do is decided, and every call is carried
//! out, by [`toolward_host`]. Here requests are translated, people behind clients
//! are asked, and clients are kept apart from one another.

mod approval;
mod call;
mod catalogue;
mod client;
pub mod documents;
mod elicitation;
mod features;
pub mod http;
mod messages;
mod observe;
pub mod principal;
mod result;
mod sanitize;
mod search;
mod server;
pub mod stdio;
mod strict;

pub use approval::denials::{Denials, DenialsError};
pub use catalogue::NameProblem;
pub use documents::DocumentsError;
pub use features::{ServerFeatures, ServerFeaturesError};
pub use server::{Connection, Service};
