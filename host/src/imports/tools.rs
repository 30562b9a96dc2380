//! Nested calls: a guest calls another tool. While the caller waits, it has no slot. The nested
//! call goes through the whole pipeline, within what is left of the budgets of the root: the
//! outermost call, which no tool made.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use toolward_contract::capability::Class;
use toolward_ledger::record::Native;
use toolward_sandbox::invocation::ToolCall;
use toolward_sandbox::violations::{EndsCall, Violations};
use toolward_support::helper::lock;

use super::{BoxFuture, CallerBudget, ToolReply};
use crate::access::Access;
use crate::admission::{MemoryLease, Path, Slot};
use crate::api::request::Request;
use crate::api::result::{CallError, Reply};
use crate::call_scope::{CallChain, CallScope, Caller};
use crate::elicitation::Answerable;

/// Runs nested calls.
pub(crate) trait CallTools: Send + Sync {
    /// Runs a call through all stages.
    fn call_tool(self: Arc<Self>, call: Request) -> BoxFuture<'static, Reply>;
}

/// The slot of a running call; empty while the call waits for a nested call.
#[derive(Debug, Clone, Default)]
pub(crate) struct SlotCell(Arc<Mutex<Option<Slot>>>);

impl SlotCell {
    pub(crate) fn new(slot: Slot) -> Self {
        Self(Arc::new(Mutex::new(Some(slot))))
    }

    pub(crate) fn take(&self) -> Option<Slot> {
        lock(&self.0).take()
    }

    /// The memory of the call, while it has its slot.
    pub(crate) fn memory(&self) -> Option<Arc<MemoryLease>> {
        let slot = lock(&self.0);
        slot.as_ref().map(|slot| slot.memory.clone())
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).is_none()
    }

    pub(crate) fn put(&self, slot: Slot) {
        *lock(&self.0) = Some(slot);
    }
}

/// The state for nested calls. Made only if tools are granted.
pub(crate) struct NestedCalls {
    pub(crate) host: Arc<dyn CallTools>,
    pub(crate) access: Arc<Access>,
    /// The call that calls tools. Its remaining fuel and memory are filled in for each nested call.
    pub(crate) caller: Caller,
    pub(crate) scope: Arc<CallScope>,
    pub(crate) gates: Path,
    pub(crate) slot: SlotCell,
}

impl NestedCalls {
    /// Calls a tool. An error means that the caller has no grant for the tool, and that policy ends
    /// a call at such a violation.
    pub(crate) async fn call(
        &self,
        request: ToolCall,
        left: CallerBudget,
        violations: &Violations,
    ) -> Result<ToolReply, EndsCall> {
        let refused = |error: CallError| Ok(ToolReply::refused(error));
        if !self.access.grant.has(&Class::Tool, &request.tool) {
            violations.record(&Class::Tool, &request.tool)?;
            return refused(CallError::not_granted(&request.tool));
        }
        let depth = self.caller.names.len().saturating_sub(1);
        if let Err(error) = self.caller.budget.count_call(depth) {
            return refused(error);
        }
        let Some(slot) = self.slot.take() else {
            return refused(CallError::internal("the call has no slot"));
        };
        let parked = match self.gates.park(slot) {
            Ok(parked) => parked,
            Err(left) => {
                let (slot, error) = *left;
                self.slot.put(slot);
                return refused(error);
            }
        };
        let chain = CallChain::of(Caller {
            fuel: left.fuel,
            memory_bytes: left.memory_bytes,
            ..self.caller.clone()
        });
        let scope = CallScope {
            principal: self.scope.principal.clone(),
            approver: self.scope.approver.clone(),
            observer: None,
            chain,
            answerable: Answerable::default(),
            answers_first: false,
            native: Native::default(),
            cancellation: None,
        };
        let nested = Request {
            scope: Arc::new(scope),
            timeout: request.timeout_ms.map(Duration::from_millis),
            ..Request::new(request.tool, request.input)
        };
        let reply = self.host.clone().call_tool(nested).await;
        violations.absorb(&reply.metadata.violations, reply.metadata.violations_total);
        let result = match self.gates.resume(parked, self.caller.deadline).await {
            Ok(slot) => {
                self.slot.put(slot);
                reply.result
            }
            Err(error) => Err(error),
        };
        Ok(ToolReply {
            fuel: reply.metadata.fuel,
            peak_memory: reply.metadata.peak_memory,
            result,
        })
    }
}
