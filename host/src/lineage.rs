//! What calls of tools by tools share: the root's deadline and budgets, and
//! who called whom.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use toolward_egress::Meter;

use crate::limits::CallLimits;
use crate::observer::Observer;
use crate::request::Request;
use crate::result::{CallError, ErrorClass, ErrorCode, Hit, Reply};
use crate::sandbox::files::{FileCounters, FileLimits};
use crate::sandbox::keyvalue;
use crate::sandbox::secrets::Stores;

/// Where a call comes from: nowhere, or from another call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lineage(Option<Arc<Caller>>);

/// A call that calls another.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) root: Arc<Root>,
    /// `id@major` of the tools from the root to the caller.
    pub(crate) names: Vec<String>,
    /// The bundles of these tools and of their drivers.
    pub(crate) bundles: Vec<String>,
    pub(crate) deadline: Instant,
    /// Fuel that the caller has left.
    pub(crate) fuel: u64,
    /// Bytes of memory that the caller may still take.
    pub(crate) memory_bytes: u64,
    /// The tools whose calls a person has said yes to.
    pub(crate) covered: Vec<String>,
    /// Whether the caller is unsigned, under work.
    pub(crate) dev: bool,
}

impl Lineage {
    pub(crate) fn of(caller: Caller) -> Self {
        Self(Some(Arc::new(caller)))
    }

    pub(crate) fn caller(&self) -> Option<&Caller> {
        self.0.as_deref()
    }

    /// The tools that led here, the first one first.
    pub(crate) fn names(&self) -> Vec<String> {
        self.caller()
            .map(|caller| caller.names.clone())
            .unwrap_or_default()
    }

    /// The bundles of these tools and of their drivers.
    pub(crate) fn bundles(&self) -> Vec<String> {
        self.caller()
            .map(|caller| caller.bundles.clone())
            .unwrap_or_default()
    }

    /// The tools whose calls a person has said yes to.
    pub(crate) fn covered(&self) -> &[String] {
        self.caller().map_or(&[], |caller| &caller.covered)
    }

    /// Whether a person's yes to a call above covers a call of this tool.
    pub(crate) fn covers(&self, tool: &str) -> bool {
        self.covered().iter().any(|covered| covered == tool)
    }
}

/// Whoever can carry out a call of a tool by a tool: the host, seen from inside
/// a sandbox.
pub(crate) trait CallTools: Send + Sync {
    /// Carries it out, through all stages.
    fn call_tool(self: Arc<Self>, request: Request) -> Pin<Box<dyn Future<Output = Reply> + Send>>;
}

/// What is counted for a call and all calls below it together.
pub(crate) struct Root {
    calls: AtomicU64,
    calls_allowed: u64,
    depth_allowed: u32,
    /// Requests and bytes on the network.
    pub(crate) network: Meter,
    pub(crate) files: Arc<FileCounters>,
    /// What the root itself may do with files: no call below it may do more.
    pub(crate) file_limits: FileLimits,
    pub(crate) buckets: Arc<keyvalue::Counters>,
    pub(crate) stores: Arc<Stores>,
    /// Who observes the root.
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

impl Root {
    pub(crate) fn new(
        limits: &CallLimits,
        depth_allowed: u32,
        observer: Option<Arc<dyn Observer>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            calls: AtomicU64::new(0),
            calls_allowed: limits.nested_calls,
            depth_allowed,
            network: Meter::budget(limits.http_requests_total, limits.egress_bytes),
            files: Arc::default(),
            file_limits: FileLimits::of(limits),
            buckets: Arc::default(),
            stores: Arc::default(),
            observer,
        })
    }

    /// Counts a call of another tool by a call at `depth` (the root's is 0).
    pub(crate) fn count_call(&self, depth: usize) -> Result<(), CallError> {
        let over = |limit, used, allowed| {
            Err(CallError::new(
                ErrorCode::RATE_LIMITED,
                ErrorClass::RateLimited,
                format!("calls of tools by tools: {used}, {allowed} are allowed (limit `{limit}`)"),
            )
            .with_limit(Hit {
                limit,
                used,
                allowed,
            })
            .with_hint(format!("raise the host's limit `{limit}`")))
        };
        let depth = (depth as u64).saturating_add(1);
        if depth > u64::from(self.depth_allowed) {
            return over("nested_depth", depth, u64::from(self.depth_allowed));
        }
        let used = self.calls.fetch_add(1, Ordering::AcqRel).saturating_add(1);
        if used > self.calls_allowed {
            return over("nested_calls", used, self.calls_allowed);
        }
        Ok(())
    }
}

impl std::fmt::Debug for Root {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Root")
            .field("calls", &self.calls)
            .finish_non_exhaustive()
    }
}
