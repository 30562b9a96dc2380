//! Admission control: bounds running and queued calls, and rejects the rest with a
//! retry-after. Each tool, publisher and principal has a share of the slots; a call
//! that waits for its share holds no slot.

mod files;
mod gate;
mod memory;
mod sum;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedSemaphorePermit;
use toolward_policy::LimitName;

use crate::api::principal::LOCAL;
use crate::api::result::CallError;
use toolward_policy::Limits;

use files::CallFiles;
pub(crate) use files::OpenFile;
pub(crate) use gate::{Gate, Place};
use memory::CallMemory;
pub(crate) use memory::MemoryLease;
pub use memory::ReadProgress;

/// Principals are spread over this many locks, so that calls of different principals
/// rarely contend.
const SHARDS: usize = 16;

/// The gates that one call passes, from the most specific (its tool) to the one that
/// all calls share: a call that waits at a gate holds permits only of gates that fewer
/// calls need.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    tool: Arc<Gate>,
    publisher: Arc<Gate>,
    principal: Arc<Gate>,
    host: Arc<Gate>,
    memory: Arc<CallMemory>,
    files: Arc<CallFiles>,
}

/// What one running call holds: a permit of each gate, and memory.
#[derive(Debug)]
pub(crate) struct Slot {
    _permits: [OwnedSemaphorePermit; 4],
    memory: Arc<MemoryLease>,
}

impl Slot {
    /// The memory of the call.
    pub(crate) fn memory(&self) -> &Arc<MemoryLease> {
        &self.memory
    }
}

/// A call that gave up its slot while it waits for another tool.
#[derive(Debug)]
pub(crate) struct Parked {
    _permits: [OwnedSemaphorePermit; 2],
    memory: Arc<MemoryLease>,
}

impl Path {
    /// Acquires a slot for a call that may take this much memory, waiting if the queue has
    /// room.
    pub(crate) async fn enter(&self, memory_bytes: u64) -> Result<Slot, CallError> {
        let permits = self.pass(true).await?;
        let memory = self
            .memory
            .reserve(&self.principal, &self.publisher, memory_bytes);
        Ok(Slot {
            _permits: permits,
            memory: memory.await?,
        })
    }

    /// A place in the principal's queue for a call that is going to [enter](Self::enter), so that one beyond the queue
    /// is refused before anything is done for it.
    pub(crate) fn reserve(&self) -> Result<Place<'_>, CallError> {
        self.principal.reserve()
    }

    /// Acquires a slot again for a call that parked. Not bounded by the queue: it has
    /// waited already.
    pub(crate) async fn resume(&self, parked: Parked) -> Result<Slot, CallError> {
        let permits = self.pass(false).await?;
        Ok(Slot {
            _permits: permits,
            memory: parked.memory,
        })
    }

    async fn pass(&self, bounded: bool) -> Result<[OwnedSemaphorePermit; 4], CallError> {
        Ok([
            self.principal.enter(bounded).await?,
            self.tool.enter(bounded).await?,
            self.publisher.enter(bounded).await?,
            self.host.enter(bounded).await?,
        ])
    }

    /// Releases the slot while a call waits for the tool that it calls. Its instance
    /// stays in memory, so parked calls are bounded, too, with a share for each
    /// principal.
    pub(crate) fn park(&self, slot: Slot) -> Result<Parked, Box<(Slot, CallError)>> {
        let own = self.principal.park();
        let both = own.and_then(|own| Ok([own, self.host.park()?]));
        match both {
            Ok(permits) => Ok(Parked {
                _permits: permits,
                memory: slot.memory,
            }),
            Err(error) => Err(Box::new((slot, error))),
        }
    }
}

/// The gates of a host and of the hosts that replace it: their calls count together.
#[derive(Debug)]
pub(crate) struct Admission {
    limits: Limits,
    host: Arc<Gate>,
    memory: Arc<CallMemory>,
    files: Arc<CallFiles>,
    /// The gate of [`LOCAL`], the only principal of most hosts.
    local: Arc<Gate>,
    principals: [Mutex<Gates>; SHARDS],
    /// By publisher and `id@major`.
    tools: Mutex<Gates>,
    publishers: Mutex<Gates>,
}

