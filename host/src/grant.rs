//! The stage that applies a decision to a call: from here on a call has a grant,
//! or an error that says what it lacks.

use serde_json::json;
use toolward_contract::capability::CapabilitySet;

use crate::policy::{Decision, Grant, Reason};
use crate::result::{CallError, ErrorClass, ErrorCode};
use crate::validate::{Call, Validated};

/// A call with its grant; the next stage takes nothing else.
pub(crate) struct Granted<T> {
    call: T,
    grant: Grant,
    ask: Option<Reason>,
}

impl<T> Granted<T> {
    pub(crate) fn into_parts(self) -> (T, Grant, Option<Reason>) {
        (self.call, self.grant, self.ask)
    }
}

/// Applies the route's decision to a validated call.
pub(crate) fn apply(call: Validated<Call>) -> Result<Granted<Call>, CallError> {
    let call = call.into_inner();
    let (grant, ask) = match &call.route.decision {
        Decision::Allow(grant) => (grant.clone(), None),
        Decision::Ask(grant, reason) => (grant.clone(), Some(*reason)),
        Decision::Deny(missing) => return Err(denied(&call.tool.major_id, missing)),
    };
    Ok(Granted { call, grant, ask })
}

fn denied(tool: &str, missing: &CapabilitySet) -> CallError {
    let names: Vec<String> = missing.iter().map(ToString::to_string).collect();
    CallError::new(
        ErrorCode::UNAUTHORISED,
        ErrorClass::CapabilityGap,
        format!(
            "`{tool}` declares capabilities that are not granted: {}",
            names.join(", ")
        ),
    )
    .with_cause(json!({ "missing": names }))
    .with_hint("this version of the host grants no capabilities; only tools that declare none run")
}
