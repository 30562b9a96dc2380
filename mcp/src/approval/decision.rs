//! Questions about approval, and what people decided.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolward_state::{ApprovalKey, Approvals, PersonsAnswer, QuestionId, settled};

use super::prompt;
use crate::elicitation::{self, Choice, state_deadline};
use crate::principal::Principal;

/// What a person decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApprovalDecision {
    Once,
    Session,
    Deny,
}

/// What a person decided about a call before it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decided {
    /// The call.
    pub(crate) call: ApprovalKey,
    /// What they decided.
    pub(crate) by: DecidedBy,
}

/// How a decision about a call came to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DecidedBy {
    /// The call brings the answer to a question about it.
    Answer(ApprovalDecision),
    /// The call resumes, and was approved before its driver asked.
    Before,
}

impl Decided {
    /// Before its driver asked, the call was approved.
    pub(crate) fn before(call: ApprovalKey) -> Self {
        let by = DecidedBy::Before;
        Self { call, by }
    }

    pub(super) fn is_approved(self) -> bool {
        self.by != DecidedBy::Answer(ApprovalDecision::Deny)
    }
}

/// An approval question, sealed so that an answer counts for it alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PendingApproval {
    /// The call, with everything that the person was shown.
    pub(crate) call: ApprovalKey,
    /// The tool as it was, with any arguments.
    pub(crate) tool: ApprovalKey,
    /// The tool by its name and its callers: the key of a denial.
    pub(crate) named: ApprovalKey,
    /// The number of the question.
    pub(crate) question: u64,
    /// Whether "for this session" was among the choices.
    pub(crate) session: bool,
}

impl PendingApproval {
    pub(super) fn id(&self, principal: &Principal) -> QuestionId {
        QuestionId {
            principal: principal.name.clone(),
            tool: self.named,
            number: self.question,
        }
    }

    /// Closes the question with a decision, if there is one. Returns whether it was open.
    pub(crate) async fn close(
        &self,
        approvals: &dyn Approvals,
        principal: &Principal,
        decision: Option<ApprovalDecision>,
    ) -> bool {
        let answer = match decision {
            None => PersonsAnswer::None,
            Some(ApprovalDecision::Deny) => PersonsAnswer::Denied,
            Some(ApprovalDecision::Once | ApprovalDecision::Session) => PersonsAnswer::Approved,
        };
        close(approvals, &self.id(principal), answer).await
    }
}

/// Closes a question. If that fails, it was not open: no approval counts then.
pub(super) async fn close(
    approvals: &dyn Approvals,
    question: &QuestionId,
    answer: PersonsAnswer,
) -> bool {
    let deadline = state_deadline();
    let answer = || approvals.answer(question.clone(), answer, deadline);
    settled(deadline, answer).await.unwrap_or_else(|error| {
        tracing::error!(%error, "a person's answer is not kept");
        false
    })
}

/// What a person decided. Anything but an explicit yes is treated as a denial.
pub(crate) fn decision(said: &Value, pending: &PendingApproval) -> ApprovalDecision {
    let mut result = said.as_object().cloned().unwrap_or_default();
    let Some(Choice::Accepted(content)) = elicitation::choice(&mut result) else {
        return ApprovalDecision::Deny;
    };
    match content.get(prompt::DECISION).and_then(Value::as_str) {
        Some(prompt::ONCE) => ApprovalDecision::Once,
        Some(prompt::SESSION) if pending.session => ApprovalDecision::Session,
        _ => ApprovalDecision::Deny,
    }
}
