//! One gate: the places of calls that run and wait, and what these calls hold.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use toolward_policy::LimitName;
use toolward_state::{CallPlace, PlaceLimits, PlaceReply, Places, QueueFull, StateError};

use super::sum::Held;
use crate::api::result::{CallError, ErrorClass, ErrorCode, Hit};

/// The retry-after of a call that found the queue full.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Bounds how many calls are inside and how many wait to enter.
#[derive(Debug)]
pub(crate) struct Gate {
    places: Arc<dyn Places>,
    limits: PlaceLimits,
    /// Calls that released their place while they wait for a tool: at most as many as
    /// there are places. Their instances are in this process.
    parked: Arc<Semaphore>,
    name: LimitName,
    /// Bytes that the calls of this principal or publisher hold.
    pub(super) memory: Held,
    /// Of these, bytes of results that clients have not read.
    pub(super) unread: Held,
    /// Files that they hold open.
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
    ) -> Result<CallPlace, CallError> {
        if let Some(place) = self.places.clone().try_enter() {
            return Ok(place);
        }
        match self.places.clone().enter(bounded, deadline).await {
            Ok(PlaceReply::Entered(place)) => Ok(place),
            Ok(PlaceReply::Full(queue)) => Err(self.refused(queue)),
            Err(StateError::Late) => Err(CallError::new(
                ErrorCode::TIMEOUT,
                ErrorClass::Timeout,
                format!("the call waited until its deadline ({})", self.name),
            )),
            Err(error) => {
                tracing::error!(%error, "a call can't enter");
                Err(CallError::internal(error.to_string()))
            }
        }
    }

    /// A place among those that wait, for a call that is going to enter: refused where the call would be.
    pub(super) fn reserve(&self) -> Result<CallPlace, CallError> {
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
            // No hint to raise it: the operator can't change the host's own
            // limits.
            Some(_) => (self.name, "try again later".to_owned()),
        };
        full(
            format!("{waiting} calls are waiting already ({})", self.name),
            limit,
            u64::from(waiting).saturating_add(1),
            u64::from(self.limits.waiting),
            hint,
        )
    }

    /// A parking permit for a call that waits for a tool; fails instead of waiting.
    pub(super) fn park(&self) -> Result<OwnedSemaphorePermit, CallError> {
        self.parked.clone().try_acquire_owned().map_err(|_| {
            let most = u64::from(self.limits.running);
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
