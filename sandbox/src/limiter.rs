//! Counts memory and tables of one call: the linear memories of all instances, together with the
//! memory that the host holds for the call ([`super::held`]). wasmtime's own `StoreLimits` counts
//! each memory separately.

use std::sync::{Arc, Weak};

use toolward_bundle::component::MAX_CORE_INSTANCES;
use toolward_policy::LimitName;
use wasmtime::ResourceLimiter;

use crate::exceeded::Exceeded;
use crate::held::Held;
use crate::limits::MemoryBudget;

/// How linear memories are placed in the address space. Compiled code depends on the layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MemoryLayout {
    /// A pool in which each memory has 4 GiB, so that code needs no bounds checks.
    Pooled,
    /// Each memory takes only the space that it uses. For processes without address space for the
    /// pool, for example under `ulimit -v` or on kernels with 39-bit addresses. Code checks bounds.
    Compact,
}

/// The most memories in one component.
pub(crate) const MEMORIES: u32 = 4;
/// Bytes of an element of a table.
pub(crate) const ELEMENT: u64 = 8;
/// The most tables in one component.
pub(crate) const TABLES: u32 = 16;

/// Bytes of the host's memory for each unit that wasmtime charges for lifting a value (copying it
/// out of the guest). The worst case in the linked interfaces is 2.3: each element of a list of
/// `tuple<string, list<u8>>` costs 48 units and one for each byte, and takes 48 bytes and two
/// allocations.
pub(crate) const LIFTED: u64 = 3;

/// A memory of at most this many bytes is not counted twice while it moves to grow, since both
/// copies exist only for milliseconds.
const UNCOUNTED_COPY_BYTES: u64 = 32 << 20;

/// Bytes that a guest may always pass to the host, so that it can log and return an error when
/// memory is short.
const MIN_HANDOVER_BYTES: usize = 64 << 10;

/// How large a result may be, in the units that wasmtime charges for lifting it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResultSize {
    /// The most units.
    pub(crate) most: usize,
    /// Bytes of the host's memory for each unit.
    weight: u64,
}

impl ResultSize {
    /// Bytes beyond the output limit that a result may copy out of the guest: the text of an error,
    /// and the needs of the canonical ABI.
    const SLACK: u64 = 256 << 10;

    /// Units for each byte of the output limit, enough for a value in each byte. In JSON, most
    /// values have two or more bytes, including a comma.
    const VALUE: u64 = size_of::<wasmtime::component::Val>() as u64;

    /// The size of a result that is mostly text. Its values are counted when they are created.
    pub(crate) fn of_text(output_bytes: u64) -> Self {
        Self::new(output_bytes, 1)
    }

    /// The size of a result that is lifted as values, which take `weight` bytes per unit.
    pub(crate) fn of_values(output_bytes: u64, weight: u64) -> Self {
        Self::new(output_bytes.saturating_mul(Self::VALUE), weight)
    }

    fn new(most: u64, weight: u64) -> Self {
        let most = usize::try_from(most.saturating_add(Self::SLACK));
        Self {
            most: most.unwrap_or(usize::MAX),
            weight,
        }
    }
}

/// The running totals of one store.
pub(crate) struct Limiter {
    memory: Memory,
    /// Elements of all tables together.
    tables: u64,
    tables_allowed: u64,
    tables_refused: Option<Exceeded>,
    pub(crate) held: Held,
}

/// Bytes of memory of the guest, and of the host for the guest.
#[derive(Debug, Default)]
struct Memory {
    /// The bytes of all linear memories and tables together. They never shrink.
    linear: u64,
    peak: u64,
    allowed: u64,
    refused: Option<Exceeded>,
    /// This call's lease from the memory of all calls; `leased` is its size. The call's slot owns
    /// the lease, since a store that panicked may never be dropped.
    lease: Option<Weak<dyn MemoryBudget>>,
    leased: u64,
    /// Whether a memory that grows is copied to another place.
    moves: bool,
    /// Whether the lease still includes a copy that has ended.
    copied: bool,
}

impl Memory {
    /// Leases the memory for growth to `used` bytes, of which `current` bytes may be copied.
    fn lease_growth(&mut self, used: u64, current: u64) -> Result<(), Exceeded> {
        self.end_copy(used);
        if !self.moves || current <= UNCOUNTED_COPY_BYTES {
            return self.lease(used);
        }
        self.copied = true;
        self.lease(used.saturating_add(current))
    }

