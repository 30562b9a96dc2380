//! The memory of all calls together. A call reserves a part before it starts and leases
//! more as it grows, within the shares of its principal and publisher. Results that clients
//! have not read count, too. Without room the principal that holds most gives way: the
//! client that has not read for longest, or else the call that grew last.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::sync::Notify;
use toolward_policy::{LimitName, Limits};

use super::Gate;
use super::sum::{Share, Sum};
use crate::api::result::CallError;
use crate::exceeded::Exceeded;

/// The most that a call reserves before it starts, in bytes.
pub(crate) const RESERVED: u64 = 16 << 20;
/// By how much it grows beyond that at once, in bytes.
const LEASE: u64 = 8 << 20;
/// What calls of others may lease beyond the limit while a call that was ended still holds
/// its memory: growth can't wait in the middle of a guest's instruction.
const OVERDRAFT: u64 = 32 << 20;
/// How long an admitted call waits for room.
const ROOM_TIMEOUT: Duration = Duration::from_secs(2);

/// The memory of the calls of one admission.
#[derive(Debug)]
pub(crate) struct CallMemory {
    sum: Sum,
    /// Calls that have grown, by the order of their last growth.
    growing: Mutex<BTreeMap<u64, Weak<MemoryLease>>>,
    growths: AtomicU64,
    waiting: AtomicU32,
    freed: Notify,
    /// All unread results, which share as the calls of one publisher do.
    unread: Arc<Gate>,
}

impl CallMemory {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        let allowed = limits.memory_total.unwrap_or_else(default_total);
        Arc::new(Self {
            sum: Sum::new(LimitName::MemoryTotal, allowed, RESERVED, limits),
            growing: Mutex::default(),
            growths: AtomicU64::new(0),
            waiting: AtomicU32::new(0),
            freed: Notify::new(),
            unread: Gate::new(LimitName::MemoryTotal, 1, 0),
        })
    }

    /// Reserves memory for a call that may take `limit` bytes. Waits a while if there is
    /// no room.
    pub(super) async fn reserve(
        self: &Arc<Self>,
        principal: &Arc<Gate>,
        publisher: &Arc<Gate>,
        limit: u64,
    ) -> Result<Arc<MemoryLease>, CallError> {
        let bytes = limit.min(RESERVED);
        let full = match self
            .sum
            .take(&principal.memory, &publisher.memory, bytes, 0)
        {
            Ok(()) => return Ok(self.lease(principal, publisher, bytes, None)),
            Err(full) => full,
        };
        let waits = async {
            let _waiting = Waiting::new(&self.waiting);
            loop {
                let mut freed = std::pin::pin!(self.freed.notified());
                freed.as_mut().enable();
                match self
                    .sum
                    .take(&principal.memory, &publisher.memory, bytes, 0)
                {
                    Ok(()) => return self.lease(principal, publisher, bytes, None),
                    Err(full) => self.make_room_for((principal, publisher), bytes, full.share),
                }
                freed.await;
            }
        };
        let waited = tokio::time::timeout(ROOM_TIMEOUT, waits).await;
        waited.map_err(|_| no_room(full.exceeded))
    }

    /// Counts a result of `bytes` until it has been written to its client, whose connection
    /// `end` ends. `None` if there is no room and this connection has to end.
    pub(super) fn unread(
        self: &Arc<Self>,
        principal: &Arc<Gate>,
        bytes: u64,
        end: Box<dyn Fn() + Send + Sync>,
    ) -> Option<Arc<MemoryLease>> {
        let lease = self.lease(principal, &self.unread, 0, Some(EndReader(end)));
        lease.grows();
        let take = |overdraft| {
            let (principal, unread) = (&principal.memory, &self.unread.memory);
            self.sum.take(principal, unread, bytes, overdraft)
        };
        let mut taken = take(0);
        if let Err(full) = taken {
            let (mut growing, is_ending) = self.growing(full.share, principal, &self.unread);
            if full.share == Share::Principal {
                growing.retain(|one| one.reader.is_some());
            }
            let first = first_to_end(&growing).filter(|first| !Arc::ptr_eq(first, &lease))?;
            if !is_ending {
                first.end();
            }
            taken = take(OVERDRAFT);
        }
        taken.ok()?;
        lease.bytes.store(bytes, Ordering::Relaxed);
        Some(lease)
    }

    fn lease(
        self: &Arc<Self>,
        principal: &Arc<Gate>,
        publisher: &Arc<Gate>,
        bytes: u64,
        reader: Option<EndReader>,
    ) -> Arc<MemoryLease> {
        Arc::new(MemoryLease {
            memory: self.clone(),
            principal: principal.clone(),
            publisher: publisher.clone(),
            bytes: AtomicU64::new(bytes),
            growth: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            waker: AtomicWaker::new(),
            reader,
        })
    }

    /// Ends a call of a principal that holds more than this one would, if none is ending.
    fn make_room_for(
        &self,
        (principal, publisher): (&Arc<Gate>, &Arc<Gate>),
        bytes: u64,
        share: Share,
    ) {
        let then = principal.memory.now().saturating_add(bytes);
        let (growing, is_ending) = self.growing(share, principal, publisher);
        if !is_ending
            && let Some(first) = first_to_end(&growing)
            && first.principal.memory.now() > then
        {
            first.end();
        }
    }

    /// The calls that have grown within a full share and go on, oldest growth first, and
    /// whether others of them are ending.
    fn growing(
        &self,
        share: Share,
        principal: &Arc<Gate>,
        publisher: &Arc<Gate>,
    ) -> (Vec<Arc<MemoryLease>>, bool) {
        let growing = lock(&self.growing);
        let mut all: Vec<_> = growing.values().filter_map(Weak::upgrade).collect();
        drop(growing);
        all.retain(|one| match share {
            Share::Principal => Arc::ptr_eq(&one.principal, principal),
            Share::Publisher => Arc::ptr_eq(&one.publisher, publisher),
            Share::All => true,
        });
        let count = all.len();
        let going: Vec<_> = all.into_iter().filter(|lease| !lease.is_ended()).collect();
        let is_ending = going.len() < count;
        (going, is_ending)
    }
}

