//! What all requests of one call share: its limits, placeholders and secrets, and
//! what it has used.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::call_limits::CallLimits;
use crate::error::{Limit, LimitKind};
use crate::meter::Meter;
use crate::secret::SecretValues;
use crate::secret::placeholder::Placeholders;
use crate::secret::sent_secrets::SentSecrets;

pub(crate) struct CallState {
    pub(crate) limits: CallLimits,
    pub(crate) meter: Meter,
    pub(crate) placeholders: Placeholders,
    pub(crate) secrets: SentSecrets,
    in_flight: AtomicU32,
}

impl fmt::Debug for CallState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallState")
            .field("limits", &self.limits)
            .field("usage", &self.meter.usage())
            .finish_non_exhaustive()
    }
}

impl CallState {
    pub(crate) fn new(
        limits: CallLimits,
        outer: Option<Meter>,
        values: Arc<dyn SecretValues>,
    ) -> CallState {
        CallState {
            limits,
            meter: Meter::new(limits.requests_total, limits.total_bytes, outer),
            placeholders: Placeholders::default(),
            secrets: SentSecrets::new(values),
            in_flight: AtomicU32::new(0),
        }
    }

    /// Counts a request in, until the slot is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Result<Slot, Limit> {
        self.meter.request()?;
        let before = self.in_flight.fetch_add(1, Ordering::AcqRel);
        let slot = Slot(Arc::clone(self));
        let allowed = self.limits.requests_at_once;
        if before >= allowed {
            return Err(Limit {
                kind: LimitKind::RequestsAtOnce,
                used: u64::from(before) + 1,
                allowed: u64::from(allowed),
            });
        }
        Ok(slot)
    }
}

/// One of the requests in flight, until it is dropped.
#[derive(Debug)]
pub(crate) struct Slot(Arc<CallState>);

impl Slot {
    pub(crate) fn call(&self) -> &Arc<CallState> {
        &self.0
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}
