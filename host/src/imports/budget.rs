//! The budgets that a call and all its nested calls share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use toolward_egress::Meter;
use toolward_policy::LimitName;
use toolward_sandbox::exceeded::Exceeded;
use toolward_sandbox::files::{FileCounters, FileLimits};
use toolward_sandbox::limits::CallLimits;

use super::{BucketCounters, StoredSecrets};
use crate::admission::Path;
use crate::api::event::Observer;
use crate::api::result::{CallError, ErrorCode, Result};

pub(crate) struct CallBudget {
    calls: AtomicU64,
    calls_allowed: u64,
    depth_allowed: u32,
    /// Requests and bytes on the network.
    pub(crate) network: Meter,
    /// Created when the first of the calls uses files.
    files: OnceLock<Arc<FileCounters>>,
    /// The gates that the root call passed.
    pub(crate) gates: Path,
    /// The root's limits on files, which also bound its nested calls.
    pub(crate) file_limits: FileLimits,
    pub(crate) buckets: BucketCounters,
    pub(crate) stores: Arc<StoredSecrets>,
    /// The observer of the root call.
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

impl CallBudget {
    pub(crate) fn new(
        limits: &CallLimits,
        depth_allowed: u32,
        observer: Option<Arc<dyn Observer>>,
        gates: Path,
    ) -> Arc<Self> {
        Arc::new(Self {
            calls: AtomicU64::new(0),
            calls_allowed: limits.nested_calls,
            depth_allowed,
            network: Meter::new(limits, None),
            files: OnceLock::new(),
            gates,
            file_limits: FileLimits::of(limits),
            buckets: BucketCounters::default(),
            stores: Arc::default(),
            observer,
        })
    }

    /// The counters of files, shared by all the calls.
    pub(crate) fn files(&self) -> Arc<FileCounters> {
        let new = || Arc::new(FileCounters::within(Arc::new(self.gates.clone())));
        self.files.get_or_init(new).clone()
    }

    /// Counts a nested call that a call at `depth` makes. The root call has depth 0.
    pub(crate) fn count_call(&self, depth: usize) -> Result<()> {
        let over = |limit, used, allowed| {
            let message =
                format!("calls of tools by tools: {used}, {allowed} are allowed (limit `{limit}`)");
            Err(CallError::of(ErrorCode::RATE_LIMITED, message)
                .with_limit(Exceeded::new(limit, used, allowed))
                .with_hint(format!("raise the host's limit `{limit}`")))
        };
        let depth = (depth as u64).saturating_add(1);
        if depth > u64::from(self.depth_allowed) {
            return over(LimitName::NestedDepth, depth, u64::from(self.depth_allowed));
        }
        let used = self.calls.fetch_add(1, Ordering::AcqRel).saturating_add(1);
        if used > self.calls_allowed {
            return over(LimitName::NestedCalls, used, self.calls_allowed);
        }
        Ok(())
    }
}
