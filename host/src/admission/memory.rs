//! Bounds the memory of all calls together. A call reserves memory before it starts and leases more
//! as it grows, within the shares of its principal and publisher. Results that clients have not
//! read count, too, and may take at most half of the allowed sum. If no room is left, the host ends
//! a client that reads nothing. Without such a client, it ends a call of the principal that holds
//! the most memory.

mod reader;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::sync::Notify;
use toolward_policy::{LimitName, Limits};
use toolward_sandbox::exceeded::Exceeded;
use toolward_sandbox::limits::MemoryBudget;
use toolward_support::helper::lock;

pub use self::reader::ReadProgress;
use self::reader::Reader;
use super::Gate;
use super::gate::{Full, Share, Sum};
use crate::api::result::{CallError, Result};

/// The most that a call reserves before it starts, in bytes.
pub(crate) const RESERVED: u64 = 16 << 20;
/// The step in which a call grows beyond its reservation, in bytes.
const LEASE: u64 = 8 << 20;
/// How much calls and results may take beyond a limit, in bytes. An ended call holds its memory for
/// a while, and a growing call can't wait for it in the middle of a guest's instruction.
const OVERDRAFT: u64 = 32 << 20;
/// A client that has taken nothing of its results for this long counts as not reading. A client
/// that reads over a link of 1 MiB a second does not count: the kernel's buffers have room for
/// further bytes in less time.
const STALLED_AFTER: Duration = Duration::from_secs(2);
/// How long an admitted call waits for room, so that clients that read nothing can be ended first.
const ROOM_TIMEOUT: Duration = Duration::from_secs(3);
/// How often a waiting call looks for clients that read nothing.
const ROOM_INTERVAL: Duration = Duration::from_millis(250);

/// The memory of the calls of one admission.
#[derive(Debug)]
pub(crate) struct CallMemory {
    sum: Sum,
    /// Calls that have grown, and unread results, in the order of their last growth.
    growing: Mutex<BTreeMap<u64, Weak<MemoryLease>>>,
    growths: AtomicU64,
    waiting: AtomicU32,
    freed: Notify,
    /// The part of the sum that unread results hold. To leave room for calls, it is at most half of
    /// the allowed sum and, for each principal, half of its share.
    unread: Sum,
}

impl CallMemory {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        let half = || crate::memory::machine_bytes() / 2;
        let allowed = limits.memory_total.unwrap_or_else(half);
        Arc::new(Self {
            sum: Sum::new(LimitName::MemoryTotal, allowed, RESERVED, limits),
            growing: Mutex::default(),
            growths: AtomicU64::new(0),
            waiting: AtomicU32::new(0),
            freed: Notify::new(),
            unread: Sum::new(LimitName::MemoryTotal, allowed / 2, RESERVED, limits),
        })
    }

    /// Reserves memory for a call that may take `limit` bytes. Waits a while if no room is left.
    pub(super) async fn reserve(
        self: &Arc<Self>,
        principal: &Arc<Gate>,
        publisher: &Arc<Gate>,
        limit: u64,
    ) -> Result<Arc<MemoryLease>> {
        let bytes = limit.min(RESERVED);
        let lease = MemoryLease::new(self, principal, Some(publisher), None);
        let Err(full) = lease.take(bytes, 0) else {
            return Ok(lease);
        };
        let waits = async {
            let _waiting = Waiting::new(&self.waiting);
            loop {
                let mut freed = std::pin::pin!(self.freed.notified());
                freed.as_mut().enable();
                match lease.take(bytes, 0) {
                    Ok(()) => return,
                    Err(full) => self.make_room_for(&lease, bytes, full.share),
                }
                // Looks again after the interval, since a client may have stopped reading.
                let _ = tokio::time::timeout(ROOM_INTERVAL, freed).await;
            }
        };
        let waited = tokio::time::timeout(ROOM_TIMEOUT, waits).await;
        waited.map_err(|_| no_room(full.exceeded))?;
        Ok(lease)
    }

    /// Counts a result of `bytes` until it has been written to its client. `end` ends the client's
    /// connection. Returns `None` if no room is left, so that this result must be dropped.
    pub(super) fn unread(
        self: &Arc<Self>,
        principal: &Arc<Gate>,
        bytes: u64,
        progress: &ReadProgress,
        end: Box<dyn Fn() + Send + Sync>,
    ) -> Option<Arc<MemoryLease>> {
        progress.advance();
        let progress = progress.clone();
        let reader = Some(Reader { progress, end });
        let lease = MemoryLease::new(self, principal, None, reader);
        lease.grows();
        if let Err((full, of_readers)) = lease.take_unread(bytes, 0) {
            let others = self.growing(full.share, &lease);
            // If the part for unread results is full, ending a call makes no room in it.
            others.make_room(|call| (!of_readers).then_some(call));
            lease.take_unread(bytes, OVERDRAFT).ok()?;
        }
        Some(lease)
    }

    /// Ends a client that reads nothing. Without such a client, ends a call if its principal holds
    /// more than this lease's principal would with `bytes` more. Ends nothing if another call or
    /// result is ending already.
    fn make_room_for(&self, lease: &Arc<MemoryLease>, bytes: u64, share: Share) {
        let then = lease.principal.memory.now().saturating_add(bytes);
        let is_larger = |call: &MemoryLease| call.principal.memory.now() > then;
        let others = self.growing(share, lease);
        others.make_room(|call| Some(call).filter(|call| is_larger(call)));
    }

    /// The calls that have grown, and the unread results, that count against a full share.
    fn growing(&self, share: Share, lease: &MemoryLease) -> Growing {
        let growing = lock(&self.growing);
        let mut all: Vec<_> = growing.values().filter_map(Weak::upgrade).collect();
        drop(growing);
        all.retain(|one| match share {
            Share::Principal => Arc::ptr_eq(&one.principal, &lease.principal),
            Share::Publisher => match (&one.publisher, &lease.publisher) {
                (Some(one), Some(publisher)) => Arc::ptr_eq(one, publisher),
                _ => false,
            },
            Share::All => true,
        });
        let count = all.len();
        all.retain(|lease| !lease.is_ended());
        Growing {
            is_ending: all.len() < count,
            going: all,
        }
    }
}

