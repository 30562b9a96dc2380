//! `tool_permission_decision`: what was decided about one call, and by whom.

use std::time::SystemTime;

use serde_json::{Value, json};
use toolward_host::{CallError, ErrorClass, ErrorCode, Verdict};
use toolward_policy::Decision;

use crate::records::declaration::line;
use crate::records::ended_call::EndedCall;
use crate::records::error::prose;
use crate::records::object::record;
use crate::records::permission::rules;
use crate::records::references::timestamp;

struct Outcome {
    /// `allow`, `ask` if a person has not answered yet, or `deny`.
    behavior: &'static str,
    /// `policy` if its rules decide alone, `approval` if a person must be asked.
    mode: &'static str,
    /// Who decided: `policy`, `person`, or `nobody` if no one could be asked.
    source: &'static str,
    /// `granted`, `preapproved`, `approved`, `pending`, or the error's class.
    code: &'static str,
    messages: Vec<String>,
    at: SystemTime,
}

/// What was decided about a call; `None` if it ended before anything was decided. The host lets no one change the input
/// of a call.
pub(crate) fn permission_decision(call: &EndedCall<'_>) -> Option<Value> {
    let invocation = &call.reply.metadata.invocation;
    let decision = call.decision()?;
    let outcome = outcome(decision, call)?;
    let rules = rules(decision);
    Some(record! {
        decision_id = reference(invocation);
        invocation_id = invocation;
        behavior = outcome.behavior;
        mode = outcome.mode;
        source = outcome.source;
        reason = json!({ "code": outcome.code, "messages": outcome.messages });
        rule_refs = rules;
        policy_refs = rules;
        user_modified = false;
        decided_at = timestamp(outcome.at);
    })
}

pub(crate) fn reference(invocation: &str) -> String {
    format!("decision:{invocation}")
}

fn outcome(decision: &Decision, call: &EndedCall<'_>) -> Option<Outcome> {
    let policy = |behavior, code, messages| Outcome {
        behavior,
        mode: "policy",
        source: "policy",
        code,
        messages,
        at: call.started(),
    };
    Some(match decision {
        Decision::Allow(allowed) => {
            let code = match allowed.preapproved.is_empty() {
                true => "granted",
                false => "preapproved",
            };
            policy("allow", code, Vec::new())
        }
        Decision::Deny(denial) => {
            let code = match denial.missing.is_empty() {
                true => "policy_blocked",
                false => "capability_gap",
            };
            let error = call.reply.result.as_ref().err();
            let messages = error.map(|error| prose(&error.message));
            policy("deny", code, messages.into_iter().collect())
        }
        Decision::Ask(_, reasons) => {
            let reasons = reasons.iter().map(|one| line(&one.to_string())).collect();
            asked(call, reasons)?
        }
    })
}

/// What came of a question. The reply tells it where the answer was not recorded.
fn asked(call: &EndedCall<'_>, messages: Vec<String>) -> Option<Outcome> {
    let answer = call.answer.as_ref();
    let error = call.reply.result.as_ref().err();
    let ended = |class| error.is_some_and(|error: &CallError| error.class == class);
    let pending = error.is_some_and(|error| error.code == ErrorCode::APPROVAL_PENDING);
    let (behavior, source, code) = match answer.map(|answer| &answer.verdict) {
        Some(
            Verdict::Approved
            | Verdict::ApprovedFor(_)
            | Verdict::Remembered(_)
            | Verdict::Answered { approved: true, .. },
        ) => ("allow", "person", "approved"),
        Some(Verdict::Denied(_) | Verdict::Answered { .. } | Verdict::Withdrawn) => {
            ("deny", "person", "approval_rejected")
        }
        Some(Verdict::Later) => ("ask", "person", "pending"),
        Some(_) => ("deny", "nobody", "approval_rejected"),
        None if pending => ("ask", "person", "pending"),
        None if ended(ErrorClass::ApprovalRejected) => ("deny", "person", "approval_rejected"),
        // It ended before the question.
        None if error.is_some() && call.reply.metadata.attempts == 0 => return None,
        None => ("allow", "person", "approved"),
    };
    Some(Outcome {
        behavior,
        mode: "approval",
        source,
        code,
        messages,
        at: answer.map_or_else(|| call.started(), |answer| answer.at),
    })
}
