//! Turns of running guests on the processors. At most one guest per core runs at once; among
//! waiting guests, the principal that has spent least goes first.
//!
//! A guest runs from one yield to the next, about a million units of fuel, and needs a permit to
//! run. While permits are free and the queue is empty, taking a permit is one atomic operation.
//! Otherwise the guest waits outside of the runtime's queue until its turn, so that the runtime
//! does not poll guests that may not run. A guest that waits in the host holds no permit. A nested
//! call takes no permits: it is polled as a part of the root call, in the root's turns, and its
//! time is booked to the root's principal.

mod accounts;

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;
use toolward_support::helper::lock;

use self::accounts::{Accounts, Claim, Payer};
/// A turn that was given but not taken for this long is reclaimed, since its future may never be
/// polled again.
pub(super) const STALLED_TURN_INTERVAL: Duration = Duration::from_millis(100);

/// While the queue is empty, a call's time is booked only once this much has accumulated. So a
/// short call takes no lock.
const UNBOOKED: Duration = Duration::from_millis(1);

/// The processors that this process may use. Cached, since finding out reads files.
pub fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// The turns of a host and of the hosts that replace it.
#[derive(Debug)]
pub struct Turns {
    /// The upper half counts waiters, the lower half taken permits.
    counts: AtomicU64,
    permits: u64,
    start: Instant,
    queue: Mutex<Queue>,
}

const ONE_WAITS: u64 = 1 << 32;
const TAKEN: u64 = ONE_WAITS - 1;

/// The waiting guests. Their number is bounded by the running calls, of which each principal has a
/// share: see [`toolward_policy::Limits::concurrency`].
#[derive(Debug, Default)]
struct Queue {
    accounts: Accounts,
    waiting: Vec<Waiting>,
    /// Turns that were given and perhaps not taken yet, with the time when they were given.
    given: Vec<(Waiting, Duration)>,
    claims: u64,
}

#[derive(Debug)]
struct Waiting {
    seat: Arc<Seat>,
    waker: Waker,
    payer: Payer,
    number: u64,
}

impl Waiting {
    fn claim(&self) -> Claim {
        Claim {
            payer: self.payer,
            tardy: self.seat.tardy.load(Ordering::Relaxed),
            number: self.number,
        }
    }
}

/// The state of a turn that a waiting guest and the queue share.
#[derive(Debug, Default)]
struct Seat {
    state: AtomicU8,
    /// Whether the guest did not take an earlier turn.
    tardy: AtomicBool,
}

const WAITS: u8 = 0;
const GIVEN: u8 = 1;
/// The turn was taken, or its guest was dropped.
const OVER: u8 = 2;

impl Seat {
    fn is(&self, state: u8) -> bool {
        self.state.load(Ordering::Acquire) == state
    }

