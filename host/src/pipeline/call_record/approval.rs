//! What is told and recorded of a person's approval.

use toolward_ledger::Pending;

use super::CallRecord;
use crate::api::approval::{ApprovalRequest, Approver, Remembered, Verdict};
use crate::api::event::CallEventKind;
use crate::recording::ApprovalStep;

impl CallRecord<'_> {
    /// Has a person asked, and records that they are once the approver says so, and what came of it.
    pub(crate) async fn asks(
        &mut self,
        approver: &dyn Approver,
        request: &ApprovalRequest,
    ) -> Verdict {
        let marks = &request.marks;
        let mut asking = approver.ask(request);
        let at_once = tokio::select! {
            biased;
            () = marks.asked() => None,
            verdict = &mut asking => Some(verdict),
        };
        if let Some(earlier) = marks.expired() {
            self.says(ApprovalStep::Expired(Some(&earlier))).await;
        }
        if marks.is_asked() || at_once.as_ref().is_some_and(Verdict::is_asked_now) {
            self.answer_unused().await;
            self.happens(|| CallEventKind::PermissionRequested);
            self.says(ApprovalStep::Asked).await;
        }
        let verdict = match at_once {
            Some(verdict) => verdict,
            None => asking.await,
        };
        self.answered(&verdict).await;
        verdict
    }

    /// What came of the approval.
    async fn answered(&mut self, verdict: &Verdict) {
        self.facts.approval = match verdict {
            Verdict::Approved | Verdict::ApprovedFor(_) => Some(true),
            Verdict::Answered { approved, .. } => Some(*approved),
            Verdict::Denied(_) | Verdict::Unanswered | Verdict::Withdrawn => Some(false),
            Verdict::Remembered(_) | Verdict::Unavailable | Verdict::Later => None,
        };
        match verdict {
            Verdict::Approved => self.says(ApprovalStep::Approved(None)).await,
            Verdict::ApprovedFor(kept) => self.approves(Some(kept)).await,
            Verdict::Answered {
                approved: true,
                remembered,
            } => self.approves(remembered.as_ref()).await,
            Verdict::Denied(_) | Verdict::Answered { .. } => self.says(ApprovalStep::Denied).await,
            Verdict::Unanswered => self.says(ApprovalStep::Expired(None)).await,
            Verdict::Withdrawn => self.says(ApprovalStep::Revoked).await,
            Verdict::Remembered(earlier) => {
                if let Some(rows) = &mut self.rows {
                    rows.remembers(earlier);
                }
            }
            Verdict::Unavailable => {
                if let Some(rows) = &mut self.rows {
                    rows.reached_nobody();
                }
            }
            Verdict::Later => {}
        }
    }

    /// Records a person's answer that the call brought and that no request used: what it would do has changed, it needs
    /// no approval any more, or it ended before it asked. Comes before what is recorded next of the call.
    pub(crate) async fn answer_unused(&mut self) {
        if let Some(said) = self.unused_answer() {
            // No part of the future of other calls.
            Box::pin(self.says(said)).await;
        }
    }

    /// The answer, once.
    pub(super) fn unused_answer(&mut self) -> Option<ApprovalStep<'static>> {
        if self.answer_recorded
            || self.parties.scope.chain.caller().is_some()
            || self.rows.is_none()
        {
            return None;
        }
        let said = match self.parties.scope.approver.as_ref()?.unused_answer()? {
            Verdict::Answered { approved: true, .. } => ApprovalStep::Approved(None),
            Verdict::Answered { .. } => ApprovalStep::Denied,
            _ => return None,
        };
        self.answer_recorded = true;
        Some(said)
    }

    async fn approves(&mut self, kept: Option<&Remembered>) {
        self.says(ApprovalStep::Approved(kept)).await;
        if let Some(kept) = kept {
            self.says(ApprovalStep::Remembered(kept)).await;
        }
    }

    /// Adds a row. It is queued, and before all later rows of the call: this waits only while the queue is full.
    async fn says(&mut self, said: ApprovalStep<'_>) {
        if let Some(row) = self.approval_row(said) {
            // What is lost is counted by the ledger.
            let _ = row.await;
        }
    }

    pub(super) fn approval_row(&mut self, said: ApprovalStep<'_>) -> Option<Pending<()>> {
        let rows = self.rows.as_mut()?;
        Some(rows.approval(&self.parties, said))
    }
}
