//! Approval: a person's yes to one call with exactly this input. Nobody to ask
//! means no.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde_json::Value;

use crate::grant::Granted;
use crate::registry::Question;
use crate::result::{CallError, ErrorClass, ErrorCode};
use crate::validate::Call;

/// What a person is asked. All text in it but the host's own words comes from
/// a bundle or a caller: show it through [`toolward_bundle::text::visible`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The invocation's id.
    pub invocation: String,
    /// Who calls.
    pub principal: String,
    /// The tool as `id@version`.
    pub tool: String,
    /// Its display name.
    pub name: String,
    /// Who published the contract.
    pub publisher: String,
    /// The driver that would carry it out.
    pub driver: String,
    /// Who published the driver.
    pub driver_publisher: String,
    /// The input, exactly as it would be used.
    pub input: Value,
    /// What the call may do, as capabilities: `mutates workspace:/notes`.
    pub effects: Vec<String>,
    /// The contract's risk level, 0 to 3; the highest of all tools it may call.
    pub risk: u8,
    /// Why a person is asked.
    pub reasons: Vec<String>,
    /// Tools that it may call in turn. A yes covers these calls, too, but none
    /// that must be asked about each time.
    pub chain: Vec<String>,
    /// The tools that led to this call, the first one first; empty where the
    /// caller asked for it.
    pub called_by: Vec<String>,
}

/// What a person said.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Yes, to this call.
    Approved,
    /// No; with a reason for the caller, where one was given.
    Denied(Option<String>),
    /// Nobody could be asked.
    Unavailable,
}

/// Asks a person. The answer is given by people, never by a tool or a model.
pub trait Approver: Send + Sync {
    /// Shows the request to a person and gives what they said. The call waits
    /// as long as this takes; its deadline starts afterwards.
    fn ask<'a>(
        &'a self,
        request: &'a ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;
}

/// A call that needs no approval, or has it.
pub(crate) struct Approved<T> {
    call: T,
    /// The tools whose calls by this one a person has said yes to.
    covered: Vec<String>,
}

impl<T> Approved<T> {
    pub(crate) fn into_parts(self) -> (T, Vec<String>) {
        (self.call, self.covered)
    }
}

/// Obtains the approval that the decision asks for.
pub(crate) async fn obtain(
    granted: Granted<Call>,
    approver: Option<&Arc<dyn Approver>>,
    invocation: &str,
) -> Result<Approved<Call>, CallError> {
    let (call, question) = granted.into_parts();
    let Some(question) = question else {
        return Ok(Approved {
            covered: call.lineage.covered().to_vec(),
            call,
        });
    };
    let request = request(&call, &question, invocation);
    let verdict = match approver {
        Some(approver) => approver.ask(&request).await,
        None => Verdict::Unavailable,
    };
    match verdict {
        Verdict::Approved => Ok(Approved {
            call,
            covered: request.chain,
        }),
        Verdict::Denied(reason) => Err(denied(
            format!(
                "`{}` was not approved{}",
                call.tool.major_id,
                reason.map_or_else(String::new, |reason| format!(": {reason}"))
            ),
            "ask the person who said no",
        )),
        Verdict::Unavailable => Err(denied(
            format!(
                "`{}` needs approval ({}), and nobody can be asked",
                call.tool.major_id,
                request.reasons.join("; ")
            ),
            "call it where a person can answer, or let the operator approve it in the policy",
        )),
    }
}

fn request(call: &Call, question: &Question, invocation: &str) -> ApprovalRequest {
    let contract = &call.tool.contract;
    ApprovalRequest {
        invocation: invocation.to_owned(),
        principal: call.principal.clone(),
        tool: call.tool.full_id.clone(),
        name: contract.name.clone(),
        publisher: call.tool.publisher.clone(),
        driver: call.route.driver.driver.id.to_string(),
        driver_publisher: call.route.driver.publisher.clone(),
        input: call.shown_input.clone(),
        effects: question.effects.clone(),
        risk: question.risk,
        reasons: question.reasons.clone(),
        chain: question.chain.clone(),
        called_by: call.lineage.names(),
    }
}

fn denied(message: String, hint: &str) -> CallError {
    CallError::new(
        ErrorCode::APPROVAL_DENIED,
        ErrorClass::ApprovalRejected,
        message,
    )
    .with_hint(hint)
}