    fn turn(&self, from: u8, to: u8) -> bool {
        self.state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

impl Default for Turns {
    fn default() -> Self {
        Self::new(cores())
    }
}

impl Turns {
    /// Turns with `permits` permits.
    fn new(permits: usize) -> Self {
        Self {
            counts: AtomicU64::new(0),
            permits: u64::try_from(permits.max(1)).unwrap_or(1),
            start: Instant::now(),
            queue: Mutex::default(),
        }
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Takes a permit, if one is free and the queue is empty.
    fn take(&self) -> bool {
        self.counts
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |counts| {
                (counts < self.permits).then(|| counts.saturating_add(1))
            })
            .is_ok()
    }

    /// Returns a permit, if the queue is empty.
    fn put(&self) -> bool {
        self.counts
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |counts| {
                (counts < ONE_WAITS).then(|| counts.saturating_sub(1))
            })
            .is_ok()
    }

    /// Gives free permits to the first waiters and wakes them. The holder of `own` may get a
    /// permit, too, but is not woken, since it checks its seat anyway.
    fn give(&self, mut queue: MutexGuard<'_, Queue>, own: Option<&Arc<Seat>>) {
        let now = self.now();
        let queued = &mut *queue;
        queued.given.retain(|(given, _)| given.seat.is(GIVEN));
        let mut woken = Vec::new();
        // While the queue is not empty, permits change only under its lock.
        while self.counts.load(Ordering::Acquire) & TAKEN < self.permits {
            let claims = queued.waiting.iter().map(Waiting::claim);
            let Some(first) = queued.accounts.first(claims, now) else {
                break;
            };
            let waiting = queued.waiting.swap_remove(first);
            // One guest fewer waits, and one more permit is taken.
            self.counts.fetch_sub(ONE_WAITS - 1, Ordering::AcqRel);
            waiting.seat.state.store(GIVEN, Ordering::Release);
            if !own.is_some_and(|own| Arc::ptr_eq(own, &waiting.seat)) {
                woken.push(waiting.waker.clone());
            }
            queued.given.push((waiting, now));
        }
        drop(queue);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Reclaims the turns that were given at least `patience` ago and not taken, and gives them to
    /// other guests.
    pub(super) fn reclaim(&self, patience: Duration) {
        let mut queue = lock(&self.queue);
        let now = self.now();
        let late: Vec<_> = queue
            .given
            .extract_if(.., |(given, at)| {
                now.saturating_sub(*at) >= patience && given.seat.turn(GIVEN, WAITS)
            })
            .collect();
        for (late, _) in late {
            late.seat.tardy.store(true, Ordering::Relaxed);
            queue.waiting.push(late);
            self.counts.fetch_add(ONE_WAITS - 1, Ordering::AcqRel);
        }
        self.give(queue, None);
    }
}

/// The accounts from which a call spends: the account of the root call's principal, and this
/// principal's account for the driver's publisher.
#[derive(Debug, Clone, Copy)]
pub struct Spender<'a> {
    /// The turns of the call's host.
    pub turns: &'a Turns,
    /// The principal.
    pub principal: &'a str,
    /// The publisher.
    pub publisher: &'a str,
}

/// The polls of one guest, and whether it was woken while it was polled.
#[derive(Debug, Default)]
pub(super) struct Polls {
    count: AtomicU32,
    woken: AtomicBool,
    task: AtomicWaker,
}

impl Polls {
    /// How often the guest has been polled. Each yield increases this.
    pub(super) fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// Counts a poll.
    pub(super) fn counted(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

impl Wake for Polls {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.task.wake();
    }
}

/// The turns of one guest. Dropping it returns the guest's permit.
pub(super) struct Turn<'a> {
    spender: Spender<'a>,
    /// Its accounts, once it has waited or its time was booked.
    payer: Option<Payer>,
    phase: Phase,
    unbooked: Duration,
}

enum Phase {
    /// The guest does not need a turn.
    Idle,
    Waits(Arc<Seat>, Waker),
    Runs,
}

impl<'a> Turn<'a> {
    pub(super) fn new(spender: Spender<'a>) -> Self {
        Self {
            spender,
            payer: None,
            phase: Phase::Idle,
            unbooked: Duration::ZERO,
        }
    }

    /// Ready if the guest may be polled; then [`Turn::run`] follows. Otherwise the task is woken
    /// when its turn has come.
    pub(super) fn begin(&mut self, context: &Context<'_>) -> Poll<()> {
        let turns = self.spender.turns;
        match &mut self.phase {
            Phase::Runs => return Poll::Ready(()),
            Phase::Idle if turns.take() => {
                self.phase = Phase::Runs;
                return Poll::Ready(());
            }
            Phase::Idle => {
                let mut queue = lock(&turns.queue);
                self.book(&mut queue);
                let seat = self.claim(&mut queue, context);
                turns.give(queue, Some(&seat));
            }
            Phase::Waits(seat, waker) => {
                seat.tardy.store(false, Ordering::Relaxed);
                if !waker.will_wake(context.waker()) {
                    waker.clone_from(context.waker());
                    let mut queue = lock(&turns.queue);
                    let own = |waiting: &&mut Waiting| Arc::ptr_eq(&waiting.seat, seat);
                    if let Some(own) = queue.waiting.iter_mut().find(own) {
                        own.waker.clone_from(waker);
                    }
                }
            }
        }
        match &self.phase {
            Phase::Waits(seat, _) if seat.turn(GIVEN, OVER) => {
                self.phase = Phase::Runs;
                Poll::Ready(())
            }
            _ => Poll::Pending,
        }
    }