/// Calls that have grown, and unread results, oldest growth first.
struct Growing {
    going: Vec<Arc<MemoryLease>>,
    /// Whether other calls or results are ending already.
    is_ending: bool,
}

impl Growing {
    /// Picks a client that reads nothing. Without such a client, picks the newest call, if `choose`
    /// returns it. Ends the pick, unless something is ending already, and returns it.
    fn make_room(
        &self,
        choose: impl FnOnce(&Arc<MemoryLease>) -> Option<&Arc<MemoryLease>>,
    ) -> Option<&Arc<MemoryLease>> {
        let first = self
            .stalled()
            .or_else(|| self.newest_call().and_then(choose))?;
        if !self.is_ending {
            first.end();
        }
        Some(first)
    }

    /// Considers only clients that read nothing. Takes the principal with the most memory, and
    /// returns its result whose client has been idle longest.
    fn stalled(&self) -> Option<&Arc<MemoryLease>> {
        let stalled = self.going.iter().filter_map(|one| {
            let idle = one.reader.as_ref()?.progress.idle();
            (idle >= STALLED_AFTER).then_some((one, idle))
        });
        let first = stalled.max_by_key(|(one, idle)| (one.principal.memory.now(), *idle));
        first.map(|(one, _)| one)
    }

    /// Takes the principal with the most memory, and of its calls the publisher whose calls hold
    /// the most memory. Returns the call of both that grew last.
    fn newest_call(&self) -> Option<&Arc<MemoryLease>> {
        let calls = || self.going.iter().filter(|one| one.reader.is_none());
        let largest = calls().max_by_key(|one| one.principal.memory.now())?;
        let own = || calls().filter(|one| Arc::ptr_eq(&one.principal, &largest.principal));
        let publisher = |lease: &MemoryLease| lease.publisher.as_ref().map(Arc::as_ptr);
        let of_publisher = |lease: &MemoryLease| -> u64 {
            let all = own().filter(|one| publisher(one) == publisher(lease));
            all.map(|one| one.bytes.load(Ordering::Relaxed)).sum()
        };
        let largest = publisher(own().max_by_key(|one| of_publisher(one))?);
        own().rfind(|one| publisher(one) == largest)
    }
}

/// The memory of one call or unread result. Dropping the lease releases the memory.
#[derive(Debug)]
pub(crate) struct MemoryLease {
    own: Weak<Self>,
    memory: Arc<CallMemory>,
    principal: Arc<Gate>,
    /// `None` for a result.
    publisher: Option<Arc<Gate>>,
    bytes: AtomicU64,
    /// The number of its last growth, the key in `CallMemory::growing`; 0 if it has not grown.
    growth: AtomicU64,
    ended: AtomicBool,
    waker: AtomicWaker,
    /// The client of a result; `None` for a call.
    reader: Option<Reader>,
}

