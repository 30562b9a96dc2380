//! What is told and recorded of a person's approval.

use toolward_ledger::Pending;

use super::CallRecord;
use crate::api::approval::{Remembered, Verdict};
use crate::api::event::CallEventKind;
use crate::recording::Said;

impl CallRecord<'_> {
    /// A person has to approve the call: now, or they did before.
    pub(crate) fn needs_approval(&mut self) {
        self.needs_approval = true;
    }

    /// A person is asked about the call.
    pub(crate) async fn asks(&mut self) {
        self.happens(|| CallEventKind::PermissionRequested);
        self.says(Said::Asked).await;
    }

    /// An earlier approval of the call has run out.
    pub(crate) async fn approval_expired(&mut self, earlier: &Remembered) {
        self.says(Said::Expired(Some(earlier))).await;
    }

    /// What came of the approval.
    pub(crate) async fn answered(&mut self, verdict: &Verdict) {
        self.answer = match verdict {
            Verdict::Approved | Verdict::ApprovedFor(_) => Some(true),
            Verdict::Answered { approved, .. } => Some(*approved),
            Verdict::Denied(_) | Verdict::Unanswered | Verdict::Withdrawn => Some(false),
            Verdict::Remembered(_) | Verdict::Unavailable | Verdict::Later => None,
        };
        match verdict {
            Verdict::Approved => self.says(Said::Approved(None)).await,
            Verdict::ApprovedFor(kept) => self.approves(Some(kept)).await,
            Verdict::Answered {
                approved: true,
                remembered,
            } => self.approves(remembered.as_ref()).await,
            Verdict::Denied(_) | Verdict::Answered { .. } => self.says(Said::Denied).await,
            Verdict::Unanswered => self.says(Said::Expired(None)).await,
            Verdict::Withdrawn => self.says(Said::Revoked).await,
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
    pub(super) fn unused_answer(&mut self) -> Option<Said<'static>> {
        if self.answer_recorded || self.scope.chain.caller().is_some() || self.rows.is_none() {
            return None;
        }
        let said = match self.scope.approver.as_ref()?.unused_answer()? {
            Verdict::Answered { approved: true, .. } => Said::Approved(None),
            Verdict::Answered { .. } => Said::Denied,
            _ => return None,
        };
        self.answer_recorded = true;
        Some(said)
    }

    async fn approves(&mut self, kept: Option<&Remembered>) {
        self.says(Said::Approved(kept)).await;
        if let Some(kept) = kept {
            self.says(Said::Remembered(kept)).await;
        }
    }

    /// Adds a row. It is queued, and before all later rows of the call: this waits only while the queue is full.
    async fn says(&mut self, said: Said<'_>) {
        if let Some(row) = self.approval_row(said) {
            // What is lost is counted by the ledger.
            let _ = row.await;
        }
    }

    pub(super) fn approval_row(&mut self, said: Said<'_>) -> Option<Pending<()>> {
        let rows = self.rows.as_mut()?;
        Some(rows.approval(&self.scope, said))
    }
}
