//! What an embedder gives to a host and gets from it, re-exported from the crate's
//! root. The pipeline and the sandbox speak in these types, too.

pub(crate) mod approval;
pub(crate) mod event;
pub(crate) mod facts;
pub(crate) mod observer;
pub(crate) mod request;
pub(crate) mod result;

/// The principal of calls that name none: the user who runs the host's process.
pub const LOCAL: &str = "local";
