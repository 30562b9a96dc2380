//! Admission control: bounds running and queued calls, and rejects the rest with a
//! retry-after. Each tool, publisher and principal has a share of the slots; a call
//! that waits for its share holds no slot.

mod gate;
mod memory;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use rustix::process::{Resource, getrlimit};
use tokio::sync::OwnedSemaphorePermit;
use toolward_policy::{LimitName, Limits};
use toolward_sandbox::exceeded::Exceeded;
use toolward_sandbox::files::{OpenFile, OpenFiles};
use toolward_state::{CallPlace, Leases, PlaceLimits, PlacesOf};
use toolward_support::helper::lock;

use crate::api::LOCAL;
use crate::api::result::{CallError, Result};
pub(crate) use gate::Gate;
use gate::Sum;
use memory::CallMemory;
pub(crate) use memory::MemoryLease;
pub use memory::ReadProgress;

/// Principals are spread over this many locks, so that calls of different principals
/// rarely contend.
const SHARDS: usize = 16;

/// The gates that one call passes. The order is principal, tool, publisher, host: a call that waits
/// at a gate holds no place at the gate that all calls share.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    tool: Arc<Gate>,
    publisher: Arc<Gate>,
    principal: Arc<Gate>,
    host: Arc<Gate>,
    memory: Arc<CallMemory>,
    files: Arc<Sum>,
}

/// A running call's place at each gate, and its memory.
#[derive(Debug)]
pub(crate) struct Slot {
    _places: [CallPlace; 4],
    /// The memory of the call.
    pub(crate) memory: Arc<MemoryLease>,
}

/// A call that gave up its slot while it waits for another tool.
#[derive(Debug)]
pub(crate) struct Parked {
    _permits: [OwnedSemaphorePermit; 2],
    memory: Arc<MemoryLease>,
}

impl Path {
    /// Acquires a slot for a call that may take this much memory, waiting until the deadline if the
    /// queue has room.
    pub(crate) async fn enter(&self, memory_bytes: u64, deadline: Option<Instant>) -> Result<Slot> {
        let places = self.pass(true, deadline).await?;
        let memory = self
            .memory
            .reserve(&self.principal, &self.publisher, memory_bytes);
        Ok(Slot {
            _places: places,
            memory: memory.await?,
        })
    }

    /// Reserves a place in the principal's queue for a call that is going to [enter](Self::enter).
    /// A call that the queue has no room for is refused here, before it costs any work.
    pub(crate) fn reserve(&self) -> Result<CallPlace> {
        self.principal.reserve()
    }

    /// Acquires a slot again for a call that parked. The bound of the queue does not apply, since
    /// the call has waited already.
    pub(crate) async fn resume(&self, parked: Parked, deadline: Instant) -> Result<Slot> {
        let places = self.pass(false, Some(deadline)).await?;
        Ok(Slot {
            _places: places,
            memory: parked.memory,
        })
    }

    async fn pass(&self, bounded: bool, deadline: Option<Instant>) -> Result<[CallPlace; 4]> {
        Ok([
            self.principal.enter(bounded, deadline).await?,
            self.tool.enter(bounded, deadline).await?,
            self.publisher.enter(bounded, deadline).await?,
            self.host.enter(bounded, deadline).await?,
        ])
    }

    /// Releases the slot while a call waits for a nested call. The call's instance stays in memory,
    /// so the number of parked calls is bounded, too, with a share for each principal.
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

/// One open file, until it is dropped.
struct HeldFile {
    files: Arc<Sum>,
    principal: Arc<Gate>,
    publisher: Arc<Gate>,
}

impl OpenFiles for Path {
    fn open(&self) -> Result<OpenFile, Exceeded> {
        let (principal, publisher) = (&self.principal, &self.publisher);
        let taken = self
            .files
            .take(&principal.files, Some(&publisher.files), 1, 0);
        taken.map_err(|full| full.exceeded)?;
        Ok(Box::new(HeldFile {
            files: self.files.clone(),
            principal: principal.clone(),
            publisher: publisher.clone(),
        }))
    }
}

impl Drop for HeldFile {
    fn drop(&mut self) {
        let (principal, publisher) = (&self.principal, &self.publisher);
        self.files
            .give_back(&principal.files, Some(&publisher.files), 1);
    }
}

/// The gates of a host. The hosts that replace it use the same gates, so all their calls are
/// counted together.
pub(crate) struct Admission {
    limits: Limits,
    leases: Arc<dyn Leases>,
    host: Arc<Gate>,
    memory: Arc<CallMemory>,
    /// The files that all calls hold open. They are bounded because a process has a limited number
    /// of descriptors, and connections need some of them.
    files: Arc<Sum>,
    /// The gate of [`LOCAL`], the only principal of most hosts.
    local: Arc<Gate>,
    principals: [Mutex<Gates>; SHARDS],
    /// By publisher and `id@major`.
    tools: Mutex<Gates>,
    publishers: Mutex<Gates>,
}

impl Admission {
    pub(crate) fn new(limits: &Limits, leases: Arc<dyn Leases>) -> Self {
        // By default, half of the files that this process may open.
        let half = || getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX) / 2;
        let open_files = limits.open_files_total.unwrap_or_else(half);
        Self {
            local: gate(&*leases, PlacesOf::Principal(LOCAL), limits),
            limits: limits.clone(),
            host: gate(&*leases, PlacesOf::All, limits),
            memory: CallMemory::new(limits),
            files: Arc::new(Sum::new(LimitName::OpenFilesTotal, open_files, 1, limits)),
            principals: Default::default(),
            tools: Mutex::default(),
            publishers: Mutex::default(),
            leases,
        }
    }

    /// Whether `limits` has the same limits on calls, memory and open files as this admission.
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
        // An `id@major` contains no space, so different pairs have different keys.
        let places = PlacesOf::Tool(publisher, tool);
        lock(&self.tools).get(&format!("{tool} {publisher}"), || self.gate(places))
    }

    /// The gate for the calls of all tools of one publisher.
    pub(crate) fn publisher(&self, publisher: &str) -> Arc<Gate> {
        lock(&self.publishers).get(publisher, || self.gate(PlacesOf::Publisher(publisher)))
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
        lock(shard).get(principal, || self.gate(PlacesOf::Principal(principal)))
    }

    fn gate(&self, of: PlacesOf<'_>) -> Arc<Gate> {
        gate(&*self.leases, of, &self.limits)
    }
}

fn gate(leases: &dyn Leases, of: PlacesOf<'_>, limits: &Limits) -> Arc<Gate> {
    use LimitName::{
        Concurrency, ConcurrencyPerPrincipal, ConcurrencyPerPublisher, ConcurrencyPerTool,
    };
    let (name, running) = match of {
        PlacesOf::All => (Concurrency, limits.concurrency),
        PlacesOf::Tool(..) => (ConcurrencyPerTool, limits.concurrency_per_tool),
        PlacesOf::Publisher(_) => (ConcurrencyPerPublisher, limits.concurrency_per_publisher),
        PlacesOf::Principal(_) => (ConcurrencyPerPrincipal, limits.concurrency_per_principal),
    };
    let limits = PlaceLimits {
        running,
        waiting: limits.queue,
    };
    Gate::new(name, limits, leases.places(of, limits))
}

/// Gates by name; each lives as long as a call or a host refers to it.
#[derive(Debug, Default)]
pub(crate) struct Gates {
    by_name: HashMap<String, Weak<Gate>>,
    /// At this many names, the names of dropped gates are removed.
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

#[cfg(test)]
mod tests;
