//! What is told and recorded of a person's approval.

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

    /// What the call brought of a person's answer and nobody asked for: the tool was gone, its input was refused, or what
    /// it would do had changed.
    pub(super) fn unused_answer(&self) -> Option<Said<'static>> {
        if self.scope.chain.caller().is_some() || self.rows.is_none() {
            return None;
        }
        match self.scope.approver.as_ref()?.unused_answer()? {
            Verdict::Answered { approved: true, .. } => Some(Said::Approved(None)),
            Verdict::Answered { .. } => Some(Said::Denied),
            _ => None,
        }
    }

    async fn approves(&mut self, kept: Option<&Remembered>) {
        self.says(Said::Approved(kept)).await;
        if let Some(kept) = kept {
            self.says(Said::Remembered(kept)).await;
        }
    }

    /// Adds a row. It is queued, and before all later rows of the call: this waits only while the queue is full.
    pub(super) async fn says(&mut self, said: Said<'_>) {
        if let Some(rows) = &mut self.rows {
            let row = rows.approval(&self.scope, &self.metadata.invocation, said);
            // What is lost is counted by the ledger.
            let _ = row.await;
        }
    }
}