/// Of the principal that holds most: the result that has waited longest for its reader, or
/// else the call that grew last, of the publisher that holds most.
fn first_to_end(growing: &[Arc<MemoryLease>]) -> Option<&Arc<MemoryLease>> {
    let held = |gate: &Gate| gate.memory.now();
    let principal = &growing
        .iter()
        .max_by_key(|one| held(&one.principal))?
        .principal;
    let own = || {
        let all = growing.iter();
        all.filter(move |one| Arc::ptr_eq(&one.principal, principal))
    };
    if let Some(slowest) = own().find(|one| one.reader.is_some()) {
        return Some(slowest);
    }
    let of_publisher = |publisher: &Arc<Gate>| -> u64 {
        let all = own().filter(|one| Arc::ptr_eq(&one.publisher, publisher));
        all.map(|one| one.bytes.load(Ordering::Relaxed)).sum()
    };
    let publisher = &own()
        .max_by_key(|one| of_publisher(&one.publisher))?
        .publisher;
    own().rfind(|one| Arc::ptr_eq(&one.publisher, publisher))
}

/// The memory of one call, given back when dropped.
#[derive(Debug)]
pub(crate) struct MemoryLease {
    memory: Arc<CallMemory>,
    principal: Arc<Gate>,
    publisher: Arc<Gate>,
    bytes: AtomicU64,
    /// Its place among those that have grown; 0 if it has not.
    growth: AtomicU64,
    ended: AtomicBool,
    waker: AtomicWaker,
    /// For a result that was not read: ends the connection of its reader.
    reader: Option<EndReader>,
}

