//! Why a component was not compiled: a verdict on the component, which is final for
//! these bytes, or a failure of this host, which may be temporary.

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
    }
}

impl CompileReason {
    /// Whether it is a verdict on the component, so that a retry is pointless. Other
    /// reasons are about this machine, at this time.
    pub fn is_verdict(self) -> bool {
        !matches!(self, Self::Cancelled | Self::Unavailable)
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

/// The longest message, in bytes: a compiler quotes its input.
const MAX_MESSAGE_BYTES: usize = 4096;

fn cut(mut message: String) -> String {
    message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
    message
}

/// Reads a message of another process, which may not have cut it.
pub(super) fn cut_message<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map(cut)
}

impl CompileError {
    /// An error with this reason; `message` describes what happened, for people.
    pub fn new(reason: CompileReason, message: impl Into<String>) -> Self {
        let message = cut(message.into());
        Self { reason, message }
    }

    /// The calls that waited for it were cancelled.
    pub(super) fn cancelled() -> Self {
        Self::new(CompileReason::Cancelled, "compiling it was cancelled")
    }

    pub(super) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(CompileReason::Unavailable, message)
    }

    /// What kind of failure it is.
    pub fn reason(&self) -> CompileReason {
        self.reason
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
}
