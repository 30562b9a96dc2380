//! The scope of a call: its principal, approver, observer and callers.

use std::sync::Arc;
use std::time::Instant;

use toolward_ledger::record::Native;

use crate::api::LOCAL;
use crate::api::approval::Approver;
use crate::api::event::Observer;
use crate::api::facts::{Cancellation, SharedCancellation};
use crate::elicitation::Answerable;
use crate::imports::CallBudget;

/// The values that stay the same from the request to the last attempt. All stages share them.
#[derive(Clone)]
pub struct CallScope {
    pub(crate) principal: Arc<str>,
    /// The approver of this call, instead of the host's approver.
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    /// The calls that led to this one.
    pub(crate) chain: CallChain,
    /// The questions of a driver that the caller can get answered.
    pub(crate) answerable: Answerable,
    /// Whether the reply may come before the driver's instance is dropped.
    pub(crate) answers_first: bool,
    /// The ids of the call in the caller's protocol.
    pub(crate) native: Native,
    /// Holds the reason of a cancellation; `None` if only the caller can cancel.
    pub(crate) cancellation: Option<SharedCancellation>,
}

impl CallScope {
    /// Why the call is cancelled, if its future is dropped now.
    pub(crate) fn cancelled_by(&self) -> Cancellation {
        match (self.chain.caller(), &self.cancellation) {
            (Some(_), _) => Cancellation::Parent,
            (None, Some(cancellation)) => cancellation.get(),
            (None, None) => Cancellation::Caller,
        }
    }
}

impl Default for CallScope {
    fn default() -> Self {
        Self {
            principal: Arc::from(LOCAL),
            approver: None,
            observer: None,
            chain: CallChain::default(),
            answerable: Answerable::default(),
            answers_first: false,
            native: Native::default(),
            cancellation: None,
        }
    }
}

/// The callers of a call; empty if the host's caller made it.
#[derive(Clone, Default)]
pub(crate) struct CallChain(Option<Arc<Caller>>);

/// A call that calls another.
#[derive(Clone)]
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
    /// The tools whose calls the caller's approval covers.
    pub(crate) covered: Vec<String>,
    /// Whether the caller is unsigned, in development.
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

    /// The bundles of the tools in `names` and of their drivers.
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
