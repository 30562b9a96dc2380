//! Calls of other tools by a guest: through the whole pipeline, with what is
//! left of the root's budgets. A waiting caller gives up its slot.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::v0_1::tools::Request as ToolRequest;
use super::v0_1::types::{ToolError, ToolOutput};
use crate::access::Access;
use crate::admission::{Path, Slot};
use crate::approval::Approver;
use crate::lineage::{CallTools, Caller, Lineage, Root};
use crate::request::Request;
use crate::result::{self, CallError, ErrorClass, ErrorCode};
use crate::violations::{EndsCall, ViolationKind, Violations};

/// The slot of a running call; empty while it waits for a tool.
#[derive(Debug, Clone, Default)]
pub(crate) struct SlotCell(Arc<Mutex<Option<Slot>>>);

impl SlotCell {
    pub(crate) fn new(slot: Slot) -> Self {
        Self(Arc::new(Mutex::new(Some(slot))))
    }

    pub(crate) fn take(&self) -> Option<Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub(crate) fn put(&self, slot: Slot) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(slot);
    }
}

/// What a guest needs to call tools. Made only where tools are granted.
#[derive(Clone)]
pub(crate) struct Ctx {
    pub(crate) host: Arc<dyn CallTools>,
    pub(crate) root: Arc<Root>,
    pub(crate) access: Arc<Access>,
    /// `id@major` from the root to this call.
    pub(crate) names: Vec<String>,
    /// The bundles of these tools and of their drivers.
    pub(crate) bundles: Vec<String>,
    pub(crate) covered: Vec<String>,
    pub(crate) principal: String,
    /// Who asks people, where it is not the host's own approver.
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) dev: bool,
    pub(crate) deadline: Instant,
    pub(crate) gates: Path,
    pub(crate) slot: SlotCell,
}

/// What a caller has left when it calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Left {
    pub(crate) fuel: u64,
    pub(crate) memory_bytes: u64,
}

/// How a call ended, and what it took.
pub(crate) struct Called {
    pub(crate) result: Result<ToolOutput, ToolError>,
    pub(crate) fuel: u64,
    pub(crate) peak_memory: u64,
}

impl Ctx {
    /// Calls a tool.
    ///
    /// An error ends the caller: policy says so at a violation.
    pub(crate) async fn call(
        &self,
        request: ToolRequest,
        left: Left,
        violations: &Violations,
    ) -> Result<Called, EndsCall> {
        let refused = |error: CallError| {
            Ok(Called {
                result: Err(to_guest(error)),
                fuel: 0,
                peak_memory: 0,
            })
        };
        if !self.access.grant.tools().contains(&request.tool) {
            violations.record(ViolationKind::Tool, &request.tool)?;
            return refused(not_granted(&request.tool));
        }
        if let Err(error) = self.root.count_call(self.names.len().saturating_sub(1)) {
            return refused(error);
        }
        let Some(slot) = self.slot.take() else {
            return refused(internal("the call has no slot"));
        };
        let parked = match self.gates.park(slot) {
            Ok(parked) => parked,
            Err(left) => {
                let (slot, error) = *left;
                self.slot.put(slot);
                return refused(error);
            }
        };
        let lineage = Lineage::of(Caller {
            root: self.root.clone(),
            names: self.names.clone(),
            bundles: self.bundles.clone(),
            deadline: self.deadline,
            fuel: left.fuel,
            memory_bytes: left.memory_bytes,
            covered: self.covered.clone(),
            dev: self.dev,
        });
        let mut nested = Request::new(request.tool, request.input)
            .principal(self.principal.clone())
            .below(lineage);
        nested.approver.clone_from(&self.approver);
        if let Some(milliseconds) = request.timeout_ms {
            nested = nested.timeout(Duration::from_millis(milliseconds));
        }
        let reply = self.host.clone().call_tool(nested).await;
        violations.absorb(&reply.metadata.violations, reply.metadata.violations_total);
        match self.gates.resume(parked).await {
            Ok(slot) => self.slot.put(slot),
            Err(error) => return refused(error),
        }
        Ok(Called {
            fuel: reply.metadata.fuel,
            peak_memory: reply.metadata.peak_memory,
            result: reply.result.map(result::output_to_guest).map_err(to_guest),
        })
    }
}

/// Where no tool is granted at all.
pub(crate) fn none_granted(
    request: &ToolRequest,
    violations: &Violations,
) -> Result<ToolError, EndsCall> {
    violations.record(ViolationKind::Tool, &request.tool)?;
    Ok(to_guest(not_granted(&request.tool)))
}

fn not_granted(tool: &str) -> CallError {
    CallError::new(
        ErrorCode::UNAUTHORISED,
        ErrorClass::CapabilityGap,
        format!("no grant to call the tool `{tool}`"),
    )
}

fn internal(message: &str) -> CallError {
    CallError::new(ErrorCode::INTERNAL, ErrorClass::ExecutionFailed, message)
}

fn to_guest(error: CallError) -> ToolError {
    ToolError {
        code: error.code.as_str().to_owned(),
        message: error.message,
        retryable: error.retryable,
        retry_after_ms: error
            .retry_after
            .map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX)),
        cause: error.cause.map(|cause| cause.to_string()),
    }
}