    /// Gives back the memory that was leased for a copy. The copy has ended, since the guest
    /// continued.
    fn end_copy(&mut self, used: u64) {
        if std::mem::take(&mut self.copied)
            && let Some(lease) = self.lease.as_ref().and_then(Weak::upgrade)
        {
            self.leased = lease.shrink(used);
        }
    }

    /// Leases `used` bytes from the memory of all calls.
    fn lease(&mut self, used: u64) -> Result<(), Exceeded> {
        if used <= self.leased {
            return Ok(());
        }
        if let Some(lease) = &self.lease {
            let covered = lease.upgrade().map(|lease| lease.cover(used, self.allowed));
            // Without a slot, the call gets no more memory.
            let none = Exceeded::new(LimitName::MemoryTotal, used, self.leased);
            let leased = covered.unwrap_or(Err(none));
            self.leased = leased.inspect_err(|exceeded| self.refused = Some(*exceeded))?;
        }
        Ok(())
    }

    /// Counts growth of the guest's own memory to `used` bytes.
    fn grow(&mut self, growth: u64, used: u64) {
        self.linear = self.linear.saturating_add(growth);
        self.peak = self.peak.max(used);
    }

    /// Whether `used` bytes are allowed. If not, they count as refused.
    fn allows(&mut self, used: u64) -> bool {
        if used > self.allowed {
            self.refused = Some(Exceeded::new(LimitName::Memory, used, self.allowed));
        }
        used <= self.allowed
    }
}

impl Limiter {
    pub(crate) fn new(memory_bytes: u64, table_elements: u64) -> Self {
        Self {
            memory: Memory {
                allowed: memory_bytes,
                ..Memory::default()
            },
            tables: 0,
            tables_allowed: table_elements,
            tables_refused: None,
            held: Held::default(),
        }
    }

    /// Also takes the memory from the lease of the call. `layout` is how the memories are placed in
    /// the address space.
    pub(crate) fn within(
        mut self,
        lease: Option<&Arc<dyn MemoryBudget>>,
        layout: MemoryLayout,
    ) -> Self {
        self.memory.lease = lease.map(Arc::downgrade);
        self.memory.moves = layout == MemoryLayout::Compact;
        self
    }

    /// The peak of the guest's memories and the host's memory for the call, in bytes.
    pub(crate) fn peak_memory(&self) -> u64 {
        self.memory.peak.max(self.used())
    }

    /// The bytes of memory that the call may still take.
    pub(crate) fn memory_left(&self) -> u64 {
        self.memory.allowed.saturating_sub(self.used())
    }

    /// The bytes that the guest may pass at once. As values, they take [`LIFTED`] times as much of
    /// the host's memory.
    pub(crate) fn lifted(&self, most: usize) -> usize {
        let room = usize::try_from(self.memory_left() / LIFTED).unwrap_or(usize::MAX);
        room.clamp(MIN_HANDOVER_BYTES.min(most), most)
    }

    /// The most units that lifting a result may be charged, within the memory that is left.
    pub(crate) fn result(&self, size: ResultSize) -> usize {
        let room = self.memory_left() / size.weight.max(1);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        room.clamp(MIN_HANDOVER_BYTES.min(size.most), size.most)
    }

    /// The error for bytes that did not fit, if `room` was less than `most` for lack of memory.
    pub(crate) fn no_room(&self, room: usize, most: usize) -> Option<Exceeded> {
        (room < most).then(|| Exceeded::over(LimitName::Memory, self.memory.allowed).by_host())
    }

    /// Compares the memory that is held now with the limit.
    pub(crate) fn settle(&mut self) -> Result<(), Exceeded> {
        let used = self.used();
        self.memory.peak = self.memory.peak.max(used);
        self.memory.end_copy(used);
        if used <= self.memory.allowed {
            return self.memory.lease(used);
        }
        let exceeded = Exceeded::new(LimitName::Memory, used, self.memory.allowed).by_host();
        self.memory.refused = Some(exceeded);
        Err(exceeded)
    }

    /// Counts the peak of a nested call on top of this call's memory.
    pub(crate) fn called(&mut self, peak: u64) {
        let used = self.used().saturating_add(peak);
        self.memory.peak = self.memory.peak.max(used);
    }

    /// The limit on memory or tables that was exceeded, if any.
    pub(crate) fn exceeded(&self) -> Option<Exceeded> {
        self.memory.refused.or(self.tables_refused)
    }

