//! The state that all requests of one call share: its limits, placeholders, secrets and usage.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use toolward_policy::CallLimits;

use crate::error::{Limit, LimitKind, Stage, Timeout};
use crate::meter::Meter;
use crate::secret::SecretValues;
use crate::secret::placeholder::Placeholders;
use crate::secret::sent_secrets::SentSecrets;

pub(crate) struct CallState {
    pub(crate) limits: CallLimits,
    /// When the call ends at the latest.
    pub(crate) deadline: Instant,
    pub(crate) meter: Meter,
    pub(crate) placeholders: Placeholders,
    pub(crate) secrets: SentSecrets,
    in_flight: AtomicU32,
}

impl CallState {
    pub(crate) fn new(
        limits: CallLimits,
        deadline: Instant,
        outer: Option<Meter>,
        values: Arc<dyn SecretValues>,
    ) -> CallState {
        CallState {
            meter: Meter::new(&limits, outer),
            limits,
            deadline,
            placeholders: Placeholders::default(),
            secrets: SentSecrets::new(values),
            in_flight: AtomicU32::new(0),
        }
    }

    /// Counts a request. The request counts as in flight until the returned slot is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Result<RequestSlot, Limit> {
        self.meter.request()?;
        let before = self.in_flight.fetch_add(1, Ordering::AcqRel);
        let slot = RequestSlot {
            call: Arc::clone(self),
        };
        let (used, allowed) = (u64::from(before) + 1, self.limits.http_requests);
        Limit::check(LimitKind::RequestsAtOnce, used, allowed)?;
        Ok(slot)
    }
}

/// A request counts as in flight until its slot is dropped.
pub(crate) struct RequestSlot {
    pub(crate) call: Arc<CallState>,
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        self.call.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Timeouts that the guest requests. They can only shorten the call's limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// The time for opening a connection, including the wait for a permit, name resolution and TLS.
    pub connect: Option<Duration>,
    /// The time from the open connection to the response's head.
    pub first_byte: Option<Duration>,
    /// The time between two pieces of the response's body.
    pub between_bytes: Option<Duration>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestClock {
    /// When the request times out, in any stage.
    until: Instant,
    /// When the call ends.
    deadline: Instant,
    pub(crate) timeouts: Timeouts,
}

impl RequestClock {
    pub(crate) fn start(request: Duration, deadline: Instant, timeouts: Timeouts) -> RequestClock {
        let now = Instant::now();
        let until = now.checked_add(request).unwrap_or(deadline).min(deadline);
        RequestClock {
            until,
            deadline,
            timeouts,
        }
    }

    /// The end of a stage that starts now, with the guest's timeout `own` for it.
    pub(crate) fn end(&self, own: Option<Duration>) -> Instant {
        own.and_then(|own| Instant::now().checked_add(own))
            .map_or(self.until, |end| end.min(self.until))
    }

    pub(crate) fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    pub(crate) fn timeout(&self, stage: Stage) -> Timeout {
        let deadline = Instant::now() >= self.deadline;
        Timeout { stage, deadline }
    }

    /// Runs `future` until `end`. The caller pins the future. If it were moved in here, the
    /// caller's future would have space for it twice.
    pub(crate) async fn within<T>(
        &self,
        end: Instant,
        stage: Stage,
        future: impl Future<Output = T> + Unpin,
    ) -> Result<T, Timeout> {
        // `timeout_at` lets a ready future finish even after `end`. Without this check, a runtime
        // that guests keep busy would stretch the time.
        if Instant::now() >= end {
            return Err(self.timeout(stage));
        }
        tokio::time::timeout_at(end.into(), future)
            .await
            .map_err(|_| self.timeout(stage))
    }
}
