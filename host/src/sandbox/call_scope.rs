//! On whose behalf a call is made, and who takes part in it.

use std::sync::Arc;

use toolward_ledger::record::Native;

use super::call_chain::CallChain;
use crate::api::approval::Approver;
use crate::api::cancellation::{Cancellation, SharedCancellation};
use crate::api::observer::Observer;
use crate::api::principal::LOCAL;
use crate::elicitation::Answerable;

/// What stays the same from the request to the last attempt, shared by all stages.
#[derive(Clone)]
pub struct CallScope {
    pub(crate) principal: Arc<str>,
    /// Who asks people, instead of the host's own approver.
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    /// The calls that led to this one.
    pub(crate) chain: CallChain,
    /// Which questions of a driver the caller can have answered.
    pub(crate) answerable: Answerable,
    /// Whether the reply may come before the driver's instance is dropped.
    pub(crate) answers_first: bool,
    /// What the caller's protocol calls the call.
    pub(crate) native: Native,
    /// Set by whoever cancels the call; without it that is the caller.
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
