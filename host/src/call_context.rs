//! The context of a call that all attempts of a driver share.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use toolward_contract::driver::Implements;
use toolward_contract::tool::Tool;
use toolward_policy::Grant;
use toolward_sandbox::files::{FileGrant, FileLimits};
use toolward_sandbox::limits::CallLimits;
use toolward_sandbox::run::CallGrant;
use toolward_sandbox::violations::Violations;
use toolward_support::helper::lock;

use crate::access::Access;
use crate::api::result::Result;
use crate::call_scope::CallScope;
use crate::elicitation::Asker;
use crate::executor::AttemptMemory;
use crate::executor::limits::Clock;
use crate::extensions::Extensions;
use crate::imports::{CallBudget, Imports, SlotCell};

/// One call, as its executor sees it.
pub struct CallContext {
    pub(crate) contract: Arc<Tool>,
    pub(crate) implements: Arc<Implements>,
    pub(crate) limits: CallLimits,
    pub(crate) access: Arc<Access>,
    pub(crate) budget: Arc<CallBudget>,
    pub(crate) violations: Violations,
    pub(crate) scope: Arc<CallScope>,
    /// The imports that answer the driver's requests.
    pub(crate) imports: Arc<dyn Imports>,
    pub(crate) clock: Clock,
    /// The slot of the call, which holds its memory.
    pub(crate) slot: SlotCell,
    /// The questions that the driver may ask.
    pub(crate) asker: Asker,
    /// Whether the reply may come before `remains` is dropped.
    pub(crate) answers_first: bool,
    /// Values that take time to drop, and may be dropped after the reply.
    pub(crate) remains: Mutex<Option<Box<dyn Send>>>,
    /// Values that features attached to the call.
    pub(crate) extensions: Extensions,
}

impl CallContext {
    /// The contract of the tool.
    pub fn contract(&self) -> &Tool {
        &self.contract
    }

    /// The driver's entry for the contract.
    pub fn implements(&self) -> &Implements {
        &self.implements
    }

    /// The time at which the call ends at the latest.
    pub fn deadline(&self) -> Instant {
        self.clock.deadline
    }

    /// Counts `bytes`, all that an executor holds now, towards the memory of the call. Bytes beyond
    /// the call's own limit are not counted.
    ///
    /// # Errors
    /// If the call's principal, its publisher or all calls together have no memory left.
    pub fn cover(&self, bytes: u64) -> Result<()> {
        let memory = AttemptMemory::of(&self.slot, self.limits.memory_bytes);
        memory.cover(bytes).map(drop)
    }

    /// Keeps values of an attempt that may be dropped after the reply.
    pub(crate) fn leave(&self, remains: Box<dyn Send>) {
        *lock(&self.remains) = Some(remains);
    }

    /// The imports that answer the driver's requests.
    pub fn imports(&self) -> &dyn Imports {
        &*self.imports
    }

    /// The principal of the call.
    pub fn principal(&self) -> &str {
        &self.scope.principal
    }

    /// The most bytes of a driver's printed output that are kept.
    pub fn stdio_bytes(&self) -> u64 {
        self.limits.stdio_bytes
    }

    /// The policy's grant for the driver.
    pub fn grant(&self) -> &Grant {
        &self.access.grant
    }

    /// The part of this context that the sandbox needs.
    pub(crate) fn sandboxed(&self) -> CallGrant<'_> {
        let plan = self.access.files.as_ref().ok().and_then(Option::as_ref);
        CallGrant {
            limits: &self.limits,
            violations: &self.violations,
            imports: &self.imports,
            files: plan.map(|plan| FileGrant {
                plan: plan.clone(),
                limits: FileLimits::of(&self.limits).within(self.budget.file_limits),
                counters: self.budget.files(),
            }),
        }
    }
}