impl MemoryLease {
    fn new(
        memory: &Arc<CallMemory>,
        principal: &Arc<Gate>,
        publisher: Option<&Arc<Gate>>,
        reader: Option<Reader>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|own| Self {
            own: own.clone(),
            memory: memory.clone(),
            principal: principal.clone(),
            publisher: publisher.cloned(),
            bytes: AtomicU64::new(0),
            growth: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            waker: AtomicWaker::new(),
            reader,
        })
    }

    /// Takes more bytes of the sum, which may be exceeded by up to `overdraft`.
    fn take(&self, more: u64, overdraft: u64) -> Result<(), Full> {
        let publisher = self.publisher.as_ref().map(|publisher| &publisher.memory);
        let sum = &self.memory.sum;
        sum.take(&self.principal.memory, publisher, more, overdraft)?;
        self.bytes.fetch_add(more, Ordering::Relaxed);
        Ok(())
    }

    /// Takes the bytes of a result. The flag of the error is whether the part for unread results is
    /// full.
    fn take_unread(&self, bytes: u64, overdraft: u64) -> Result<(), (Full, bool)> {
        let (unread, own) = (&self.memory.unread, &self.principal.unread);
        unread
            .take(own, None, bytes, overdraft)
            .map_err(|full| (full, true))?;
        self.take(bytes, overdraft).map_err(|full| {
            unread.give_back(own, None, bytes);
            (full, false)
        })
    }

    fn give_back(&self, bytes: u64) {
        let (memory, principal) = (&self.memory, &self.principal);
        let publisher = self.publisher.as_ref().map(|publisher| &publisher.memory);
        memory.sum.give_back(&principal.memory, publisher, bytes);
        if self.reader.is_some() {
            memory.unread.give_back(&principal.unread, None, bytes);
        }
        if memory.waiting.load(Ordering::SeqCst) > 0 {
            memory.freed.notify_waiters();
        }
    }

    /// Whether the call or result has been ended to make room.
    pub(crate) fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    fn grows(&self) {
        let mut growing = lock(&self.memory.growing);
        let growths = self.memory.growths.fetch_add(1, Ordering::Relaxed);
        let number = growths.saturating_add(1);
        let before = self.growth.swap(number, Ordering::Relaxed);
        growing.remove(&before);
        growing.insert(number, self.own.clone());
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Release);
        self.waker.wake();
        if let Some(reader) = &self.reader {
            (reader.end)();
        }
    }
}

impl MemoryBudget for MemoryLease {
    fn cover(&self, used: u64, limit: u64) -> Result<u64, Exceeded> {
        let covered = self.bytes.load(Ordering::Relaxed);
        if used <= covered {
            return Ok(covered);
        }
        let more = used
            .saturating_sub(covered)
            .div_ceil(LEASE)
            .saturating_mul(LEASE)
            .min(limit.max(used).saturating_sub(covered));
        self.grows();
        if let Err(full) = self.take(more, 0) {
            let others = self.memory.growing(full.share, self);
            let is_own = full.share == Share::Principal;
            let is_self = |call: &Arc<Self>| std::ptr::eq(Arc::as_ptr(call), self);
            let first =
                others.make_room(|call| Some(call).filter(|call| !is_own && !is_self(call)));
            first.ok_or(full.exceeded)?;
            self.take(more, OVERDRAFT).map_err(|full| full.exceeded)?;
        }
        Ok(covered.saturating_add(more))
    }

    fn shrink(&self, used: u64) -> u64 {
        let covered = self.bytes.load(Ordering::Relaxed);
        if used < covered {
            self.bytes.store(used, Ordering::Relaxed);
            self.give_back(covered.saturating_sub(used));
        }
        used.min(covered)
    }

    fn poll_ended(&self, context: &mut Context<'_>) -> Poll<Exceeded> {
        if self.growth.load(Ordering::Relaxed) == 0 {
            return Poll::Pending;
        }
        self.waker.register(context.waker());
        match self.is_ended() {
            false => Poll::Pending,
            true => Poll::Ready(self.memory.sum.exceeded()),
        }
    }
}

impl Drop for MemoryLease {
    fn drop(&mut self) {
        let number = *self.growth.get_mut();
        if number > 0 {
            lock(&self.memory.growing).remove(&number);
        }
        self.give_back(self.bytes.load(Ordering::Relaxed));
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

/// The error of a call that is not started because memory is full.
fn no_room(exceeded: Exceeded) -> CallError {
    let Exceeded { used, allowed, .. } = exceeded;
    super::gate::full(
        format!(
            "this call would make it {used} bytes of memory, {allowed} are allowed (memory_total)"
        ),
        exceeded,
        "try again later, or raise the limit `memory_total`".to_owned(),
    )
}

#[cfg(test)]
mod tests;
