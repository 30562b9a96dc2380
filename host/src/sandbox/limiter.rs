//! Counts memory and tables of one call over all instances together.
//! wasmtime's own `StoreLimits` counts each memory by itself.

use toolward_bundle::component::MAX_CORE_INSTANCES;
use wasmtime::ResourceLimiter;

use super::Exceeded;

/// Memories in one component.
pub(crate) const MEMORIES: u32 = 4;
/// Tables in one component.
pub(crate) const TABLES: u32 = 16;

/// The running totals of one store.
#[derive(Debug)]
pub(crate) struct Limiter {
    memory: Total,
    tables: Total,
}

#[derive(Debug)]
struct Total {
    limit: &'static str,
    used: u64,
    allowed: u64,
    refused: Option<u64>,
}

impl Total {
    /// Counts growth from `current` to `desired`, or refuses it.
    fn grow(&mut self, current: usize, desired: usize, own_maximum: Option<usize>) -> bool {
        if own_maximum.is_some_and(|maximum| desired > maximum) {
            // Beyond what the guest itself declares: its own affair.
            return false;
        }
        let next = self
            .used
            .saturating_add(desired.saturating_sub(current) as u64);
        if next > self.allowed {
            self.refused = Some(next);
            return false;
        }
        self.used = next;
        true
    }

    fn exceeded(&self) -> Option<Exceeded> {
        self.refused.map(|used| Exceeded {
            limit: self.limit,
            used,
            allowed: self.allowed,
        })
    }
}

impl Limiter {
    pub(crate) fn new(memory_bytes: u64, table_elements: u64) -> Self {
        let total = |limit, allowed| Total {
            limit,
            used: 0,
            allowed,
            refused: None,
        };
        Self {
            memory: total("memory", memory_bytes),
            tables: total("table_elements", table_elements),
        }
    }

    /// Bytes of all memories together. Memories never shrink, so this is also
    /// the peak.
    pub(crate) fn peak_memory(&self) -> u64 {
        self.memory.used
    }

    /// Bytes of memory that may still be taken.
    pub(crate) fn memory_left(&self) -> u64 {
        self.memory.allowed.saturating_sub(self.memory.used)
    }

    /// What was asked for beyond the limit, if anything was.
    pub(crate) fn exceeded(&self) -> Option<Exceeded> {
        self.memory.exceeded().or_else(|| self.tables.exceeded())
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.memory.grow(current, desired, maximum))
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.tables.grow(current, desired, maximum))
    }

    fn instances(&self) -> usize {
        MAX_CORE_INSTANCES as usize
    }

    fn tables(&self) -> usize {
        TABLES as usize
    }

    fn memories(&self) -> usize {
        MEMORIES as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_are_counted_together() {
        let mut limiter = Limiter::new(100, 10);
        assert!(limiter.memory_growing(0, 60, None).expect("no error"));
        assert!(!limiter.memory_growing(0, 60, None).expect("no error"));
        assert_eq!(limiter.peak_memory(), 60);
        let exceeded = limiter.exceeded().expect("recorded");
        assert_eq!(
            (exceeded.limit, exceeded.used, exceeded.allowed),
            ("memory", 120, 100)
        );
    }

    #[test]
    fn growth_beyond_the_guests_own_maximum_is_no_breach() {
        let mut limiter = Limiter::new(100, 10);
        assert!(!limiter.memory_growing(10, 20, Some(15)).expect("no error"));
        assert!(limiter.exceeded().is_none());
    }
}
