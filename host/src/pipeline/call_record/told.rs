//! What readers of events get of a call at each step of its record, and what is recorded of a person's approval.

use toolward_ledger::Pending;

use super::CallRecord;
use crate::api::approval::{ApprovalRequest, Approver, Remembered, Verdict};
use crate::api::event::{CallCost, CallDecision, CallEventKind};
use crate::api::facts::CallStage;
use crate::api::result::{CallError, ErrorClass, ErrorCode, Origin};
use crate::events::ProgressEvents;
use crate::recording::ApprovalStep;

impl CallRecord<'_> {
    /// Tells the readers of events, if there are any.
    pub(super) fn happens(&mut self, kind: impl FnOnce() -> CallEventKind) {
        self.events
            .tell(&self.facts, &self.parties.scope.native, kind);
    }

    /// Tells what a guest reports; `None` without readers of events.
    pub(crate) fn progress(&mut self) -> Option<ProgressEvents> {
        self.events
            .progress(&self.facts, &self.parties.scope.native)
    }

    /// Neither policy nor a person denied the call; `asked` if it needed an approval.
    pub(crate) fn approved(&mut self, asked: bool) {
        self.decided = true;
        let decision = match asked {
            true => CallDecision::Approved,
            false => CallDecision::Allowed,
        };
        self.happens(|| CallEventKind::PermissionDecided { decision });
    }

    /// A driver is started.
    pub(super) fn tells_start(&mut self) {
        let (driver, attempt) = (self.parties.route.clone(), self.facts.attempts);
        self.happens(|| CallEventKind::Started {
            driver: driver.map_or_else(String::new, |route| route.driver.driver.id.to_string()),
            attempt,
        });
    }

    /// Tells the readers of events how the call ends.
    pub(super) fn ends(&mut self, error: Option<&CallError>) {
        if self.yielded {
            return;
        }
        let unfit = [
            ErrorClass::SchemaValidationFailed,
            ErrorClass::InvalidArguments,
        ];
        let invalid = error.filter(|error| unfit.contains(&error.class));
        if let Some(code) = invalid.map(|error| error.code.known())
            && self.facts.stage == CallStage::Validate
        {
            self.happens(|| CallEventKind::ValidationFailed { code });
        }
        // A person who is asked may still answer.
        let answered = error.is_some_and(|error| error.code != ErrorCode::APPROVAL_PENDING);
        let deciding = matches!(self.facts.stage, CallStage::Authorise | CallStage::Approve);
        if answered && deciding && !self.decided {
            let decision = CallDecision::Denied;
            self.happens(|| CallEventKind::PermissionDecided { decision });
        }
        if error.is_some_and(|error| error.class == ErrorClass::PartialFailure) {
            self.happens(|| CallEventKind::PartialResult);
        }
        let bytes = match error {
            None => self.facts.output_bytes,
            Some(_) => 0,
        };
        self.happens(|| CallEventKind::ResultCreated {
            bytes,
            canceled: None,
        });
        let cost = self.cost();
        self.happens(|| match error {
            None => CallEventKind::Succeeded(cost),
            Some(error) if error.origin == Origin::Host && error.code == ErrorCode::TIMEOUT => {
                CallEventKind::TimedOut(cost)
            }
            Some(error) => CallEventKind::Failed {
                code: error.code.known(),
                class: error.class,
                cost,
            },
        });
    }

    pub(super) fn cost(&self) -> CallCost {
        let micros = self.started.elapsed().as_micros();
        CallCost {
            micros: u64::try_from(micros).unwrap_or(u64::MAX),
            fuel: self.facts.fuel,
            peak_memory: self.facts.peak_memory,
            violations: self.facts.violations_total,
        }
    }
}

impl CallRecord<'_> {
    /// Has a person asked, and records that they are once the approver reports it, and what came of it.
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
