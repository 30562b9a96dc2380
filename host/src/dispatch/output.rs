//! From what a driver returned to an output that its contract allows.

use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use toolward_contract::tool::Tool;

use crate::limits::CallLimits;
use crate::result::{CallError, ErrorClass, ErrorCode, Mapped, Output, map_output};
use crate::sandbox::deadline;
use crate::sandbox::v0_1::types::ToolOutput;

/// From this many bytes of JSON on a value is checked on a thread for long
/// work: value and schema are the publisher's, and nothing can interrupt the
/// check. Below it, the check takes less than handing it over.
pub(crate) const LARGE: usize = 64 << 10;

/// Checks size, form and schema of an output, within the call's deadline.
pub(super) async fn accept(
    output: ToolOutput,
    limits: &CallLimits,
    contract: &Arc<Tool>,
    deadline: Instant,
    late: impl Fn() -> CallError,
) -> Result<Output, CallError> {
    if output.structured.len() < LARGE {
        return check(output, limits, contract);
    }
    let (limits, contract) = (limits.clone(), contract.clone());
    let task = tokio::task::spawn_blocking(move || check(output, &limits, &contract));
    match deadline::before(deadline, task).await {
        Ok(Ok(result)) => result,
        Ok(Err(error)) => {
            tracing::error!(%error, "checking an output failed");
            Err(CallError::new(
                ErrorCode::INTERNAL,
                ErrorClass::ExecutionFailed,
                "checking the output failed",
            ))
        }
        Err(deadline::Elapsed) => Err(late()),
    }
}

fn check(output: ToolOutput, limits: &CallLimits, contract: &Tool) -> Result<Output, CallError> {
    let Mapped(output) = map_output(output, limits)?;
    let Err(violation) = contract.outputs.validate(&output.structured) else {
        return Ok(output);
    };
    let place = if violation.instance_path.is_empty() {
        "/"
    } else {
        &violation.instance_path
    };
    Err(CallError::new(
        ErrorCode::UPSTREAM_ERROR,
        ErrorClass::ExecutionFailed,
        format!(
            "the driver's output misses the contract's schema at `{place}`: {}",
            violation.message
        ),
    )
    .with_cause(json!({
        "path": violation.instance_path,
        "schema_path": violation.schema_path,
    }))
    .with_hint("report this to the driver's publisher"))
}
