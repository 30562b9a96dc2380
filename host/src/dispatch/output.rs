//! From what a driver returned to an output that its contract allows.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use toolward_contract::tool::Tool;

use crate::checks::shortened;
use crate::checks::{self, Checks};
use crate::limits::CallLimits;
use crate::result::{CallError, ErrorClass, ErrorCode, Mapped, map_output};
use crate::sandbox::v0_1::types::ToolOutput;

/// Checks size, form and schema of an output, within the call's deadline.
pub(super) async fn accept(
    output: ToolOutput,
    limits: &CallLimits,
    contract: &Arc<Tool>,
    dropped: &[String],
    (checks, principal): (&Checks, &str),
    deadline: Instant,
    late: impl Fn() -> CallError,
) -> Result<Mapped, CallError> {
    if checks::is_short(output.structured.len(), &contract.outputs) {
        return check(output, limits, contract, dropped);
    }
    let (limits, contract) = (limits.clone(), contract.clone());
    let dropped = dropped.to_vec();
    checks
        .run(principal, deadline, late, move || {
            check(output, &limits, &contract, &dropped)
        })
        .await
}

fn check(
    output: ToolOutput,
    limits: &CallLimits,
    contract: &Tool,
    dropped: &[String],
) -> Result<Mapped, CallError> {
    let Mapped(mut output, memory) = map_output(output, limits)?;
    leave_out(&mut output.structured, dropped);
    let Err(violation) = contract.outputs.validate(&output.structured) else {
        return Ok(Mapped(output, memory));
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
            "the driver's output misses the contract's schema at {place:?}: {}",
            violation.message
        ),
    )
    .with_cause(json!({
        "path": shortened(violation.instance_path),
        "schema_path": violation.schema_path,
    }))
    .with_hint("report this to the driver's publisher"))
}

/// Leaves out what the driver said that it does not give: whoever read its
/// declaration relies on no value of it.
fn leave_out(output: &mut Value, dropped: &[String]) {
    if let Value::Object(members) = output {
        for name in dropped {
            members.shift_remove(name);
        }
    }
}