    /// Reclaims turns that were not taken.
    pub(super) fn watch(&self) {
        self.spender.turns.reclaim(STALLED_TURN_INTERVAL);
    }

    /// Polls the guest for one slice, after [`Turn::begin`] was ready. Also returns the time when
    /// the slice ended. `waker` is the waker of `polls`.
    pub(super) fn run<F: Future + Unpin>(
        &mut self,
        guest: &mut F,
        began: Instant,
        polls: &Polls,
        waker: &Waker,
        context: &Context<'_>,
    ) -> (Poll<F::Output>, Instant) {
        polls.task.register(context.waker());
        polls.woken.store(false, Ordering::Release);
        let polled = Pin::new(guest).poll(&mut Context::from_waker(waker));
        let ended = Instant::now();
        let yields = polled.is_pending() && polls.woken.load(Ordering::Acquire);
        self.end(ended.saturating_duration_since(began), yields, context);
        (polled, ended)
    }

    /// Ends a slice that took `took`.
    fn end(&mut self, took: Duration, yields: bool, context: &Context<'_>) {
        let turns = self.spender.turns;
        self.unbooked = self.unbooked.saturating_add(took);
        self.phase = Phase::Idle;
        if turns.put() {
            if self.unbooked >= UNBOOKED {
                self.book(&mut lock(&turns.queue));
            }
            return;
        }
        let mut queue = lock(&turns.queue);
        self.book(&mut queue);
        let seat = yields.then(|| self.claim(&mut queue, context));
        turns.counts.fetch_sub(1, Ordering::AcqRel);
        // A guest that yields is not woken: it has woken its task, which checks its seat.
        turns.give(queue, seat.as_ref());
    }

    /// Adds the guest to the queue.
    fn claim(&mut self, queue: &mut Queue, context: &Context<'_>) -> Arc<Seat> {
        let payer = self.payer(queue);
        let number = queue.claims;
        queue.claims = queue.claims.saturating_add(1);
        let seat = Arc::new(Seat::default());
        let waker = context.waker().clone();
        queue.waiting.push(Waiting {
            seat: seat.clone(),
            waker: waker.clone(),
            payer,
            number,
        });
        let counts = &self.spender.turns.counts;
        counts.fetch_add(ONE_WAITS, Ordering::AcqRel);
        self.phase = Phase::Waits(seat.clone(), waker);
        seat
    }

    /// Books the spent time to the accounts.
    fn book(&mut self, queue: &mut Queue) {
        let payer = self.payer(queue);
        let spent = std::mem::take(&mut self.unbooked);
        queue.accounts.spend(payer, spent, self.spender.turns.now());
    }

    fn payer(&mut self, queue: &mut Queue) -> Payer {
        let Spender {
            turns,
            principal,
            publisher,
        } = self.spender;
        *self
            .payer
            .get_or_insert_with(|| queue.accounts.open(principal, publisher, turns.now()))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let turns = self.spender.turns;
        let mut runs = match &self.phase {
            Phase::Runs => !turns.put(),
            Phase::Idle | Phase::Waits(..) => false,
        };
        if !runs && self.payer.is_none() {
            return;
        }
        let mut queue = lock(&turns.queue);
        if let Phase::Waits(seat, _) = &self.phase {
            let own = |waiting: &Waiting| Arc::ptr_eq(&waiting.seat, seat);
            match queue.waiting.iter().position(own) {
                Some(index) => {
                    queue.waiting.swap_remove(index);
                    turns.counts.fetch_sub(ONE_WAITS, Ordering::AcqRel);
                }
                // The guest may have been given a turn that it has not taken.
                None => runs = seat.turn(GIVEN, OVER),
            }
        }
        if let Some(payer) = self.payer {
            self.book(&mut queue);
            queue.accounts.close(payer);
        }
        if runs {
            turns.counts.fetch_sub(1, Ordering::AcqRel);
        }
        turns.give(queue, None);
    }
}

#[cfg(test)]
mod tests;
