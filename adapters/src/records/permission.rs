//! `tool_permission_profile`: the permissions of a tool through one driver, from its grant.
//! `tool_permission_decision`: the decision about one call, and who made it.

use std::time::SystemTime;

use serde_json::{Value, json};

use toolward_host::{CallError, DriverFacts, ErrorClass, ErrorCode, ToolFacts, Verdict};
use toolward_policy::{Decision, Grant};

use super::call::EndedCall;
use super::declaration::{line, lines};
use super::interface::sandbox;
use super::references;
use super::references::{record, timestamp};
use super::result::prose;

/// How much harm a call can do, by AIP-14's levels 0 to 3.
const RISK_LEVELS: [&str; 4] = ["low", "medium", "high", "critical"];

/// Returns the permissions of a tool through one driver. A blocked tool has none.
pub(crate) fn permission_profile(info: &ToolFacts, driver: &DriverFacts) -> Value {
    let nothing = Grant::default();
    let granted = granted(driver.decision.grant().unwrap_or(&nothing));
    let mut writes = !granted.writes.is_empty() || !info.contract.mutates.is_empty();
    let mut risk = info.contract.risk_level;
    let missing = match &driver.decision {
        Decision::Allow(allowed) | Decision::Ask(allowed, _) => {
            risk = allowed.effects.risk;
            writes |= allowed.effects.writes;
            lines(driver.without())
        }
        Decision::Deny(denial) => [lines(&denial.missing), lines(&denial.program)].concat(),
    };
    // At least medium if the tool, or a tool that it may call, changes something.
    let risk = if writes { risk.max(1) } else { risk };
    let reasons = match &driver.decision {
        Decision::Ask(_, reasons) => Some(lines(reasons).join("; ")),
        Decision::Allow(_) | Decision::Deny(_) => None,
    };
    record! {
        permission_profile_id = references::permission_profile(info, driver);
        risk_level = RISK_LEVELS.get(usize::from(risk)).unwrap_or(&"critical");
        access_kinds = granted.access;
        write_effects = granted.writes;
        network_scope = match granted.hosts.as_slice() {
            [] => "none".to_owned(),
            hosts => hosts.join(", "),
        };
        credential_refs = granted.secrets;
        sandbox_profile = sandbox(driver);
        approval_required = reasons.is_some();
        approval_reason ? reasons;
        rule_matching_fields = ["publisher", "tool", "driver_publisher", "driver"];
        // Results are searched for the granted secrets.
        redaction_required = !granted.secrets.is_empty();
        policy_refs = rules(&driver.decision);
        missing = missing;
    }
}

/// Returns the rules that granted something or that deny the tool.
pub(crate) fn rules(decision: &Decision) -> Vec<String> {
    lines(match decision {
        Decision::Allow(allowed) | Decision::Ask(allowed, _) => &allowed.rules,
        Decision::Deny(denial) => &denial.denied_by,
    })
}

/// The capabilities of a grant.
struct Granted {
    access: Vec<String>,
    writes: Vec<String>,
    hosts: Vec<String>,
    secrets: Vec<String>,
}

fn granted(grant: &Grant) -> Granted {
    let all = grant.parts().into_iter();
    let all = all.map(|(capability, _, writes)| (line(&capability), writes));
    let all: Vec<(String, bool)> = all.collect();
    let writes = all.iter().filter(|(_, writes)| *writes);
    Granted {
        writes: writes.map(|(capability, _)| capability.clone()).collect(),
        access: all.into_iter().map(|(capability, _)| capability).collect(),
        hosts: lines(grant.network().iter().map(|one| &one.host)),
        secrets: lines(grant.secrets().iter().map(|one| &one.slug)),
    }
}

/// The parts of a decision:
///
/// * the behaviour: `allow`, `ask` if a person has not answered yet, or `deny`;
/// * the mode: `policy` if the policy's rules decide alone, `approval` if a person must be asked;
/// * the source, who decided: `policy`, `person`, or `nobody` if no person could be asked;
/// * the code: `granted`, `preapproved`, `approved`, `pending`, or the error's class;
/// * the reasons in words, and the time.
type Outcome = ([&'static str; 4], Vec<String>, SystemTime);

/// Returns the decision about a call; `None` if the call ended before a decision. `user_modified`
/// is always false, since an approver can't change the input of a call.
pub(crate) fn permission_decision(call: &EndedCall<'_>) -> Option<Value> {
    let invocation = &call.reply.metadata.invocation;
    let decision = call.decision()?;
    let ([behavior, mode, source, code], messages, at) = outcome(decision, call)?;
    let rules = rules(decision);
    Some(record! {
        decision_id = reference(invocation);
        invocation_id = invocation;
        behavior = behavior;
        mode = mode;
        source = source;
        reason = json!({ "code": code, "messages": messages });
        rule_refs = rules;
        policy_refs = rules;
        user_modified = false;
        decided_at = timestamp(at);
    })
}

pub(crate) fn reference(invocation: &str) -> String {
    format!("decision:{invocation}")
}

fn outcome(decision: &Decision, call: &EndedCall<'_>) -> Option<Outcome> {
    let policy = |behavior, code, messages| {
        let words = [behavior, "policy", "policy", code];
        (words, messages, call.started())
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
        Decision::Ask(_, reasons) => asked(call, lines(reasons))?,
    })
}

/// Returns the outcome of a question. If the answer was not recorded, the outcome follows from the
/// reply.
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
        // The call ended before the question.
        None if error.is_some() && call.reply.metadata.attempts == 0 => return None,
        None => ("allow", "person", "approved"),
    };
    let at = answer.map_or_else(|| call.started(), |answer| answer.at);
    Some(([behavior, "approval", source, code], messages, at))
}
