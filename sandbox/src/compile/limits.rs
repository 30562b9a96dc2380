//! The errors and the cost limits of compiling. An error is either a verdict on the component,
//! which is final for its bytes, or a failure of this host, which may be temporary. Costs are
//! limited for one component and for several together.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use toolward_support::report::codes;

codes! {
    /// The kind of a [`CompileError`].
    #[derive(Serialize, Deserialize)]
    pub enum CompileReason {
        Invalid = "compile-invalid", "it is not a component that this engine accepts";
        TooLarge = "component-too-large", "it is larger than a component may be";
        Memory = "compile-memory", "compiling it took more memory than allowed";
        Processor = "compile-processor", "compiling it took more processor time than allowed";
        Time = "compile-time", "compiling it took longer than allowed";
        Output = "compile-output", "the compiled code is larger than allowed";
        Crashed = "compile-crashed", "the compiler crashed over it";
        Cancelled = "compile-cancelled", "the calls that waited for it were cancelled";
        Unavailable = "compiler-unavailable", "the compiler could not be run, or another process killed it";
        Changed = "component-changed", "its file was changed, or can't be read, since its bundle was verified";
    }
}

impl CompileReason {
    /// Whether the reason is a verdict on the component, so that a retry is pointless. Other
    /// reasons concern this machine at this time.
    pub fn is_verdict(self) -> bool {
        !matches!(self, Self::Cancelled | Self::Unavailable | Self::Changed)
    }
}

/// Why a component was not compiled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct CompileError {
    reason: CompileReason,
    #[serde(deserialize_with = "cut_message")]
    message: String,
}

/// The longest message, in bytes. A message is bounded because a compiler quotes its input.
const MAX_MESSAGE_BYTES: usize = 4096;

fn cut(mut message: String) -> String {
    message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
    message
}

/// Reads a message of another process, which may not have shortened it.
pub(super) fn cut_message<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map(cut)
}

impl CompileError {
    /// An error with this reason; `message` describes what happened, for people.
    pub fn new(reason: CompileReason, message: impl Into<String>) -> Self {
        let message = cut(message.into());
        Self { reason, message }
    }

    /// The error if the calls that waited for the component were cancelled.
    pub(super) fn cancelled() -> Self {
        Self::new(CompileReason::Cancelled, "compiling it was cancelled")
    }

    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(CompileReason::Unavailable, message)
    }

    /// The kind of the failure.
    pub fn reason(&self) -> CompileReason {
        self.reason
    }
}

/// The result of compiling.
pub(super) type Result<T, E = CompileError> = std::result::Result<T, E>;

/// Limits on the process that compiles one component. A component that needs more is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompileLimits {
    /// Processor time of all threads of the process together, in seconds. Default: 120, ten times
    /// what compiling a JavaScript engine of 12 MB takes.
    pub cpu_seconds: u64,
    /// Address space, in bytes. Default: 2 GiB. Less than 256 MiB is too little for the compiler
    /// itself.
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
    /// These limits as a budget for one component.
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
    /// Whether a component was refused only because of the budget, while these limits allow more.
    pub(super) fn are_above(self, budget: CompileCost, reason: CompileReason) -> bool {
        match reason {
            CompileReason::Processor => budget.processor.as_secs() < self.cpu_seconds,
            CompileReason::Output => budget.artifact_bytes < self.artifact_bytes,
            _ => false,
        }
    }
}

/// The cost of compiling, or a budget for it. One budget bounds all drivers of a bundle together,
/// while [`CompileLimits`](super::CompileLimits) bound each driver.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompileCost {
    /// Processor time of all threads together. As a limit, it is rounded down to whole seconds.
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
    /// It takes more than the rest of the budget, and is compiled at its first use.
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
    fn a_message_of_another_process_is_cut() {
        let sent = CompileError {
            reason: CompileReason::Crashed,
            message: "ü".repeat(MAX_MESSAGE_BYTES),
        };
        let sent = serde_json::to_vec(&sent).unwrap();
        let read: CompileError = serde_json::from_slice(&sent).unwrap();
        assert_eq!(read.reason(), CompileReason::Crashed);
        assert_eq!(read.message.len(), MAX_MESSAGE_BYTES);
    }

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
