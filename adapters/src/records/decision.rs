//! `tool_permission_decision`: what was decided about one call, and by whom.

use std::time::SystemTime;

use serde::Serialize;
use toolward_host::{CallError, ErrorClass, ErrorCode, Verdict};
use toolward_policy::Decision;

use crate::records::declaration::line;
use crate::records::ended_call::EndedCall;
use crate::records::error::prose;
use crate::records::permission::rules;
use crate::records::references::timestamp;
use crate::records::version::SchemaVersion;

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Behavior {
    /// The call may run.
    Allow,
    /// A person is asked, and has not answered yet.
    Ask,
    /// The call may not run.
    Deny,
}

/// What was decided about one call.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PermissionDecision {
    /// The version of Agent Tool.
    pub schema_version: SchemaVersion,
    /// Its reference.
    pub decision_id: String,
    /// The invocation's id.
    pub invocation_id: String,
    /// What was decided.
    pub behavior: Behavior,
    /// `policy` where its rules decide alone, `approval` where a person has to be asked.
    pub mode: &'static str,
    /// Who decided: `policy`, `person`, or `nobody` where no one could be asked.
    pub source: &'static str,
    /// Why.
    pub reason: Reason,
    /// The rules that gave something, or that deny the tool.
    pub rule_refs: Vec<String>,
    /// The same: every rule is the policy's.
    pub policy_refs: Vec<String>,
    /// Always false: the host does not let anyone change the input of a call.
    pub user_modified: bool,
    /// When it was decided.
    pub decided_at: String,
}

/// Why something was decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Reason {
    /// `granted`, `preapproved`, `approved`, `pending`, or the error's class.
    pub code: &'static str,
    /// The same in words.
    pub messages: Vec<String>,
}

struct Outcome {
    behavior: Behavior,
    mode: &'static str,
    source: &'static str,
    code: &'static str,
    messages: Vec<String>,
    at: SystemTime,
}

impl PermissionDecision {
    /// That about a call; `None` where it ended before anything was decided.
    pub(crate) fn of(call: &EndedCall<'_>) -> Option<Self> {
        let metadata = &call.reply.metadata;
        let decision = call.decision()?;
        let outcome = outcome(decision, call)?;
        let rules = rules(decision);
        Some(Self {
            schema_version: SchemaVersion,
            decision_id: reference(&metadata.invocation),
            invocation_id: metadata.invocation.clone(),
            behavior: outcome.behavior,
            mode: outcome.mode,
            source: outcome.source,
            reason: Reason {
                code: outcome.code,
                messages: outcome.messages,
            },
            policy_refs: rules.clone(),
            rule_refs: rules,
            user_modified: false,
            decided_at: timestamp(outcome.at),
        })
    }
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
            policy(Behavior::Allow, code, Vec::new())
        }
        Decision::Deny(denial) => {
            let code = match denial.missing.is_empty() {
                true => "policy_blocked",
                false => "capability_gap",
            };
            let error = call.reply.result.as_ref().err();
            let messages = error.map(|error| prose(&error.message));
            policy(Behavior::Deny, code, messages.into_iter().collect())
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
        ) => (Behavior::Allow, "person", "approved"),
        Some(Verdict::Denied(_) | Verdict::Answered { .. } | Verdict::Withdrawn) => {
            (Behavior::Deny, "person", "approval_rejected")
        }
        Some(Verdict::Later) => (Behavior::Ask, "person", "pending"),
        Some(_) => (Behavior::Deny, "nobody", "approval_rejected"),
        None if pending => (Behavior::Ask, "person", "pending"),
        None if ended(ErrorClass::ApprovalRejected) => {
            (Behavior::Deny, "person", "approval_rejected")
        }
        // It ended before the question.
        None if error.is_some() && call.reply.metadata.attempts == 0 => return None,
        None => (Behavior::Allow, "person", "approved"),
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
