//! One gate: a semaphore with a bounded queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolward_policy::LimitName;

use super::sum::Held;
use crate::api::result::{CallError, ErrorClass, ErrorCode, Hit};

/// The retry-after of a call that found the queue full.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Bounds how many calls are inside and how many wait to enter.
#[derive(Debug)]
pub(crate) struct Gate {
    slots: Arc<Semaphore>,
    waiting: AtomicU32,
    queue: u32,
    /// Calls that released their permit while they wait for a tool: at most as many as
    /// there are permits.
    parked: Arc<Semaphore>,
    inside: u32,
    name: LimitName,
    /// Bytes that the calls of this principal or publisher hold.
    pub(super) memory: Held,
    /// Of these, bytes of results that clients have not read.
    pub(super) unread: Held,
    /// Files that they hold open.
    pub(super) files: Held,
}

impl Gate {
    pub(crate) fn new(name: LimitName, slots: u32, queue: u32) -> Arc<Self> {
        let inside = slots.max(1);
        let places = || Arc::new(Semaphore::new(inside as usize));
        Arc::new(Self {
            slots: places(),
            waiting: AtomicU32::new(0),
            queue,
            parked: places(),
            inside,
            name,
            memory: Held::default(),
            unread: Held::default(),
            files: Held::default(),
        })
    }

    /// Acquires a permit, waiting if needed; first come, first served.
    pub(crate) async fn enter(&self, bounded: bool) -> Result<OwnedSemaphorePermit, CallError> {
        if let Ok(permit) = self.slots.clone().try_acquire_owned() {
            return Ok(permit);
        }
        let _place = if bounded {
            Some(Place::within(self, self.queue)?)
        } else {
            None
        };
        self.slots.clone().acquire_owned().await.map_err(|_closed| {
            CallError::new(
                ErrorCode::INTERNAL,
                ErrorClass::ExecutionFailed,
                "the host is shutting down",
            )
        })
    }

    /// A place among those that wait, for a call that is going to enter: refused where the call would be.
    pub(super) fn reserve(&self) -> Result<Place<'_>, CallError> {
        let free = self.slots.available_permits();
        Place::within(
            self,
            self.queue
                .saturating_add(u32::try_from(free).unwrap_or(u32::MAX)),
        )
    }

    /// A parking permit for a call that waits for a tool; fails instead of waiting.
    pub(super) fn park(&self) -> Result<OwnedSemaphorePermit, CallError> {
        self.parked.clone().try_acquire_owned().map_err(|_| {
            let most = u64::from(self.inside);
            full(
                format!(
                    "{most} calls are waiting for tools that they call ({})",
                    self.name
                ),
                self.name,
                most.saturating_add(1),
                most,
                format!("try again later, or raise the limit `{}`", self.name),
            )
        })
    }
}

/// A place in the queue; released on drop, so that a cancelled waiter frees it, too.
pub(crate) struct Place<'a>(&'a AtomicU32);

impl<'a> Place<'a> {
    fn within(gate: &'a Gate, most: u32) -> Result<Self, CallError> {
        gate.waiting
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |now| {
                (now < most).then(|| now.saturating_add(1))
            })
            .map(|_before| Self(&gate.waiting))
            .map_err(|now| {
                let (limit, hint) = match gate.name.own() {
                    None => (
                        LimitName::Queue,
                        format!(
                            "try again later, or raise the limits `{}` or `queue`",
                            gate.name
                        ),
                    ),
                    // No hint to raise it: the operator can't change the host's own
                    // limits.
                    Some(_) => (gate.name, "try again later".to_owned()),
                };
                full(
                    format!("{now} calls are waiting already ({})", gate.name),
                    limit,
                    u64::from(now).saturating_add(1),
                    u64::from(gate.queue),
                    hint,
                )
            })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

pub(super) fn full(
    message: String,
    limit: LimitName,
    used: u64,
    allowed: u64,
    hint: String,
) -> CallError {
    CallError::new(ErrorCode::RATE_LIMITED, ErrorClass::RateLimited, message)
        .with_limit(Hit {
            limit,
            used,
            allowed,
        })
        .with_hint(hint)
        .with_retry_after(RETRY_AFTER)
}
