//! The reply of a call that others of its id get.

use std::sync::Arc;

use crate::api::facts::CallFacts;
use crate::api::result::{CallError, Origin, Output, weight};
use crate::withdrawal::Withdrawal;

pub(super) const MAX_REPLY_BYTES: u64 = 4 << 20;

/// What a kept reply takes beside its result.
const OVERHEAD: u64 = 1024;

/// A reply that is kept.
pub(crate) struct KeptReply {
    pub(crate) result: Result<Output, CallError>,
    pub(crate) invocation: String,
    pub(crate) driver: Option<Arc<str>>,
    pub(crate) driver_publisher: Option<Arc<str>>,
    pub(crate) bundle: Option<Arc<str>>,
    pub(crate) origin: Option<Origin>,
    /// Of the bundles that it came from.
    withdrawals: [Arc<Withdrawal>; 2],
    bytes: u64,
}

impl KeptReply {
    /// A copy of a result, with what says where it came from. `None` if it is too large.
    pub(crate) fn of(
        result: &Result<Output, CallError>,
        facts: &CallFacts,
        withdrawals: [Arc<Withdrawal>; 2],
    ) -> Option<Self> {
        let bytes = weight::result(result).saturating_add(OVERHEAD);
        (bytes <= MAX_REPLY_BYTES).then(|| Self {
            result: result.clone(),
            invocation: facts.invocation.clone(),
            driver: facts.driver.clone(),
            driver_publisher: facts.driver_publisher.clone(),
            bundle: facts.bundle.clone(),
            origin: facts.origin,
            withdrawals,
            bytes,
        })
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a bundle that it came from was withdrawn: it is not given any more.
    pub(crate) fn is_withdrawn(&self) -> bool {
        let mut all = self.withdrawals.iter();
        all.any(|withdrawal| withdrawal.withdrawn().is_some())
    }
}
