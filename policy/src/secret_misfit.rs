//! A secret that a driver can never send.

use std::fmt;

use serde::Serialize;

/// A `[[secret]]` that the driver's request can never use: each call would be refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct SecretMisfit {
    /// What the `[[secret]]` allows.
    pub allowed: String,
    /// What the driver's request does.
    pub sent: String,
}

impl fmt::Display for SecretMisfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "its [[secret]] allows {}, and the driver's request sends it {}",
            self.allowed, self.sent
        )
    }
}
