//! The stage that obtains a person's approval of one call with exactly this input, if the decision
//! requires it. If no one can be asked, the call is denied.

use std::sync::Arc;

use serde_json::Value;
use toolward_contract::tool::CostClass;

use crate::api::approval::{
    ApprovalQuestion, ApprovalRequest, Approver, Marks, ShownRequest, Verdict,
};
use crate::api::result::{CallError, ErrorClass, ErrorCode};
use crate::catalogue::DriverFacts;
use crate::digest;
use crate::executor::RequestValues;
use crate::pipeline::authorise::Granted;
use crate::pipeline::candidates;
use crate::pipeline::validate::RoutedCall;

/// The hint after a person denied the call.
const DENIED: &str = "a person denied this call: ask them before you try again";
/// The hint after a question without an answer.
const UNANSWERED: &str = "call it again when a person can answer";

/// A call that needs no approval or has been approved.
pub(crate) struct Approved {
    call: Box<RoutedCall>,
    /// The tools that the approval also covers when this call calls them.
    covered: Vec<String>,
}

impl Approved {
    /// The call.
    pub(crate) fn call(&self) -> &RoutedCall {
        &self.call
    }

    pub(crate) fn into_parts(self) -> (Box<RoutedCall>, Vec<String>) {
        (self.call, self.covered)
    }
}

/// The approval that a call needs.
pub(crate) struct NeededApproval {
    call: Box<RoutedCall>,
    pub(crate) request: ApprovalRequest,
}

/// Passes on a call about which no one is asked: it needs no approval, a caller's approval covers
/// it, or it is answered from a tape.
pub(crate) fn unasked(granted: Granted) -> Approved {
    let (call, _) = granted.into_parts();
    let covered = call.scope.chain.covered().to_vec();
    Approved { call, covered }
}

/// Logs the cost of a call about which no one is asked, if it is high.
pub(crate) fn log_cost(call: &RoutedCall) {
    if let Some(cost) = expensive(std::iter::once(&call.route)) {
        let (tool, driver) = (&*call.tool.major_id, &call.route.declaration.id);
        tracing::warn!(tool, %driver, "{cost}");
    }
}

/// The approval that a call needs. `invocation` is the call's id.
pub(crate) fn needed(granted: Granted, invocation: &str) -> Result<NeededApproval, CallError> {
    let (call, question) = granted.into_parts();
    let question = question.ok_or_else(|| CallError::internal("a call without a question"))?;
    let shown = shown_request(&call)?;
    let request = request(&call, &question, shown, invocation);
    Ok(NeededApproval { call, request })
}

impl NeededApproval {
    /// The approver: the call's own, or else the host's.
    pub(crate) fn approver(&self, hosts: Option<&Arc<dyn Approver>>) -> Option<Arc<dyn Approver>> {
        self.call.scope.approver.as_ref().or(hosts).cloned()
    }

    /// The call, if the verdict approves it.
    pub(crate) fn decided(self, verdict: Verdict) -> Result<Approved, CallError> {
        let Self { call, request } = self;
        let tool = &call.tool.major_id;
        let not_approved = |reason: Option<String>| {
            let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
            format!("`{tool}` was not approved{reason}")
        };
        match verdict {
            Verdict::Approved
            | Verdict::ApprovedFor(_)
            | Verdict::Remembered(_)
            | Verdict::Answered { approved: true, .. } => Ok(Approved {
                call,
                covered: request.chain.into_iter().map(|tool| tool.tool).collect(),
            }),
            Verdict::Denied(reason) => Err(denied(not_approved(reason), DENIED)),
            Verdict::Answered {
                approved: false, ..
            } => Err(denied(not_approved(None), DENIED)),
            Verdict::Withdrawn => Err(denied(not_approved(None), UNANSWERED)),
            Verdict::Unanswered => {
                let nobody = Some("nobody answered".to_owned());
                Err(denied(not_approved(nobody), UNANSWERED))
            }
            // A nested call can't be made again: its caller gets the error and continues.
            Verdict::Later if call.scope.chain.caller().is_none() => Err(CallError::new(
                ErrorCode::APPROVAL_PENDING,
                ErrorClass::ApprovalRejected,
                format!("a person is asked whether to call `{tool}`"),
            )
            .with_hint("call it again, with their answer")),
            Verdict::Unavailable | Verdict::Later => Err(denied(
                format!(
                    "`{tool}` needs approval ({}), and there is no one to ask",
                    request.reasons.join("; ")
                ),
                "call it where a person can answer, or let the operator approve it in the policy",
            )),
        }
    }
}

