//! Principals: on whose behalf calls are made.

/// The principal of calls that name none: the user who runs the host's process.
pub const LOCAL: &str = "local";