impl MemoryLease {
    /// Covers `used` bytes. Returns how many are covered.
    ///
    /// # Errors
    ///
    /// If there is no room, and this is the call that has to end.
    pub(crate) fn cover(self: &Arc<Self>, used: u64) -> Result<u64, Exceeded> {
        let covered = self.bytes.load(Ordering::Relaxed);
        if used <= covered {
            return Ok(covered);
        }
        let more = used
            .saturating_sub(covered)
            .div_ceil(LEASE)
            .saturating_mul(LEASE);
        self.grows();
        let memory = &self.memory;
        let (principal, publisher) = (&self.principal.memory, &self.publisher.memory);
        let take = |overdraft| memory.sum.take(principal, publisher, more, overdraft);
        let mut taken = take(0);
        if let Err(full) = taken
            && full.share != Share::Principal
        {
            let (growing, is_ending) = memory.growing(full.share, &self.principal, &self.publisher);
            if let Some(first) = first_to_end(&growing)
                && !Arc::ptr_eq(first, self)
            {
                if !is_ending {
                    first.end();
                }
                taken = take(OVERDRAFT);
            }
        }
        taken.map_err(|full| full.exceeded)?;
        Ok(self
            .bytes
            .fetch_add(more, Ordering::Relaxed)
            .saturating_add(more))
    }

    /// Whether it has been ended to make room.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Ready once the call has to end. Wakes the task then.
    pub(crate) fn poll_ended(&self, context: &mut Context<'_>) -> Poll<Exceeded> {
        if self.growth.load(Ordering::Relaxed) == 0 {
            return Poll::Pending;
        }
        self.waker.register(context.waker());
        match self.is_ended() {
            false => Poll::Pending,
            true => Poll::Ready(self.memory.sum.exceeded()),
        }
    }

    fn grows(self: &Arc<Self>) {
        let mut growing = lock(&self.memory.growing);
        let number = self
            .memory
            .growths
            .fetch_add(1, Ordering::Relaxed)
            .saturating_add(1);
        let before = self.growth.swap(number, Ordering::Relaxed);
        growing.remove(&before);
        growing.insert(number, Arc::downgrade(self));
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.waker.wake();
        if let Some(end) = &self.reader {
            (end.0)();
        }
    }
}

impl Drop for MemoryLease {
    fn drop(&mut self) {
        let (memory, bytes) = (&self.memory, *self.bytes.get_mut());
        let (principal, publisher) = (&self.principal.memory, &self.publisher.memory);
        memory.sum.give_back(principal, publisher, bytes);
        match *self.growth.get_mut() {
            0 => {}
            number => {
                lock(&memory.growing).remove(&number);
            }
        }
        if memory.waiting.load(Ordering::SeqCst) > 0 {
            memory.freed.notify_waiters();
        }
    }
}

/// What ends a connection.
struct EndReader(Box<dyn Fn() + Send + Sync>);

impl fmt::Debug for EndReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EndReader")
    }
}

struct Waiting<'a>(&'a AtomicU32);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicU32) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The error of a call that was not started.
fn no_room(exceeded: Exceeded) -> CallError {
    let Exceeded { used, allowed, .. } = exceeded;
    super::gate::full(
        format!(
            "this call would make it {used} bytes of memory, {allowed} are allowed (memory_total)"
        ),
        exceeded.limit,
        used,
        allowed,
        "try again later, or raise the limit `memory_total`".to_owned(),
    )
}