impl Admission {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            local: for_a_principal(limits),
            limits: limits.clone(),
            host: Gate::new(LimitName::Concurrency, limits.concurrency, limits.queue),
            memory: CallMemory::new(limits),
            files: Arc::new(CallFiles::new(limits)),
            principals: Default::default(),
            tools: Mutex::default(),
            publishers: Mutex::default(),
        }
    }

    /// Whether these limits allow the same numbers of running and waiting calls.
    pub(crate) fn is_by(&self, limits: &Limits) -> bool {
        let counts = |limits: &Limits| {
            [
                limits.concurrency,
                limits.concurrency_per_tool,
                limits.concurrency_per_publisher,
                limits.concurrency_per_principal,
                limits.queue,
            ]
        };
        let sums = |limits: &Limits| [limits.memory_total, limits.open_files_total];
        counts(&self.limits) == counts(limits) && sums(&self.limits) == sums(limits)
    }

    /// The gate for the calls of one tool.
    pub(crate) fn tool(&self, publisher: &str, tool: &str) -> Arc<Gate> {
        let limits = &self.limits;
        // No `id@major` has a space in it.
        lock(&self.tools).get(&format!("{tool} {publisher}"), || {
            Gate::new(
                LimitName::ConcurrencyPerTool,
                limits.concurrency_per_tool,
                limits.queue,
            )
        })
    }

    /// The gate for the calls of all tools of one publisher.
    pub(crate) fn publisher(&self, publisher: &str) -> Arc<Gate> {
        let limits = &self.limits;
        lock(&self.publishers).get(publisher, || {
            Gate::new(
                LimitName::ConcurrencyPerPublisher,
                limits.concurrency_per_publisher,
                limits.queue,
            )
        })
    }

    /// The gates that a call passes.
    pub(crate) fn path(&self, tool: &Arc<Gate>, publisher: &Arc<Gate>, principal: &str) -> Path {
        Path {
            tool: tool.clone(),
            publisher: publisher.clone(),
            principal: self.principal(principal),
            host: self.host.clone(),
            memory: self.memory.clone(),
            files: self.files.clone(),
        }
    }

    /// Counts a result that its client has not read: see [`CallMemory::unread`].
    pub(crate) fn unread(
        &self,
        principal: &str,
        bytes: u64,
        progress: &ReadProgress,
        end: Box<dyn Fn() + Send + Sync>,
    ) -> Option<Arc<MemoryLease>> {
        let principal = self.principal(principal);
        self.memory.unread(&principal, bytes, progress, end)
    }

    fn principal(&self, principal: &str) -> Arc<Gate> {
        if principal == LOCAL {
            return self.local.clone();
        }
        let hash = blake3::hash(principal.as_bytes());
        let index = usize::from(hash.as_bytes().first().copied().unwrap_or(0)) % SHARDS;
        let Some(shard) = self.principals.get(index) else {
            return self.local.clone();
        };
        lock(shard).get(principal, || for_a_principal(&self.limits))
    }
}

fn for_a_principal(limits: &Limits) -> Arc<Gate> {
    Gate::new(
        LimitName::ConcurrencyPerPrincipal,
        limits.concurrency_per_principal,
        limits.queue,
    )
}

/// Gates by name; each lives as long as a call or a host refers to it.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    by_name: HashMap<String, Weak<Gate>>,
    /// At this many names, those whose gates have been dropped are removed.
    crowded: usize,
}

