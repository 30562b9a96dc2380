//! The chain of callers above a nested call, and what is left of the nearest caller's
//! budgets.

use std::sync::Arc;
use std::time::Instant;

use crate::imports::CallBudget;

/// The callers of a call; empty if the host's caller made it.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallChain(Option<Arc<Caller>>);

/// A call that calls another.
#[derive(Debug)]
pub(crate) struct Caller {
    /// Its invocation's id.
    pub(crate) invocation: Arc<str>,
    /// The invocation of the first caller.
    pub(crate) root: Arc<str>,
    pub(crate) budget: Arc<CallBudget>,
    /// `id@major` of the tools from the root to the caller.
    pub(crate) names: Arc<[String]>,
    /// The bundles of these tools and of their drivers.
    pub(crate) bundles: Vec<String>,
    pub(crate) deadline: Instant,
    /// Fuel that the caller has left.
    pub(crate) fuel: u64,
    /// Bytes of memory that the caller may still take.
    pub(crate) memory_bytes: u64,
    /// The tools whose calls an approval covers.
    pub(crate) covered: Vec<String>,
    /// Whether the caller is unsigned, under work.
    pub(crate) dev: bool,
}

impl CallChain {
    pub(crate) fn of(caller: Caller) -> Self {
        Self(Some(Arc::new(caller)))
    }

    pub(crate) fn caller(&self) -> Option<&Caller> {
        self.0.as_deref()
    }

    /// The tools that led here, outermost first.
    pub(crate) fn names(&self) -> Arc<[String]> {
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

    /// The tools whose calls an approval covers.
    pub(crate) fn covered(&self) -> &[String] {
        self.caller().map_or(&[], |caller| &caller.covered)
    }

    /// Whether the approval of a caller covers a call of this tool.
    pub(crate) fn covers(&self, tool: &str) -> bool {
        self.covered().iter().any(|covered| covered == tool)
    }
}
