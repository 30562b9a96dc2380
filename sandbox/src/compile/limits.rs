//! What compiling costs, and what it may cost, for one component and for several together.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::CompileReason;

/// Limits on the process that compiles one component. A component that needs
/// more is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompileLimits {
    /// Processor time of all its threads together, in seconds. Default: 120,
    /// ten times what a JavaScript engine of 12 MB takes.
    pub cpu_seconds: u64,
    /// Address space, in bytes. Default: 2 GiB. Less than 256 MiB is too little
    /// for the compiler itself.
    pub memory_bytes: u64,
    /// Wall-clock time. Default: 300 s, since the machine may be busy.
    pub wall: Duration,
    /// Bytes of compiled code. Default: 256 MiB.
    pub artifact_bytes: u64,
}

impl Default for CompileLimits {
    fn default() -> Self {
        Self {
            cpu_seconds: 120,
            memory_bytes: 2 << 30,
            wall: Duration::from_secs(300),
            artifact_bytes: 256 << 20,
        }
    }
}

impl CompileLimits {
    /// The most that one component may cost.
    pub(super) fn most(self) -> CompileCost {
        CompileCost {
            processor: Duration::from_secs(self.cpu_seconds),
            artifact_bytes: self.artifact_bytes,
        }
    }

    /// These limits, lowered to a budget.
    pub(super) fn within(self, budget: CompileCost) -> Self {
        Self {
            cpu_seconds: self.cpu_seconds.min(budget.processor.as_secs()),
            artifact_bytes: self.artifact_bytes.min(budget.artifact_bytes),
            ..self
        }
    }
    /// Whether a component was refused for this budget, and not for these limits, which leave
    /// it more.
    pub(super) fn are_above(self, budget: CompileCost, reason: CompileReason) -> bool {
        match reason {
            CompileReason::Processor => budget.processor.as_secs() < self.cpu_seconds,
            CompileReason::Output => budget.artifact_bytes < self.artifact_bytes,
            _ => false,
        }
    }
}

/// What compiling takes; as a budget, what it may take. One budget bounds all drivers of
/// a bundle, where [`CompileLimits`](super::CompileLimits) bound each of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompileCost {
    /// Processor time of all threads together. A compiler takes whole seconds of a budget
    /// as its limit.
    pub processor: Duration,
    /// Bytes of compiled code that the cache keeps.
    pub artifact_bytes: u64,
}

/// Whether a component was compiled ahead of its first use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Ahead {
    /// It was compiled, now or before.
    Compiled,
    /// It takes more than was left, and is compiled at its first use.
    OverBudget,
}

impl CompileCost {
    pub(super) fn spend(&mut self, spent: Self) {
        self.processor = self.processor.saturating_sub(spent.processor);
        self.artifact_bytes = self.artifact_bytes.saturating_sub(spent.artifact_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_budget_below_the_limits_is_what_refuses() {
        let limits = CompileLimits::default();
        let whole = limits.most();
        let budget = CompileCost {
            processor: Duration::from_secs(limits.cpu_seconds - 1),
            artifact_bytes: limits.artifact_bytes - 1,
        };
        for reason in [CompileReason::Processor, CompileReason::Output] {
            assert!(limits.are_above(budget, reason));
            assert!(!limits.are_above(whole, reason));
        }
        assert!(!limits.are_above(budget, CompileReason::Memory));
    }
}