/// The request that the host makes for this call, for the person who is asked.
fn shown_request(call: &RoutedCall) -> Result<Option<ShownRequest>, CallError> {
    let route = &call.route;
    let Some(executor) = &route.executor else {
        return Ok(None);
    };
    let Some(access) = &route.access else {
        return Err(CallError::internal("a denied call got past the policy"));
    };
    let left = call.scope.chain.caller().map(|caller| caller.memory_bytes);
    executor.request(&RequestValues {
        contract: &call.tool.contract,
        implements: &route.implements,
        grant: &access.grant,
        limits: &route.limits.within(left, true),
        input: &call.input,
        context: &call.context,
        contract_input: &call.contract_input,
        context_secrets: &call.context_secrets,
    })
}

/// Shown as a reason if a driver may repeat the change of an earlier driver.
const REPEATS: &str = "if a driver fails, each driver after it may make the change again, though it may have been made: \
                       the policy's `fallback = \"repeat\"` allows that";

fn request(
    call: &RoutedCall,
    question: &ApprovalQuestion,
    http: Option<ShownRequest>,
    invocation: &str,
) -> ApprovalRequest {
    let contract = &call.tool.contract;
    let driver = candidates::named(&call.route);
    let fallbacks = call.fallbacks.iter();
    let questions = fallbacks
        .clone()
        .filter_map(|route| route.question.as_deref());
    let all = || std::iter::once(question).chain(questions.clone());
    let repeating = std::iter::once(&call.route).chain(fallbacks.clone());
    let repeating: Vec<_> = repeating.filter(|route| route.repeats).collect();
    let repeats = repeating.len() > 1 && repeating.iter().any(|route| route.changes);
    let repeats = repeats.then(|| REPEATS.to_owned());
    ApprovalRequest {
        invocation: invocation.to_owned(),
        principal: call.scope.principal.to_string(),
        tool: call.tool.full_id.to_string(),
        tool_id: call.tool.major_id.to_string(),
        name: contract.name.clone(),
        publisher: call.tool.publisher.to_string(),
        bundle: call.tool.bundle.to_string(),
        driver: driver.id,
        driver_publisher: driver.publisher,
        driver_bundle: driver.bundle,
        driver_hosts: driver.hosts,
        driver_regions: driver.regions,
        fallbacks: fallbacks.map(|route| candidates::named(route)).collect(),
        input: contract.inputs.observable(&call.contract_input),
        request: http,
        input_digest: digest::secret(&Value::Array(vec![
            call.contract_input.clone(),
            Value::String(call.context.clone()),
        ])),
        effects: each_once(all().flat_map(|one| &one.effects)),
        risk: all().map(|one| one.risk).max().unwrap_or_default(),
        reasons: each_once(all().flat_map(|one| &one.reasons).chain(repeats.as_ref())),
        cost: expensive(std::iter::once(&call.route).chain(&call.fallbacks)),
        each_time: all().any(|one| one.each_time),
        can_be_preapproved: all().all(|one| one.can_be_preapproved),
        chain: question.chain.covered.clone(),
        apart: question.chain.apart.clone(),
        called_by: call.scope.chain.names().to_vec(),
        called_by_bundles: call.scope.chain.bundles(),
        marks: Marks::default(),
    }
}

/// A sentence about the cost of a call, if one of its drivers is expensive.
fn expensive<'r>(routes: impl Iterator<Item = &'r Arc<DriverFacts>>) -> Option<String> {
    let mut expensive = routes.filter(|route| route.cost.class == CostClass::Expensive);
    let route = expensive.next()?;
    let units = route.cost.units_per_call.map(|units| {
        let currency = route.cost.currency.as_deref().unwrap_or("units");
        format!(" ({units} {currency} a call)")
    });
    let units = units.unwrap_or_default();
    Some(format!("a call is expensive, as its publisher says{units}"))
}

/// Removes repeated texts; keeps the order.
fn each_once<'t>(texts: impl Iterator<Item = &'t String>) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for text in texts {
        if !all.contains(text) {
            all.push(text.clone());
        }
    }
    all
}

fn denied(message: String, hint: &str) -> CallError {
    CallError::new(
        ErrorCode::APPROVAL_DENIED,
        ErrorClass::ApprovalRejected,
        message,
    )
    .with_hint(hint)
}
