//! What people decided, and what follows from it for later questions.

use std::sync::Arc;
use std::time::Instant;

use toolward_host::Remembered;

use super::denial_backoff::DenialBackoff;
use super::pending_approvals::PendingApprovals;
use super::session_approvals::SessionApprovals;
use super::{ApprovalKey, PendingApproval};
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

/// Earlier decisions, and the questions that are open.
#[derive(Clone)]
pub(crate) struct ApprovalMemory {
    pub(crate) session: Arc<SessionApprovals>,
    pub(crate) backoff: Arc<DenialBackoff>,
    pub(crate) pending: Arc<PendingApprovals>,
}

impl ApprovalMemory {
    /// Takes a decision into account in what may be asked next.
    pub(crate) fn heed(
        &self,
        principal: &Principal,
        pending: &PendingApproval,
        decision: ApprovalDecision,
    ) {
        let name = &principal.name;
        match decision {
            ApprovalDecision::Deny => {
                self.backoff.denied(name, pending.named, Instant::now());
                self.pending.cancel(name, &pending.named);
            }
            ApprovalDecision::Once | ApprovalDecision::Session => {
                self.backoff.approved(name, &pending.named);
            }
        }
    }

    /// Keeps an approval of a tool for the session, if that was decided by a principal that may approve.
    pub(super) fn keep(
        &self,
        principal: &Principal,
        tool: ApprovalKey,
        decision: ApprovalDecision,
    ) -> Option<Remembered> {
        match decision == ApprovalDecision::Session && principal.may_approve {
            true => self.session.add(&principal.name, tool),
            false => None,
        }
    }
}
