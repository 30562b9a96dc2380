//! The stage that obtains a person's approval of one call with exactly this input. If
//! no one can be asked, the call is denied.

use std::sync::Arc;

use serde_json::Value;
use toolward_contract::tool::CostClass;

use crate::api::approval::{ApprovalQuestion, ApprovalRequest, Approver, ShownRequest, Verdict};
use crate::api::result::{CallError, ErrorClass, ErrorCode};
use crate::catalogue::Route;
use crate::digest;
use crate::pipeline::authorise::Granted;
use crate::pipeline::candidates;
use crate::pipeline::http_request;
use crate::pipeline::validate::RoutedCall;

/// A call that needs no approval, or has it.
pub(crate) struct Approved<T> {
    call: T,
    /// The tools whose calls by this one the approval covers.
    covered: Vec<String>,
}

impl<T> Approved<T> {
    /// The call.
    pub(crate) fn call(&self) -> &T {
        &self.call
    }

    pub(crate) fn into_parts(self) -> (T, Vec<String>) {
        (self.call, self.covered)
    }
}

/// Obtains the approval that the decision asks for: through the call's own
/// approver, or else the host's.
pub(crate) async fn obtain(
    granted: Granted<RoutedCall>,
    hosts: Option<&Arc<dyn Approver>>,
    invocation: &str,
) -> Result<Approved<RoutedCall>, CallError> {
    let (mut call, question) = granted.into_parts();
    let Some(question) = question else {
        if let Some(cost) = expensive(std::iter::once(&call.route)) {
            let (tool, driver) = (&call.tool.major_id, &call.route.driver.driver.id);
            tracing::warn!(tool, %driver, "{cost}");
        }
        return Ok(Approved {
            covered: call.scope.chain.covered().to_vec(),
            call,
        });
    };
    let http = http_request::keep(&mut call)?;
    let request = request(&call, &question, http, invocation);
    let verdict = match call.scope.approver.as_ref().or(hosts) {
        Some(approver) => approver.ask(&request).await,
        None => Verdict::Unavailable,
    };
    match verdict {
        Verdict::Approved => Ok(Approved {
            call,
            covered: request.chain.into_iter().map(|tool| tool.tool).collect(),
        }),
        Verdict::Denied(reason) => Err(denied(
            format!(
                "`{}` was not approved{}",
                call.tool.major_id,
                reason.map_or_else(String::new, |reason| format!(": {reason}"))
            ),
            "ask the person who denied it",
        )),
        // A nested call can't be made again: its caller gets the error and continues.
        Verdict::Later if call.scope.chain.caller().is_none() => Err(CallError::new(
            ErrorCode::APPROVAL_PENDING,
            ErrorClass::ApprovalRejected,
            format!("a person is asked whether to call `{}`", call.tool.major_id),
        )
        .with_hint("call it again, with their answer")),
        Verdict::Unavailable | Verdict::Later => Err(denied(
            format!(
                "`{}` needs approval ({}), and there is no one to ask",
                call.tool.major_id,
                request.reasons.join("; ")
            ),
            "call it where a person can answer, or let the operator approve it in the policy",
        )),
    }
}

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
    ApprovalRequest {
        invocation: invocation.to_owned(),
        principal: call.scope.principal.clone(),
        tool: call.tool.full_id.clone(),
        tool_id: call.tool.major_id.clone(),
        name: contract.name.clone(),
        publisher: call.tool.publisher.clone(),
        bundle: call.tool.bundle.clone(),
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
        reasons: each_once(all().flat_map(|one| &one.reasons)),
        cost: expensive(std::iter::once(&call.route).chain(&call.fallbacks)),
        each_time: all().any(|one| one.each_time),
        chain: question.chain.covered.clone(),
        apart: question.chain.apart.clone(),
        called_by: call.scope.chain.names(),
        called_by_bundles: call.scope.chain.bundles(),
    }
}

/// A sentence about what a call costs, where one of its drivers is expensive.
fn expensive<'r>(routes: impl Iterator<Item = &'r Arc<Route>>) -> Option<String> {
    let mut expensive = routes.filter(|route| route.cost.class == CostClass::Expensive);
    let route = expensive.next()?;
    let units = route.cost.units_per_call.map(|units| {
        let currency = route.cost.currency.as_deref().unwrap_or("units");
        format!(" ({units} {currency} a call)")
    });
    let units = units.unwrap_or_default();
    Some(format!("a call is expensive, as its publisher says{units}"))
}

/// Texts without repetition, in their order.
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