    fn used(&self) -> u64 {
        self.memory.linear.saturating_add(self.held.total())
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            // The guest's own declared maximum was exceeded, not a limit of the host.
            return Ok(false);
        }
        let growth = desired.saturating_sub(current) as u64;
        let used = self.used().saturating_add(growth);
        if !self.memory.allows(used) {
            return Ok(false);
        }
        self.memory.lease_growth(used, current as u64)?;
        self.memory.grow(growth, used);
        Ok(true)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let elements = desired.saturating_sub(current) as u64;
        let growth = elements.saturating_mul(ELEMENT);
        let used = self.used().saturating_add(growth);
        if !self.memory.allows(used) {
            return Ok(false);
        }
        let next = self.tables.saturating_add(elements);
        if next > self.tables_allowed {
            let refused = Exceeded::new(LimitName::TableElements, next, self.tables_allowed);
            self.tables_refused = Some(refused);
            return Ok(false);
        }
        self.tables = next;
        self.memory.lease(used)?;
        self.memory.grow(growth, used);
        Ok(true)
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
    use std::task::{Context, Poll};

    use super::*;

    /// Covers whole steps of 8 MiB, up to 300 MiB.
    struct EightMib;

    impl MemoryBudget for EightMib {
        fn cover(&self, used: u64, _limit: u64) -> Result<u64, Exceeded> {
            match used <= 300 << 20 {
                true => Ok(used.next_multiple_of(8 << 20)),
                false => Err(Exceeded::new(LimitName::MemoryTotal, used, 300 << 20)),
            }
        }

        fn shrink(&self, used: u64) -> u64 {
            used
        }

        fn poll_ended(&self, _context: &mut Context<'_>) -> Poll<Exceeded> {
            Poll::Pending
        }
    }

    #[test]
    fn memories_are_counted_together() {
        let mut limiter = Limiter::new(100, 10);
        assert!(limiter.memory_growing(0, 60, None).expect("no error"));
        assert!(!limiter.memory_growing(0, 60, None).expect("no error"));
        assert_eq!(limiter.peak_memory(), 60);
        let exceeded = limiter.exceeded().expect("recorded");
        assert_eq!(
            (exceeded.limit, exceeded.used, exceeded.allowed),
            (LimitName::Memory, 120, 100)
        );
    }

    #[test]
    fn growth_beyond_the_guests_own_maximum_is_no_breach() {
        let mut limiter = Limiter::new(100, 10);
        assert!(!limiter.memory_growing(10, 20, Some(15)).expect("no error"));
        assert!(limiter.exceeded().is_none());
    }

    #[test]
    fn what_the_host_holds_and_the_guests_memory_are_one_sum() {
        let mut limiter = Limiter::new(100, 10);
        assert!(limiter.memory_growing(0, 60, None).expect("no error"));
        limiter.held.keep(30);
        limiter.settle().expect("within the limit");
        assert_eq!(limiter.memory_left(), 10);
        assert!(!limiter.memory_growing(60, 75, None).expect("no error"));
        limiter.held.add(0, 20);
        let exceeded = limiter.settle().expect_err("beyond the limit");
        assert_eq!(
            (exceeded.limit, exceeded.used, exceeded.allowed),
            (LimitName::Memory, 110, 100)
        );
        limiter.held.free(0);
        limiter.settle().expect("given back");
        assert_eq!(limiter.peak_memory(), 110);
    }

    #[test]
    fn a_memory_that_moves_counts_twice_while_it_is_copied() {
        const MIB: u64 = 1 << 20;
        let lease: Arc<dyn MemoryBudget> = Arc::new(EightMib);
        let mut limiter = Limiter::new(256 * MIB, 10).within(Some(&lease), MemoryLayout::Compact);
        let mut grow = |from: u64, to: u64| {
            let grown = limiter.memory_growing((from * MIB) as usize, (to * MIB) as usize, None);
            let covered = limiter.memory.leased / MIB;
            (grown.unwrap_or(false), covered)
        };
        assert_eq!(grow(0, 64), (true, 64));
        assert_eq!(grow(64, 65), (true, 136));
        assert_eq!(grow(65, 120), (true, 192));
        assert!(!grow(120, 200).0, "both copies are more than its share");
    }

    #[test]
    fn a_called_tools_memory_comes_on_top_of_its_callers() {
        let mut limiter = Limiter::new(100, 10);
        limiter.held.keep(30);
        limiter.called(50);
        assert_eq!((limiter.peak_memory(), limiter.memory_left()), (80, 70));
    }
}
