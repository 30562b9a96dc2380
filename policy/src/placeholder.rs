//! What [`crate::suggest`] writes for the operator to replace.

/// Below it lie the directories that [`crate::suggest`] writes for the operator
/// to replace.
pub const PLACEHOLDER_DIRECTORY: &str = "/path/to/choose";

/// The host that [`crate::suggest`] writes for the operator to replace. It
/// never resolves (RFC 2606, section 2).
pub const PLACEHOLDER_HOST: &str = "host.invalid";

/// The environment variable that [`crate::suggest`] writes for the operator to
/// replace.
pub const PLACEHOLDER_VARIABLE: &str = "TOOLWARD_CHOOSE";
