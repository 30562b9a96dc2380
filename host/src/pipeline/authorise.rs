//! The stage that applies a decision to a call: afterwards a call has a grant, or an error that
//! names the missing grants.

use std::sync::Arc;

use serde_json::json;
use toolward_contract::capability::Capability;
use toolward_policy::{Decision, Denial, UnusableDirectory, Why};

use crate::api::approval::ApprovalQuestion;
use crate::api::result::{CallError, ErrorClass, ErrorCode, unauthorised};
use crate::catalogue::ToolFacts;
use crate::pipeline::candidates::{asks, context_missing};
use crate::pipeline::validate::{RoutedCall, Validated};

/// A call with its grant; the next stage takes nothing else.
pub(crate) struct Granted {
    call: Box<RoutedCall>,
    question: Option<Arc<ApprovalQuestion>>,
}

impl Granted {
    /// Whether a person must approve the call.
    pub(crate) fn asks(&self) -> bool {
        self.question.is_some()
    }

    pub(crate) fn into_parts(self) -> (Box<RoutedCall>, Option<Arc<ApprovalQuestion>>) {
        (self.call, self.question)
    }
}

/// Applies the route's decision to a validated call.
pub(crate) fn apply(call: Validated) -> Result<Granted, CallError> {
    let granted = decide(call)?;
    // Don't ask a person about a call that can't run.
    if let Some(access) = &granted.call.route.access
        && let Some(error) = (access.files.as_ref().err()).or(access.executor.as_ref().err())
    {
        return Err(error.clone());
    }
    Ok(granted)
}

/// Applies only the decision, without checking that the grant can be used. For a call that is
/// answered from a tape, which does not use its grant.
pub(crate) fn decide(call: Validated) -> Result<Granted, CallError> {
    let call = call.into_inner();
    if let Decision::Deny(denial) = &call.route.decision {
        let is_attachment = call.route.declaration.is_attachment;
        return Err(denied(&call.tool.major_id, denial).of_attachment(is_attachment));
    }
    let asked = asks(&call.route, &call.scope, &call.tool.major_id);
    let question = call.route.question.clone().filter(|_| asked);
    Ok(Granted { call, question })
}

impl ToolFacts {
    /// The error of every valid call that brings no context; `None` if such calls can run. The
    /// reason is that policy blocks all drivers, that the tool has no driver, or that the operator
    /// does not give the required context. The text is for callers: it names what is missing, but
    /// not the lines of a policy that would add it.
    pub fn refusal(&self) -> Option<CallError> {
        let tool = self.contract.major_id();
        let mut denials = self.drivers.iter().map(|driver| match &driver.decision {
            Decision::Deny(denial) => Some((denial, driver.declaration.is_attachment)),
            _ => None,
        });
        match denials.next() {
            None => Some(crate::pipeline::resolve::no_route(&tool, &self.unserved)),
            Some(Some((first, is_attachment))) if denials.all(|denial| denial.is_some()) => {
                Some(denied(&tool, first).of_attachment(is_attachment))
            }
            Some(_) => self.context().map(context_missing),
        }
    }
}

fn denied(tool: &str, denial: &Denial) -> CallError {
    let missing = denial.missing.iter();
    let mut names: Vec<_> = missing.map(|one| one.capability.to_string()).collect();
    names.sort();
    names.dedup();
    if let Some(directories) = unusable(denial) {
        return without_directories(tool, &names, &directories);
    }
    let class = match names.is_empty() {
        true => ErrorClass::PolicyBlocked,
        false => ErrorClass::CapabilityGap,
    };
    let message = if !names.is_empty() {
        let names = names.join(", ");
        format!("`{tool}` is blocked: it declares what the policy does not grant: {names}")
    } else if denial.denied_by.is_empty() {
        format!("`{tool}` is blocked: the policy does not let its program run")
    } else {
        format!("the policy denies `{tool}`")
    };
    // The caller may be an agent: only the `toolward` command, which the operator runs, shows the
    // lines to add and the directories behind workspaces.
    unauthorised(class, message)
        .with_cause(json!({ "missing": names }))
        .with_hint(ErrorCode::UNAUTHORISED.ask_the_operator("grant it"))
}

/// The capabilities whose directories can't be used, if nothing else is missing.
fn unusable(denial: &Denial) -> Option<Vec<(&Capability, &UnusableDirectory)>> {
    let other = !denial.denied_by.is_empty() || denial.program.is_some();
    if other || denial.missing.is_empty() {
        return None;
    }
    let problems = denial.missing.iter().map(|missing| match &missing.why {
        Why::Directory(unusable) => Some((&missing.capability, unusable)),
        _ => None,
    });
    problems.collect()
}

fn without_directories(
    tool: &str,
    names: &[String],
    directories: &[(&Capability, &UnusableDirectory)],
) -> CallError {
    let problems = directories.iter().map(|(capability, unusable)| {
        let problem = &unusable.problem;
        format!("the directory of `{capability}` can't be used: {problem}")
    });
    let problems: Vec<String> = problems.collect();
    let first = directories.first().map(|(_, unusable)| unusable);
    let message = format!("`{tool}` is blocked: {}", problems.join("; "));
    unauthorised(ErrorClass::SetupRequired, message)
        .with_cause(json!({ "missing": names, "rule": first.map(|unusable| unusable.code) }))
        .with_hint(ErrorCode::UNAUTHORISED.ask_the_operator("repair the directory"))
}
