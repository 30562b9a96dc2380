//! What compiling costs, and what it may cost several components together.

use std::time::Duration;

/// What compiling takes; as a budget, what it may take. One budget bounds all drivers of
/// a bundle, where [`CompileLimits`](super::CompileLimits) bound each of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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

/// Bytes of a cost between host and broker.
pub(super) const COST_BYTES: usize = 16;

impl CompileCost {
    pub(super) fn to_bytes(self) -> [u8; COST_BYTES] {
        let mut bytes = [0; COST_BYTES];
        let both = [
            microseconds(self.processor).to_le_bytes(),
            self.artifact_bytes.to_le_bytes(),
        ];
        bytes.copy_from_slice(both.as_flattened());
        bytes
    }

    pub(super) fn from_bytes(bytes: [u8; COST_BYTES]) -> Self {
        let (both, _) = bytes.as_chunks();
        let number = |at: usize| both.get(at).copied().map_or(0, u64::from_le_bytes);
        Self {
            processor: Duration::from_micros(number(0)),
            artifact_bytes: number(1),
        }
    }

    pub(super) fn spend(&mut self, spent: Self) {
        self.processor = self.processor.saturating_sub(spent.processor);
        self.artifact_bytes = self.artifact_bytes.saturating_sub(spent.artifact_bytes);
    }
}

pub(super) fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_reads_back_as_it_was_written() {
        let cost = CompileCost {
            processor: Duration::from_micros(u64::MAX - 1),
            artifact_bytes: 7 << 40,
        };
        assert_eq!(CompileCost::from_bytes(cost.to_bytes()), cost);
    }
}