impl Gates {
    pub(crate) fn get(&mut self, name: &str, make: impl FnOnce() -> Arc<Gate>) -> Arc<Gate> {
        if let Some(gate) = self.by_name.get(name).and_then(Weak::upgrade) {
            return gate;
        }
        if self.by_name.len() >= self.crowded {
            self.by_name.retain(|_, gate| gate.strong_count() > 0);
            self.crowded = self.by_name.len().saturating_mul(2).saturating_add(16);
        }
        let gate = make();
        self.by_name.insert(name.to_owned(), Arc::downgrade(&gate));
        gate
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::result::ErrorCode;

    fn admission(limits: &Limits) -> (Admission, Arc<Gate>, Arc<Gate>) {
        let admission = Admission::new(limits);
        let tool = admission.tool("acme", "text.stats@1");
        let publisher = admission.publisher("acme");
        (admission, tool, publisher)
    }

    #[tokio::test]
    async fn a_full_queue_refuses_and_a_freed_place_is_given_again() {
        let limits = Limits {
            concurrency: 1,
            queue: 1,
            ..Limits::default()
        };
        let (admission, tool, publisher) = admission(&limits);
        let path = admission.path(&tool, &publisher, "local");
        let running = path.enter(1 << 20).await.expect("a free slot");
        let mut waiting = Box::pin(path.enter(1 << 20));
        assert!(futures_util::poll!(waiting.as_mut()).is_pending());

        let refused = path.enter(1 << 20).await.expect_err("the queue is full");
        assert_eq!(refused.code, ErrorCode::RATE_LIMITED);
        assert!(refused.retryable && refused.retry_after.is_some());

        drop(waiting);
        let mut again = Box::pin(path.enter(1 << 20));
        assert!(futures_util::poll!(again.as_mut()).is_pending());
        drop(running);
        let _slot = again.await.expect("the freed slot");
    }

    #[tokio::test]
    async fn a_principal_that_waits_for_its_own_share_keeps_nobody_else_waiting() {
        let limits = Limits {
            concurrency: 2,
            concurrency_per_principal: 1,
            queue: 1,
            ..Limits::default()
        };
        let (admission, tool, publisher) = admission(&limits);
        let greedy = admission.path(&tool, &publisher, "greedy");
        let _running = greedy.enter(1 << 20).await.expect("a free slot");
        let mut waiting = Box::pin(greedy.enter(1 << 20));
        assert!(futures_util::poll!(waiting.as_mut()).is_pending());
        let refused = greedy
            .enter(1 << 20)
            .await
            .expect_err("its own queue is full");
        assert!(refused.message.contains("concurrency_per_principal"));

        let modest = admission.path(&tool, &publisher, "modest");
        let _slot = modest.enter(1 << 20).await.expect("the other slot");
    }

    #[tokio::test]
    async fn a_parked_call_lends_its_slot_and_gets_one_again_past_the_queue() {
        let limits = Limits {
            concurrency: 1,
            queue: 0,
            ..Limits::default()
        };
        let (admission, tool, publisher) = admission(&limits);
        let path = admission.path(&tool, &publisher, "local");
        let parent = path.enter(1 << 20).await.expect("a free slot");
        let parked = path.park(parent).expect("room to park");
        let child = path.enter(1 << 20).await.expect("the lent slot");
        let mut resumed = Box::pin(path.resume(parked));
        assert!(futures_util::poll!(resumed.as_mut()).is_pending());
        drop(child);
        let _slot = resumed.await.expect("a slot again");
    }

    #[tokio::test]
    async fn a_principal_that_parks_all_it_may_keeps_nobody_else_from_parking() {
        let limits = Limits {
            concurrency: 2,
            concurrency_per_principal: 1,
            ..Limits::default()
        };
        let (admission, tool, publisher) = admission(&limits);
        let greedy = admission.path(&tool, &publisher, "greedy");
        let slot = greedy.enter(1 << 20).await.expect("a slot");
        let _parked = greedy.park(slot).expect("room to park");
        let slot = greedy.enter(1 << 20).await.expect("the lent slot");
        let (_slot, refused) = *greedy.park(slot).expect_err("its share is taken");
        let hit = refused.limit.expect("a limit");
        assert_eq!(
            (hit.limit, hit.allowed),
            (LimitName::ConcurrencyPerPrincipal, 1)
        );

        let modest = admission.path(&tool, &publisher, "modest");
        let slot = modest.enter(1 << 20).await.expect("a slot");
        let _parked = modest.park(slot).expect("room to park");
    }

    #[tokio::test]
    async fn whoever_waits_for_a_tool_takes_no_place_of_its_publishers_other_tools() {
        let limits = Limits {
            concurrency_per_tool: 1,
            concurrency_per_publisher: 2,
            queue: 1,
            ..Limits::default()
        };
        let (admission, busy, publisher) = admission(&limits);
        let path = admission.path(&busy, &publisher, "local");
        let _running = path.enter(1 << 20).await.expect("a free slot");
        let mut waiting = Box::pin(path.enter(1 << 20));
        assert!(futures_util::poll!(waiting.as_mut()).is_pending());

        let other = admission.tool("acme", "text.other@1");
        let path = admission.path(&other, &publisher, "local");
        let mut entering = Box::pin(path.enter(1 << 20));
        assert!(futures_util::poll!(entering.as_mut()).is_ready());
    }

    #[tokio::test]
    async fn so_many_calls_are_parked_and_no_more() {
        let limits = Limits {
            concurrency: 1,
            ..Limits::default()
        };
        let (admission, tool, publisher) = admission(&limits);
        let path = admission.path(&tool, &publisher, "local");
        let _parked = path
            .park(path.enter(1 << 20).await.expect("a slot"))
            .expect("room to park");
        let slot = path.enter(1 << 20).await.expect("the lent slot");
        let (_slot, refused) = *path.park(slot).expect_err("no more room");
        assert_eq!(refused.code, ErrorCode::RATE_LIMITED);
    }
}
