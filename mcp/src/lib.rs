//! Serves the tools of a Toolward host over the Model Context Protocol (MCP), on
//! stdio and on streamable HTTP, in both eras of the protocol.
//!
//! The crate is thin: what a tool may do is decided, and every call is carried
//! out, by [`toolward_host`]. Here requests are translated, people behind clients
//! are asked, and clients are kept apart from one another.

mod asking;
mod call;
mod catalogue;
pub mod documents;
pub mod http;
mod messages;
mod observe;
pub mod principal;
mod result;
mod search;
mod server;
mod shown;
pub mod stdio;
mod strict;
mod surface;

pub use asking::{Denials, DenialsError};
pub use catalogue::NameProblem;
pub use documents::DocumentsError;
pub use server::{Connection, Service};
pub use surface::{Surface, SurfaceError};