/// Half of the memory of this machine or control group.
fn default_total() -> u64 {
    crate::memory::machine_bytes() / 2
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    struct Calls {
        memory: Arc<CallMemory>,
        publisher: Arc<Gate>,
    }

    impl Calls {
        fn of(total: u64, share: u32) -> Self {
            let limits = Limits {
                memory_total: Some(total),
                concurrency: 4,
                concurrency_per_principal: share,
                concurrency_per_publisher: 4,
                ..Limits::default()
            };
            Self {
                memory: CallMemory::new(&limits),
                publisher: gate(),
            }
        }

        async fn start(&self, principal: &Arc<Gate>) -> Result<Arc<MemoryLease>, CallError> {
            let memory = &self.memory;
            memory.reserve(principal, &self.publisher, 256 * MIB).await
        }
    }

    fn gate() -> Arc<Gate> {
        Gate::new(LimitName::Concurrency, 4, 4)
    }

    #[tokio::test]
    async fn the_newest_growth_of_the_largest_principal_ends_for_a_neighbour() {
        let calls = Calls::of(100 * MIB, 4);
        let [greedy, modest] = [gate(), gate()];
        let first = calls.start(&greedy).await.expect("room");
        let second = calls.start(&greedy).await.expect("room");
        first.cover(40 * MIB).expect("room");
        second.cover(40 * MIB).expect("room");
        first.cover(48 * MIB).expect("room");
        // The largest principal's own growth ends the call that grows.
        let refused = second.cover(64 * MIB).expect_err("no room");
        assert_eq!(refused.limit, LimitName::MemoryTotal);
        first.cover(48 * MIB).expect("covered before");

        let mut starting = Box::pin(calls.start(&modest));
        assert!(futures_util::poll!(starting.as_mut()).is_pending());
        assert!(second.is_ended() && !first.is_ended());
        drop(second);
        let neighbour = starting.await.expect("room");
        neighbour.cover(24 * MIB).expect("room");
        drop((first, neighbour));
        assert_eq!(calls.memory.sum.used(), 0);
        assert_eq!(greedy.memory.now(), 0);
        assert!(lock(&calls.memory.growing).is_empty());
    }

    #[tokio::test]
    async fn a_growing_neighbour_need_not_wait_for_the_call_that_ends() {
        let calls = Calls::of(100 * MIB, 4);
        let [greedy, modest] = [gate(), gate()];
        let neighbour = calls.start(&modest).await.expect("room");
        let large = calls.start(&greedy).await.expect("room");
        large.cover(80 * MIB).expect("room");
        neighbour.cover(20 * MIB).expect("an overdraft");
        assert!(large.is_ended() && !neighbour.is_ended());
        // It is bounded.
        assert!(neighbour.cover(90 * MIB).is_err());
    }

    #[tokio::test]
    async fn the_result_that_waited_longest_goes_before_a_call() {
        let calls = Calls::of(100 * MIB, 4);
        let [slow, modest] = [gate(), gate()];
        let (sender, ended) = std::sync::mpsc::channel();
        let unread = |principal: &Arc<Gate>, number: u32| {
            let sender = sender.clone();
            let end = move || sender.send(number).expect("a receiver");
            calls.memory.unread(principal, 30 * MIB, Box::new(end))
        };
        let working = calls.start(&slow).await.expect("room");
        working.cover(24 * MIB).expect("room");
        let first = unread(&slow, 1).expect("room");
        let _second = unread(&slow, 2).expect("room");
        let third = unread(&slow, 3).expect("an overdraft");
        assert_eq!(ended.try_iter().collect::<Vec<_>>(), [1]);
        assert!(unread(&modest, 4).is_none(), "the overdraft is bounded");
        drop((first, third));
        let _fifth = unread(&modest, 5).expect("room");
        assert!(!working.is_ended());
    }

    #[tokio::test]
    async fn one_principal_takes_no_more_than_its_share() {
        let calls = Calls::of(100 * MIB, 3);
        let [greedy, modest] = [gate(), gate()];
        let large = calls.start(&greedy).await.expect("room");
        large.cover(72 * MIB).expect("within the share of 75 MiB");
        assert!(large.cover(80 * MIB).is_err());
        let refused = calls
            .start(&greedy)
            .await
            .expect_err("no room in its share");
        assert!(refused.retryable && refused.message.contains("memory_total"));
        calls.start(&modest).await.expect("room for others");
        assert!(!large.is_ended());
    }
}
