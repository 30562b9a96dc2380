//! The stage that applies a decision to a call: from here on a call has a grant,
//! or an error that says what it lacks.

use std::sync::Arc;

use serde_json::json;
use toolward_policy::{Decision, Denial};

use crate::host::ToolInfo;
use crate::registry::{Question, Route};
use crate::result::{CallError, ErrorClass, ErrorCode};
use crate::validate::{self, Call, Validated};

/// A call with its grant; the next stage takes nothing else.
pub(crate) struct Granted<T> {
    call: T,
    question: Option<Arc<Question>>,
}

impl<T> Granted<T> {
    pub(crate) fn into_parts(self) -> (T, Option<Arc<Question>>) {
        (self.call, self.question)
    }
}

/// Applies the route's decision to a validated call.
pub(crate) fn apply(call: Validated<Call>) -> Result<Granted<Call>, CallError> {
    let call = call.into_inner();
    if let Decision::Deny(denial) = &call.route.decision {
        return Err(denied(&call.tool.major_id, denial));
    }
    let question = call
        .route
        .question
        .clone()
        // A yes that named this tool covers it.
        .filter(|question| question.each_time || !call.lineage.covers(&call.tool.major_id));
    Ok(Granted { call, question })
}

impl ToolInfo {
    /// The error with which every call of the tool ends that fits its contract and
    /// brings no context of its own: policy blocks each of its drivers, there is
    /// none, or the operator gives no context that it requires. It is the caller's to
    /// read, and names what is missing but no line of a policy.
    #[must_use]
    pub fn refusal(&self) -> Option<CallError> {
        let tool = self.contract.major_id();
        let mut denials = self.drivers.iter().map(|(_, decision)| match decision {
            Decision::Deny(denial) => Some(denial),
            _ => None,
        });
        match denials.next() {
            None => Some(crate::resolve::no_route(&tool)),
            Some(Some(first)) if denials.all(|denial| denial.is_some()) => {
                Some(denied(&tool, first))
            }
            Some(_) => self.context.as_ref().map(validate::context_missing),
        }
    }
}

fn denied(tool: &str, denial: &Denial) -> CallError {
    let mut names: Vec<String> = denial
        .missing
        .iter()
        .map(|missing| missing.capability.to_string())
        .collect();
    names.sort();
    names.dedup();
    let (class, message) = if names.is_empty() {
        (
            ErrorClass::PolicyBlocked,
            format!("the policy denies `{tool}`: {denial}"),
        )
    } else {
        (
            ErrorClass::CapabilityGap,
            format!(
                "`{tool}` is blocked: it declares what the policy does not grant: {}",
                names.join(", ")
            ),
        )
    };
    // Whoever calls may be an agent: the lines to add are the command's to show.
    CallError::new(ErrorCode::UNAUTHORISED, class, message)
        .with_cause(json!({ "missing": names }))
        .with_hint(format!(
            "the operator decides: `toolward policy explain {tool}` shows what is missing"
        ))
}

impl Route {
    /// Whether policy lets this route be used at all.
    pub(crate) fn is_open(&self) -> bool {
        self.access.is_some()
    }
}
