//! One gate: the places of running and waiting calls, and the memory and files that they hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolward_policy::{LimitName, Limits};
use toolward_sandbox::exceeded::Exceeded;
use toolward_state::{CallPlace, PlaceLimits, PlaceReply, Places, QueueFull, StateError};

use crate::api::result::{CallError, ErrorCode, Result};

/// The retry-after of a call that is refused because something is full.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Bounds how many calls are inside and how many wait to enter.
#[derive(Debug)]
pub(crate) struct Gate {
    places: Arc<dyn Places>,
    limits: PlaceLimits,
    /// Permits of calls that released their place while they wait for a nested call. There are only
    /// as many as places, since the instances of these calls stay in memory.
    parked: Arc<Semaphore>,
    name: LimitName,
    /// Bytes that the calls of this principal or publisher hold.
    pub(super) memory: Held,
    /// The part of `memory` that results hold until their clients have read them.
    pub(super) unread: Held,
    /// Files that the calls of this principal or publisher hold open.
    pub(super) files: Held,
}

impl Gate {
    pub(crate) fn new(name: LimitName, limits: PlaceLimits, places: Arc<dyn Places>) -> Arc<Self> {
        let limits = PlaceLimits {
            running: limits.running.max(1),
            ..limits
        };
        Arc::new(Self {
            places,
            limits,
            parked: Arc::new(Semaphore::new(limits.running as usize)),
            name,
            memory: Held::default(),
            unread: Held::default(),
            files: Held::default(),
        })
    }

    /// Acquires a place, waiting if needed; first come, first served.
    pub(crate) async fn enter(
        &self,
        bounded: bool,
        deadline: Option<Instant>,
    ) -> Result<CallPlace> {
        if let Some(place) = self.places.clone().try_enter() {
            return Ok(place);
        }
        match self.places.clone().enter(bounded, deadline).await {
            Ok(PlaceReply::Entered(place)) => Ok(place),
            Ok(PlaceReply::Full(queue)) => Err(self.refused(queue)),
            Err(StateError::Late) => Err(CallError::of(
                ErrorCode::TIMEOUT,
                format!("the call waited until its deadline ({})", self.name),
            )),
            Err(error) => {
                tracing::error!(%error, "a call can't enter");
                Err(CallError::internal(error.to_string()))
            }
        }
    }

    /// Reserves a place in the queue for a call that is going to enter. Fails if the queue has no
    /// room.
    pub(super) fn reserve(&self) -> Result<CallPlace> {
        let reserved = self.places.clone().reserve();
        reserved.map_err(|queue| self.refused(queue))
    }

    fn refused(&self, QueueFull { waiting }: QueueFull) -> CallError {
        let (limit, hint) = match self.name.own() {
            None => (
                LimitName::Queue,
                format!(
                    "try again later, or raise the limits `{}` or `queue`",
                    self.name
                ),
            ),
            // The hint does not name this limit: it is one of the host's fixed limits, which the
            // operator can't change.
            Some(_) => (self.name, "try again later".to_owned()),
        };
        full(
            format!("{waiting} calls are waiting already ({})", self.name),
            Exceeded::new(
                limit,
                u64::from(waiting).saturating_add(1),
                u64::from(self.limits.waiting),
            ),
            hint,
        )
    }

    /// A parking permit for a call that waits for a nested call. Fails instead of waiting.
    pub(super) fn park(&self) -> Result<OwnedSemaphorePermit> {
        self.parked.clone().try_acquire_owned().map_err(|_| {
            let most = u64::from(self.limits.running);
            full(
                format!(
                    "{most} calls are waiting for tools that they call ({})",
                    self.name
                ),
                Exceeded::over(self.name, most),
                format!("try again later, or raise the limit `{}`", self.name),
            )
        })
    }
}

pub(super) fn full(message: String, limit: Exceeded, hint: String) -> CallError {
    CallError::of(ErrorCode::RATE_LIMITED, message)
        .with_limit(limit)
        .with_hint(hint)
        .with_retry_after(RETRY_AFTER)
}

/// The memory or the open files that all calls of one admission hold together, with their limits.
#[derive(Debug)]
pub(super) struct Sum {
    name: LimitName,
    pub(super) allowed: u64,
    principal_share: u64,
    publisher_share: u64,
    used: Held,
}

/// A held amount: of one principal, of one publisher, or of all calls.
#[derive(Debug, Default)]
pub(super) struct Held(AtomicU64);

/// The error if no room is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Full {
    pub(super) exceeded: Exceeded,
    pub(super) share: Share,
}

/// The part that is full: a principal's share, a publisher's share or the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    Principal,
    Publisher,
    All,
}

impl Held {
    pub(super) fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn give_back(&self, amount: u64) {
        self.0.fetch_sub(amount, Ordering::SeqCst);
    }
}

impl Sum {
    /// Divides `allowed` into shares by the limits on running calls. With very many slots, a
    /// principal's part would be too small for a call. So a share is at least `call`, the amount
    /// that one call needs to start, but at most `allowed`.
    pub(super) fn new(name: LimitName, allowed: u64, call: u64, limits: &Limits) -> Self {
        let concurrency = u128::from(limits.concurrency.max(1));
        let share = |calls: u32| {
            let share = u128::from(allowed).saturating_mul(u128::from(calls)) / concurrency;
            u64::try_from(share)
                .unwrap_or(u64::MAX)
                .max(call)
                .min(allowed)
        };
        Self {
            name,
            allowed,
            principal_share: share(limits.concurrency_per_principal),
            publisher_share: share(limits.concurrency_per_publisher),
            used: Held::default(),
        }
    }

    pub(super) fn used(&self) -> u64 {
        self.used.now()
    }

    /// Takes an amount. Shares and sum may be exceeded by up to `overdraft`.
    pub(super) fn take(
        &self,
        principal: &Held,
        publisher: Option<&Held>,
        amount: u64,
        overdraft: u64,
    ) -> Result<(), Full> {
        let own = [
            Some((principal, self.principal_share, Share::Principal)),
            publisher.map(|publisher| (publisher, self.publisher_share, Share::Publisher)),
        ];
        let all = (&self.used, self.allowed, Share::All);
        let parts = own.into_iter().flatten().chain([all]);
        for (number, (held, allowed, share)) in parts.clone().enumerate() {
            let taken = self.add(held, amount, allowed.saturating_add(overdraft), share);
            if taken.is_err() {
                (parts.take(number)).for_each(|(held, ..)| held.give_back(amount));
                return taken;
            }
        }
        Ok(())
    }

    pub(super) fn give_back(&self, principal: &Held, publisher: Option<&Held>, amount: u64) {
        for held in [Some(principal), publisher, Some(&self.used)] {
            held.into_iter().for_each(|held| held.give_back(amount));
        }
    }

    /// The error of a call that must end to make room.
    pub(super) fn exceeded(&self) -> Exceeded {
        Exceeded::new(self.name, self.used().max(self.allowed), self.allowed)
    }

    fn add(&self, held: &Held, amount: u64, allowed: u64, share: Share) -> Result<(), Full> {
        let sum = |used: u64| used.checked_add(amount).filter(|sum| *sum <= allowed);
        let added = held.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, sum);
        added.map(drop).map_err(|used| Full {
            exceeded: Exceeded::new(self.name, used.saturating_add(amount), allowed),
            share,
        })
    }
}
