//! The claims of tools about themselves that the operator confirms. They change a
//! tool's annotations, never its grant or when a person is asked.

use serde::Serialize;

/// The claims of a contract that the operator stands for, though the tool changes
/// something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Confirmed {
    /// `idempotent: true` in the contract: calling twice has the effect of calling
    /// once.
    pub idempotent: bool,
    /// `metadata.mcp.annotations.destructiveHint: false`: it adds, and neither
    /// overwrites nor deletes.
    pub additive: bool,
}

impl Confirmed {
    /// What one of two rules confirms.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            idempotent: self.idempotent || other.idempotent,
            additive: self.additive || other.additive,
        }
    }

    /// What is confirmed of both of two drivers.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            idempotent: self.idempotent && other.idempotent,
            additive: self.additive && other.additive,
        }
    }
}
