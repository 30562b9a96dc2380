//! The version of Agent Tool that a record follows.

use serde::{Serialize, Serializer};

/// Serialises as `"0.2.0"`: each record says which version it follows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SchemaVersion;

impl SchemaVersion {
    /// The version as text.
    pub const TEXT: &'static str = "0.2.0";
}

impl Serialize for SchemaVersion {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(Self::TEXT)
    }
}
